"""The real case of a report without an offset: librdkafka takes a refused record for written, because a later
one was (docs/findings/librdkafka-implicit-ack.md)."""

import json

import confluent_kafka as ck
from proxy_lab import proxy_lab
from wire_lab import wire_lab

from fencepost.application.blame.join import Side, join
from fencepost.application.blame.lines import Type, read_lines
from fencepost.application.blame.producer_join import NO_OFFSET
from fencepost.application.tap import Tap
from fencepost.proxy.faults import FaultHook, RequestFaults, parse
from fencepost.proxy.server.listener import trace_time
from fencepost.traces.plan import TopicOptions

TRIES, RECORDS = 3, 12
PATIENCE_S = 600


def sent(address, topic, folder):
    """An idempotent producer whose first request is refused, tapped, through the proxy; then all is read."""
    faults = RequestFaults()
    faults.arm(parse("answer NOT_LEADER_OR_FOLLOWER to Produce, 1st, once"), trace_time())
    hook = FaultHook(faults, 1, trace_time)
    with proxy_lab(address, folder, hook_for=lambda node: hook) as proxy:
        settings = {"enable.idempotence": True, "batch.num.messages": 1, "linger.ms": 0, "log_level": 0}
        tap = Tap(folder / "app.tap")
        producer = tap.producer(ck.Producer({"bootstrap.servers": proxy.bootstrap, **settings}))
        for n in range(RECORDS):
            producer.produce(topic, b"%d" % n, partition=0)
        assert producer.flush(PATIENCE_S) == 0
        consumer = ck.Consumer({"bootstrap.servers": proxy.bootstrap, "group.id": "g", "log_level": 0})
        spot = ck.TopicPartition(topic, 0, 0)
        consumer.assign([spot])
        _, end = consumer.get_watermark_offsets(spot, PATIENCE_S)
        got = 0
        while got < end:
            got += len([one for one in consumer.consume(100, 0.5) if one.error() is None])
        consumer.close()
        tap.close()
    return proxy.trace(), list(read_lines(folder / "app.tap")), got


def test_a_record_that_was_refused_and_reported_as_written_is_the_librarys(tmp_path):
    """Rule: each record that the library reported as written, and that is in no log, is blamed on the
    library, with what was answered; nothing else is blamed."""
    topics = [TopicOptions(name=f"implicit-{n}", partitions=1) for n in range(TRIES)]
    seen = 0
    with wire_lab(*topics, brokers=1) as lab:
        for topic in topics:
            folder = tmp_path / topic.name
            trace, lines, got = sent(f"127.0.0.1:{lab.ports[1]}", topic.name, folder)
            without = [line for line in lines if line.type is Type.ACKNOWLEDGED and line.offset is None]
            blames = join(trace, lines).blames
            assert len(blames) == RECORDS - got
            assert len(blames) <= len(without)
            for blame in blames:
                assert blame.side is Side.CLIENT_LIBRARY
                assert blame.says == (
                    f"{NO_OFFSET}, refused by a fault in the broker's place (NOT_LEADER_OR_FOLLOWER), "
                    "in no log"
                )
                said = [json.loads(one.detail) for one in trace.events if one.cause == "produce"]
                (event,) = [one for one in said if one["correlation"] == blame.frame.correlation]
                assert event["by"] == "fault"
            seen += len(blames)
    assert seen
