"""Apache Kafka itself for tests: a cluster of each version for a module, and appends with their answers."""

import asyncio
import contextlib
import os
import time

import pytest
from attrs import evolve

from fencepost.checkers.judges import judge
from fencepost.checkers.verdict import Decision
from fencepost.impl.log.batch.record_batch import read_headers
from fencepost.impl.log.values import batch_of, values_of
from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.systems.apache_kafka.administration import Administration, TopicOptions
from fencepost.systems.apache_kafka.cluster import ApacheKafka
from fencepost.systems.apache_kafka.jars import RECOMMENDED, Release
from fencepost.traces.errors import EnvironmentError_
from fencepost.traces.operations import Function, Operation, Outcome, Record
from fencepost.traces.trace import Claims, Trace
from fencepost.wire.client import Link, look_around
from fencepost.wire.outward import TRANSLATIONS

PATIENCE_S = 600
"""Of the wall clock, for a crowded machine."""
real = pytest.mark.skipif(
    not os.environ.get("FENCEPOST_APACHE_KAFKA"),
    reason="starts Apache Kafka from its jars (Maven fetches 45 MB a version): set FENCEPOST_APACHE_KAFKA=1",
)
VERSIONS = [pytest.param(version, marks=real, id=version) for version in RECOMMENDED]
SECOND = 1_000_000_000


CALM = {
    "zookeeper.session.timeout.ms": "9000",
    "broker.session.timeout.ms": "6000",
    "controller.quorum.election.timeout.ms": "3000",
    "controller.quorum.fetch.timeout.ms": "6000",
    "initial.broker.registration.timeout.ms": "300000",
}
"""On a crowded machine a broker is silent for seconds."""


def started(directory, version, settings=None, **options):
    """A cluster of three, not yet started."""
    release, more = Release(version=version), CALM | (settings or {})
    return ApacheKafka(directory=directory, release=release, size=3, settings=more, **options)


