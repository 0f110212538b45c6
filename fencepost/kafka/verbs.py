"""What can be asked of an embedded cluster, as calls with plain values. The handle of a cluster in this
process and that of a cluster in a child process both call these.

Owns the meaning of each verb in terms of the campaign's faults. Must not know who asks, or over what. Called
from any thread but the loop's.

for_ms: how long a fault lasts, in the cluster's time; None: until it is ended by its counterpart (`restart`,
`resume`, `heal`). Every fault is in the record.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from attrs import define, evolve

from fencepost.campaign.swarm.draws import Draws, faults_of
from fencepost.campaign.swarm.profiles import profile_named
from fencepost.impl.coordinator.group_states import GroupPhase
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Create
from fencepost.kafka.chaos.hands import HAND
from fencepost.kafka.hosted import AT_WORK, HostedCluster, HostedRun
from fencepost.kafka.readiness import all_heard, led
from fencepost.kafka.topic_records import ISOLATIONS, UNCOMMITTED, records_of, to_json
from fencepost.proxy.faults import Features, RequestFault, draw, parse
from fencepost.sim.randomness import Randomness
from fencepost.sim.scheduler import MILLISECOND
from fencepost.systems.embedded import Embedded
from fencepost.traces.errors import EnvironmentError_, PlanError
from fencepost.traces.jsonlines import write_traces
from fencepost.traces.kafka_names.internal_topics import OFFSETS_TOPIC
from fencepost.traces.plan import TopicOptions
from fencepost.traces.trace import Trace

LOOK_S = 0.002
"""Between two looks of a wait."""
SOON_S = 120.0
"""Longest wait for something that a healthy cluster does within a second of its own time; stalls of the
machine do not count for the cluster, but do here."""
GIVEN_UP = frozenset({("Produce", "UNKNOWN_SERVER_ERROR"), ("InitProducerId", "UNKNOWN_SERVER_ERROR")})
"""Answers, by API and error, that make a producer give up, whether it has written or not. A broker may
give them at any time, as this error means any exception. But no service without transactions survives
them, so that chaos leaves them out."""
Answer = TypeVar("Answer")


@define(eq=False)
class Verbs:
    """run: what the cluster is hosted by."""

    run: HostedRun

    @property
    def _cluster(self) -> HostedCluster:
        cluster = self.run.cluster
        assert isinstance(cluster, HostedCluster)
        return cluster

    @property
    def _system(self) -> Embedded:
        return self._cluster.system

    def _do(self, function: Callable[..., Answer], *args: Any, **kwargs: Any) -> Answer:
        return self._system.do(function, *args, **kwargs)

    # ---- brokers

    def restart(self, broker: int) -> None:
        """It runs again: whatever stops it ends."""
        self._known(broker)
        self._do(self._cluster.bring_back, broker)

    resume = restart

    def heal(self, broker: int | None = None) -> None:
        """End every fault, of one broker or of all; what is down starts."""
        if broker is None:
            self._do(self._cluster.heal)
            return
        self._known(broker)
        self._do(self._cluster.end_faults, broker)
        self._do(self._cluster.bring_back, broker)

    # ---- any fault

    def fault(
        self, kind: str, target: str, for_ms: int | None = None, other: str = "", parameter: int = 0
    ) -> int:
        """Begin a fault of docs/reference/plans.md.

        Args:
            kind: the fault.
            target: a role or a broker, as plans name them.
            for_ms: milliseconds; None: until it is ended.
            other: the second target of a link.
            parameter: what the kind makes of it.

        Returns:
            The fault's id.
        """
        return self._do(
            self._cluster.fault, kind, target, duration_ms=for_ms, other=other, parameter=parameter
        )

    def end_fault(self, fault: int) -> None:
        """End it; nothing happens if it has ended."""
        self._do(self._cluster.end, fault)

    # ---- faults of requests

    def request_fault(self, text: str) -> int:
        """Arm a fault of single requests (docs/reference/request-faults.md); answers its number."""
        return self._do(self._cluster.request_faults.arm, parse(text))

    def end_request_fault(self, number: int) -> None:
        """It strikes no more; nothing happens if it has ended."""
        self._do(self._cluster.request_faults.engine.end, number)

    def request_faults(self) -> list[dict[str, Any]]:
        """Those that are armed: number, fault (its text), hits."""
        return [
            {"number": number, "fault": str(fault), "hits": hits}
            for number, fault, hits in self._do(self._cluster.request_faults.engine.active)
        ]

    # ---- chaos at applications

    def chaos_at_applications(self, seed: int, only: Iterable[str] | None = None) -> int:
        """Strike the clients under test from now on, at moments that their requests show. Answers how often
        at most. only: names of the strikes that are carried out; None: all."""
        self._do(self._cluster.chaos_at_applications, seed, None if only is None else frozenset(only))
        return HAND

    def services_run(self, began: list[int], ended: list[int]) -> None:
        """Which processes of services run now.

        Args:
            began: those that run from now on.
            ended: those that do not run any more.
        """
        for process in began:
            self._do(self._cluster.processes.add, process)
        for process in ended:
            self._do(self._cluster.processes.remove, process)

    def take_struck(self) -> dict[str, list[int]]:
        """Processes that chaos has stopped and that want to be replaced, and those that it has asked to end
        and that want to be started again (replace, restart). Each is answered once."""

        def take() -> dict[str, list[int]]:
            chaos = self._cluster.request_faults.chaos
            if chaos is None:
                return {"replace": [], "restart": []}
            found = {"replace": list(chaos.to_replace), "restart": list(chaos.to_restart)}
            chaos.to_replace.clear()
            chaos.to_restart.clear()
            return found

        return self._do(take)

    def reached(self) -> dict[str, Any]:
        """What chaos at applications has reached: moments, how many of each kind were seen; strikes, in
        words and in their order, and their names; over, whether none is left."""

        def look() -> dict[str, Any]:
            chaos = self._cluster.request_faults.chaos
            if chaos is None:
                return {"moments": {}, "strikes": [], "names": [], "over": True}
            struck = [strike for strike in chaos.strikes if chaos.carries_out(strike)]
            return {
                "moments": dict(chaos.shown),
                "strikes": [str(strike) for strike in struck],
                "names": [strike.name for strike in struck],
                "over": chaos.over,
            }

        return self._do(look)

    def chaos(
        self,
        seed: int,
        for_ms: int = 10_000,
        profile: str = "default",
        topic: str = "t",
        requests: bool = True,
    ) -> int:
        """Faults of a seed, drawn as a campaign draws them around this topic's leaders: at least one of a
        broker, a link or a disk, each within the fault budget or not at all. requests: with faults of single
        requests, drawn of the same seed. Answers how many were drawn; they begin from now on. `heal` ends
        those that have begun, and the others never begin."""
        script = self._script(seed, for_ms, topic) if requests else ()
        for fault in script:
            self._do(self._cluster.request_faults.arm, fault)
        return len(script) + self._chaos(seed, for_ms, profile, topic)

    def _script(self, seed: int, for_ms: int, topic: str) -> tuple[RequestFault, ...]:
        partitions = len(self._assignment(topic))
        groups = self._do(self._groups)
        topics = {topic: partitions} if partitions else {}
        drawn = draw(seed, Features(topics=topics, groups=groups, for_ms=for_ms))
        return tuple(fault for fault in drawn if (fault.api, fault.error) not in GIVEN_UP)

    def _groups(self) -> tuple[str, ...]:
        """Consumer groups that some coordinator knows now."""
        cores = [self._system.world.hosts[broker].core for broker in self._system.brokers]
        return tuple(
            sorted({name for core in cores if core is not None for name in core.groups.table.groups})
        )

    def _chaos(self, seed: int, for_ms: int, profile: str, topic: str) -> int:
        bounds = profile_named(profile, ())
        partitions = len(self._assignment(topic)) or 1
        options = TopicOptions(name=topic, partitions=min(partitions, 64))
        bounds = evolve(bounds, kinds=tuple(kind for kind in bounds.kinds if self._harmless(kind)))
        drawn = faults_of(Draws(Randomness(seed)), bounds, options, for_ms, len(self._system.brokers))
        self._do(self._cluster.chaos, drawn)
        return len(drawn)

    def _harmless(self, name: str) -> bool:
        """Whether a fault loses and changes nothing on disks of this machine; those of memory may."""
        kind = self._cluster.kinds[name]
        return self._cluster.directory is None or not (kind.loses or kind.rots or kind.lies)

    def _led(self, keys: Collection[TopicPartition]) -> bool:
        return self._do(led, self._system.simulation, keys)

    def _known(self, broker: int) -> None:
        if broker not in self._system.brokers:
            raise PlanError(
                expected=f"a broker from 1 to {len(self._system.brokers)}",
                seen=str(broker),
                where="an embedded cluster",
            )

    # ---- topics and leaders

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int | None = None,
        config: Mapping[str, str] | None = None,
    ) -> dict[int, tuple[int, ...]]:
        """Create it; on return its partitions have leaders that clients find. Answers the replicas of each
        partition."""
        assignment = self._do(self._cluster.add_topic, name, partitions, replication_factor, config or {})
        keys = [TopicPartition(name, number) for number in assignment]
        self._wait(
            lambda: self._do(led, self._system.simulation, keys),
            f"leaders for the {partitions} partitions of {name}",
        )
        return dict(assignment)

    def leader(self, topic: str, partition: int = 0) -> int:
        """The partition's leader in ZooKeeper; -1 without one."""
        return self._do(lambda: self._cluster.observed_state.partition((topic, partition)).leader)

    def controller(self) -> int:
        """The controller's id; -1 without one."""
        return self._do(lambda: self._cluster.observed_state.controller)

    def move_leader(self, topic: str, partition: int = 0, to: int | None = None) -> int:
        """Let another replica lead (`to`, or the next one in sync): its place among the replicas becomes the
        first, then the preferred replica is elected. Answers who leads now. Raises PlanError where it cannot
        lead."""
        key = TopicPartition(topic, partition)
        self._do(self._cluster.exists, key, "the move of a leader")
        replicas = self._assignment(topic).get(partition, ())
        facts = self._do(lambda: self._cluster.observed_state.partition((topic, partition)))
        candidates = [broker for broker in replicas if broker in facts.isr and broker != facts.leader]
        target = candidates[0] if to is None and candidates else to
        if target is None or target not in (*candidates, facts.leader):
            raise PlanError(
                expected=f"a replica in sync that does not lead: one of {candidates}",
                seen=str(to),
                where=f"the move of the leader of {key}",
            )
        self._wait(lambda: self._moved(key, target), f"{target} as leader of {key}")
        return target

    def _moved(self, key: TopicPartition, target: int) -> bool:
        """Whether it leads, and is the first of the replicas. What is missing is asked for, again if the
        controller could not do it because one of them was down."""
        self._do(self._cluster.exists, key, "the move of a leader")
        replicas = self._assignment(key.topic).get(key.partition, ())
        facts = self._do(lambda: self._cluster.observed_state.partition((key.topic, key.partition)))
        order = (target, *[broker for broker in replicas if broker != target])
        if order == replicas and facts.leader == target:
            return self._led([key])
        request, needed = Create(znodes.REASSIGN, znodes.encode_reassignments({key: order})), set(order)
        if order == replicas:
            request, needed = Create(znodes.PREFERRED_ELECTION, znodes.encode_partitions([key])), {target}
        if needed <= set(facts.isr):
            self._do(self._system.world.admin, request)
        return False

    def coordinator(self, group: str) -> int:
        """The broker that coordinates a consumer group; -1 while there is none."""
        return self.leader(OFFSETS_TOPIC, self._offsets_partition(group))

    def move_coordinator(self, group: str, to: int | None = None) -> int:
        """Let another broker coordinate the group. Answers which."""
        moved = self.move_leader(OFFSETS_TOPIC, self._offsets_partition(group), to)
        self._wait(
            lambda: self._do(self._cluster.coordinates, moved, group), f"{moved} to have loaded {group}"
        )
        return moved

    def rebalance(self, group: str) -> None:
        """Let the members of a consumer group join again; one that rebalances already is waited for."""
        deadline = time.monotonic() + SOON_S
        while (state := self._rebalanced(group)) not in AT_WORK:
            if state in ("", GroupPhase.EMPTY, GroupPhase.DEAD) or time.monotonic() > deadline:
                raise PlanError(
                    expected=f"group {group} with members at work",
                    seen=f"a group that is {state}" if state else "none of that name",
                    where="a rebalance that was asked for",
                )
            time.sleep(LOOK_S)

    def _rebalanced(self, group: str) -> str:
        coordinator = self.coordinator(group)
        if coordinator < 1:
            return ""
        self._wait(
            lambda: self._do(self._cluster.coordinates, coordinator, group), f"a coordinator of {group}"
        )
        return self._do(self._cluster.rebalance, coordinator, group)

    def _offsets_partition(self, group: str) -> int:
        def number() -> int:
            cores = [self._system.world.hosts[broker].core for broker in self._system.brokers]
            table = next((core.groups.table for core in cores if core is not None), None)
            return -1 if table is None or not table.count else int(table.number_of(group))

        return self._do(number)

    def _assignment(self, topic: str) -> dict[int, tuple[int, ...]]:
        return self._do(
            lambda: {
                number: replicas
                for (name, number), replicas in self._cluster.observed_state.assignments.items()
                if name == topic and replicas
            }
        )

    # ---- to look at

    def status(self) -> dict[str, Any]:
        """healthy; controller; running: brokers; time_ms: of the cluster, stalled_ms: that did not count;
        events: recorded, full_at_ms: when the record was full; active: faults under way; struck: hits of
        faults of requests, by kind; failure: why it has stopped."""
        system, cluster = self._system, self._cluster
        if system.failure:
            return {"healthy": False, "failure": system.failure}

        def look() -> dict[str, Any]:
            hosts, full_at = system.world.hosts, cluster.full_at
            return {
                "healthy": all_heard(system.simulation),
                "controller": cluster.observed_state.controller,
                "running": [
                    broker for broker in system.brokers if hosts[broker].up and not hosts[broker].paused
                ],
                "time_ms": system.world.now // MILLISECOND,
                "stalled_ms": system.pace.stalled // MILLISECOND,
                "events": len(cluster.events),
                "full_at_ms": None if full_at is None else full_at // MILLISECOND,
                "active": [
                    *(f"{fault.kind} of {fault.target}" for fault, _ in cluster.active.values()),
                    *(str(fault) for _, fault, _ in cluster.request_faults.engine.active()),
                ],
                "struck": dict(cluster.request_faults.kinds),
                "failure": "",
            }

        return self._do(look)

    def records(self, topic: str, isolation: str = UNCOMMITTED) -> list[dict[str, Any]]:
        """Every record of a topic below the high watermark of its leader, in order: topic, partition, offset,
        key and value (base64), value_id. A new leader may not know yet what clients were shown (KIP-207), and
        is waited for. isolation: as of `KafkaCluster.records`."""
        if isolation not in ISOLATIONS:
            raise PlanError(
                expected=f"an isolation: {' or '.join(ISOLATIONS)}",
                seen=repr(isolation)[:80],
                where=f"the records of {topic}",
            )
        answers: list[list[dict[str, Any]]] = []

        def answered() -> bool:
            answers.extend(self._do(self._records, topic, isolation))
            return bool(answers)

        self._wait(answered, f"the high watermarks of {topic}")
        return answers[0]

    def _records(self, topic: str, isolation: str) -> list[list[dict[str, Any]]]:
        """Them alone in a list; an empty one while a leader does not know them all."""
        found = []
        for number in sorted(self._assignment(topic)):
            leader = self._cluster.observed_state.partition((topic, number)).leader
            core = None if leader < 1 else self._system.world.hosts[leader].core
            if core is None:
                raise EnvironmentError_(
                    expected=f"a leader of {topic}-{number}",
                    seen="none that runs",
                    where="the records of a topic",
                    hint="heal() first",
                )
            partition = core.replicas.partitions.get(TopicPartition(topic, number))
            knows = partition is not None and partition.high_watermark >= partition.epoch_start_offset
            if partition is None or partition.leader != leader or not knows:
                return []
            found += [to_json(record) for record in records_of(partition, topic, number, isolation)]
        if not found and not self._assignment(topic):
            raise PlanError(expected="a topic that exists", seen=repr(topic), where="the records of a topic")
        return [found]

    def committed(self, group: str) -> list[dict[str, Any]]:
        """What a consumer group has committed, by its coordinator: topic, partition, offset."""
        broker = self.coordinator(group)

        def look() -> list[dict[str, Any]]:
            core = None if broker < 1 else self._system.world.hosts[broker].core
            known = None if core is None else core.groups.table.groups.get(group)
            return [
                {"topic": key.topic, "partition": key.partition, "offset": stored.value.offset}
                for key, stored in ({} if known is None else known.offsets).items()
            ]

        return self._do(look)

    def group_state(self, group: str) -> dict[str, Any]:
        """phase: of the group at its coordinator, "" without one; members: how many."""
        broker = self.coordinator(group)

        def look() -> dict[str, Any]:
            core = None if broker < 1 else self._system.world.hosts[broker].core
            known = None if core is None else core.groups.table.groups.get(group)
            if known is None:
                return {"phase": "", "members": 0}
            return {"phase": known.phase.value, "members": len(known.members)}

        return self._do(look)

    def groups(self) -> list[str]:
        """Consumer groups that some coordinator knows."""
        return list(self._do(self._groups))

    def save_trace(self, path: str, end: bool = False) -> None:
        """Write the trace of the run so far as JSON lines. end: heal the cluster, let it make progress and
        read everything first; it accepts no connection after that."""
        write_traces(Path(path), [self.trace(end=end)])

    def trace(self, *, end: bool = False) -> Trace:
        """What `save_trace` writes."""
        if end:
            self._system.serve_nobody()
        return self._do(self.run.end if end else self.run.trace)

    def close(self) -> None:
        """End the cluster."""
        self._system.close()

    def _wait(self, reached: Callable[[], bool], expected: str) -> None:
        deadline = time.monotonic() + SOON_S
        while not reached():
            if time.monotonic() > deadline:
                raise EnvironmentError_(
                    expected=f"{expected} within {SOON_S:g} s",
                    seen=f"none; the cluster says {self.status()}",
                    where="an embedded cluster",
                    hint="heal() ends all faults",
                )
            time.sleep(LOOK_S)