class Lab:
    """A running cluster with a topic `t` of one partition. With ZooKeeper its first leader is the controller,
    so that a leader can change the ISR while it is cut off its followers."""

    def __init__(self, cluster, topic="t", **settings):
        self.cluster, self.topic, self.operations = cluster, topic, []
        self.direct = tuple(("127.0.0.1", cluster.running.ports[broker].client) for broker in cluster.brokers)
        self.admin = Administration(",".join(f"{host}:{port}" for host, port in self.direct))
        first = asyncio.run(look_around(self.direct, self.admin.access))[1].controller_id
        replicas = (first, *sorted({1, 2, 3} - {first}))
        options = TopicOptions(name=topic, assignment=(replicas,), settings=settings)
        assert self.admin.create_topic(options) == "NONE"
        self.until(lambda: self.state() is not None and len(self.state().isr) == 3, "a full ISR")

    def until(self, condition, what="what a test waits for"):
        return self.admin.wait_for(condition, what, PATIENCE_S)

    def state(self):
        """Of the partition, as the leader of the highest epoch has it; one that is cut off may not hear of a
        change."""
        views = {}
        for broker, address in enumerate(self.direct, 1):
            with contextlib.suppress(EnvironmentError_):
                _, seen = asyncio.run(look_around((address,), self.admin.access))
                for each in seen.partitions:
                    if each.partition == (self.topic, 0) and each.leader >= 0:
                        views[broker] = each
        best = max(views.values(), key=lambda each: each.leader_epoch, default=None)
        return None if best is None else views.get(best.leader, best)

    def isr(self):
        state = self.state()
        return set() if state is None else set(state.isr)

    def live(self):
        """Brokers that broker 1 knows."""
        return set(asyncio.run(look_around(self.direct[:1], self.admin.access))[1].live_brokers)

    async def _ask(self, address, request):
        link = Link(address)
        await link.open()
        try:
            translation = TRANSLATIONS[type(request)]
            return translation.tell(request, await link.ask(translation.ask(link.dialogue, request)))
        finally:
            await link.close()

    def end(self, broker, timestamp=kafka.LATEST):
        """The high watermark of the partition at its leader, asked for directly; or (EARLIEST) its start."""
        request = kafka.ListOffsetsRequest(
            correlation_id=1, partition=TopicPartition(self.topic, 0), timestamp=timestamp
        )
        return asyncio.run(self._ask(self.direct[broker - 1], request)).offset

    def append(self, broker, value, *, acks=-1, address=None, timeout_s=60):
        """One record to its leader; returns the answer."""
        return asyncio.run(self.append_async(broker, value, acks=acks, address=address, timeout_s=timeout_s))

    async def append_async(self, broker, value, *, acks=-1, address=None, timeout_s=60):
        request = kafka.ProduceRequest(
            correlation_id=1,
            partition=TopicPartition(self.topic, 0),
            acks=acks,
            records=batch_of((value,)),
            timeout=timeout_s * SECOND,
        )
        return await self._ask(address or self.direct[broker - 1], request)

    # ---- a history, judged

    def write(self, *values):
        """Append each by itself with acks=all; every one must be acknowledged. Adds to the history."""
        for value in values:
            leader = self.until(self.state, "a leader").leader
            invoked = time.monotonic_ns()
            answer = self.append(leader, value)
            assert answer.error == "NONE", answer
            self._note(
                Function.APPEND,
                invoked,
                acks=-1,
                offset=answer.base_offset,
                records=(Record(topic=self.topic, partition=0, offset=answer.base_offset, value=value),),
            )

    def read(self):
        """Everything that is there, as the last reads of a run. Adds to the history."""
        key, found = TopicPartition(self.topic, 0), []
        end = self.until(lambda: self.end(self.state().leader) + 1, "an end") - 1
        begin = position = (
            self.until(lambda: self.end(self.state().leader, kafka.EARLIEST) + 1, "a start") - 1
        )
        deadline = time.monotonic() + PATIENCE_S
        while position < end:
            assert time.monotonic() < deadline, f"nothing comes at {position} of {end}"
            leader, invoked = self.until(self.state, "a leader").leader, time.monotonic_ns()
            part = kafka.FetchPartition(partition=key, offset=position)
            request = kafka.FetchRequest(
                correlation_id=1, replica_id=-1, max_wait=0, max_bytes=1 << 20, partitions=(part,)
            )
            answer = asyncio.run(self._ask(self.direct[leader - 1], request)).partitions[0]
            if answer.error != "NONE":
                continue
            records, start = [], position
            for header in read_headers(answer.records):
                data = answer.records[header.position : header.position + header.size]
                values = values_of(data, evolve(header, position=0))
                records += [
                    Record(
                        topic=self.topic,
                        partition=0,
                        offset=header.base_offset + place,
                        value=value,
                        leader_epoch=header.leader_epoch,
                    )
                    for place, value in enumerate(values)
                ]
                position = header.next_offset
            found += [each.value for each in records]
            self._note(
                Function.POLL,
                invoked,
                offset=start,
                end_offset=answer.high_watermark,
                log_start_offset=begin,
                strong=True,
                records=tuple(records),
            )
        if begin == end:
            now, ends = time.monotonic_ns(), {"end_offset": end, "log_start_offset": begin}
            self._note(Function.POLL, now, offset=end, strong=True, **ends)
        return found

    def _note(self, function, invoked, **columns):
        self.operations.append(
            Operation(
                op_id=len(self.operations) + 1,
                process=1,
                function=function,
                invoke_time=invoked,
                completion_time=time.monotonic_ns(),
                outcome=Outcome.OK,
                topic=self.topic,
                partition=0,
                **columns,
            )
        )

    def verdict(self, **claims):
        """Of the log check over the history: the names of its findings."""
        trace = Trace(
            trace_id=1,
            plan="",
            seed=1,
            software_version="x",
            operations=tuple(self.operations),
            claims=Claims(**claims),
        )
        (found,) = judge(trace, ("log",))
        assert found.decision in (Decision.OK, Decision.ILLEGAL), found
        return [finding.anomaly for finding in found.findings]
