"""The simulated cluster of a run: brokers, clients, topics, and the faults that are under way.

Owns the assembly of world and cores, and carries faults out within the budget. Must not know phases or
claims.
"""

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar

import msgspec
from attrs import Factory, define, evolve, field

from fencepost.bugs import parts_with
from fencepost.impl.broker.parts import Parts
from fencepost.impl.core.core_interface import Core
from fencepost.impl.core.file_system import FileSystem
from fencepost.impl.log.batch.batch_file import checked_frames
from fencepost.impl.log.batch.header import CRC_START, CorruptBatchError
from fencepost.impl.log.layout import CLEAN_SHUTDOWN
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Create, Done, Exists
from fencepost.run.client_cores import make_client
from fencepost.run.durable import durable_event
from fencepost.run.faults.budget import outside_budget
from fencepost.run.faults.keeping import Keeping, reached_by
from fencepost.run.faults.kind import Ask, FaultKind, SimulatedHit
from fencepost.run.faults.roles import follows, resolve
from fencepost.run.faults.table import FAULTS
from fencepost.run.simulated.recorder import Recorder
from fencepost.sim.disk import PowerLossReport
from fencepost.sim.disk_logs import LogOnDisk
from fencepost.sim.scheduler import MILLISECOND
from fencepost.sim.world import FIRST_CLIENT_NODE, World
from fencepost.systems.simulation import Simulation
from fencepost.traces.errors import PlanError
from fencepost.traces.events import Event, Name
from fencepost.traces.kafka_names.internal_topics import INTERNAL_TOPICS
from fencepost.traces.plan import STEP_START, STEP_STOP, Fault, Plan, TopicOptions

NOBODY = -1
"""The node of a fault that hits the whole cluster."""
STRAY = 9_000_000
"""Fault ids of restarts that the run makes itself begin here."""
RESTART_AFTER_POWER_LOSS_MS = 500
"""When the power failed by a fault that is over by then."""
RESTART_AFTER_HALT_MS = 500
"""When a broker halted by itself, and nothing is wrong with its disk any more."""
AWAITED = (STEP_START, STEP_STOP)
"""Steps of a broker's work that a fault waits for."""
LOOK_AGAIN_MS = 50
"""How often a host that the budget holds back looks whether it may start."""


@define(eq=False)
class FaultyCluster(Recorder):
    """A simulated cluster, and the faults that are under way in it."""

    # The table of faults.
    kinds: ClassVar[Mapping[str, FaultKind]] = FAULTS
    plan: Plan
    world: World = field(init=False)
    simulation: Simulation = field(init=False)
    parts: Parts = field(init=False)
    broker_ids: tuple[int, ...] = field(init=False)
    active: dict[int, tuple[Fault, int]] = field(factory=dict)
    # Power losses, and crashes, that wait for file calls, by broker.
    armed: dict[int, Fault] = field(factory=dict)
    # Brokers asked to stop, and how long they stay down, ms.
    stopping: dict[int, int] = field(factory=dict)
    # Brokers that wait for their disk to be healed.
    halted_by_disk: dict[int, None] = field(factory=dict)
    # Faults that wait for an event.
    following: list[Fault] = field(factory=list)
    # Faults that wait for a broker to start or stop, by broker and step.
    awaiting: dict[tuple[int, str], Fault] = field(factory=dict)
    healing: bool = False
    # Who may have lost data, and who can be relied on.
    keeping: Keeping = field(
        init=False, default=Factory(lambda self: Keeping(options=self.plan.cluster), takes_self=True)
    )

    def __attrs_pre_init__(self) -> None:
        Recorder.__init__(self)

    def __attrs_post_init__(self) -> None:
        self.world = World.from_plan(self.plan, observer=self, on_commit=self.committed)
        self.scheduler = self.world.scheduler
        self.parts = parts_with(self.plan.cluster.bugs)
        self.broker_ids = tuple(range(1, self.plan.cluster.brokers + 1))
        self.simulation = Simulation(world=self.world, options=self.plan.cluster, parts=self.parts)
        for broker in self.broker_ids:
            self.simulation.add(broker)

    # ---- assembly

    def _make_client(self, process: int, files: FileSystem, now: int) -> Core:
        return make_client(self.plan, self.parts, process, self.broker_ids, healing=self.healing)

    def add_client(self, process: int) -> int:
        """A client host for this process; returns its node id."""
        node = FIRST_CLIENT_NODE + process
        self.world.add_host(node, partial(self._make_client, process), zookeeper=False)
        self.world.start(node)
        return node

    def create_topic(self, topic: TopicOptions) -> None:
        """Write the topic's assignment, as the admin tool does: round robin, each partition shifted by
        one."""
        brokers, count = self.broker_ids, self.plan.cluster.brokers
        if topic.replication_factor > count:
            raise PlanError(
                expected=f"a replication factor of at most {count}, the number of brokers",
                seen=str(topic.replication_factor),
                where=f"plan.cluster.topics: {topic.name}",
            )
        assignment = {
            number: tuple(brokers[(number + place) % count] for place in range(topic.replication_factor))
            for number in range(topic.partitions)
        }
        self.create_new(topic, assignment)

    def create_new(self, topic: TopicOptions, replicas: dict[int, tuple[int, ...]]) -> str:
        """Write the assignment of a new topic; why not, if there is one of this name, or was one and the plan
        does not use its name again."""
        known = {key: ids for key, ids in self.observed_state.assignments.items() if key[0] == topic.name}
        if any(known.values()) or (known and not topic.used_again):
            return f"there {'is' if any(known.values()) else 'was'} a topic {topic.name} before"
        if isinstance(self.world.admin(Exists(znodes.delete_topic_path(topic.name))), Done):
            return f"{topic.name} is being deleted"
        self.world.admin(Create(znodes.topic_path(topic.name), znodes.encode_topic(replicas)))
        return ""

    def client_nodes(self) -> list[int]:
        """Nodes of all clients of the plan, of those too that begin later."""
        return [FIRST_CLIENT_NODE + process for process in sorted({o.process for o in self.plan.operations})]

    # ---- the present state

    def stopped(self) -> tuple[int, ...]:
        """Brokers that do not run now."""
        hosts = self.world.hosts
        return tuple(broker for broker in self.broker_ids if not hosts[broker].up or hosts[broker].paused)

    def _powerless(self) -> set[int]:
        """Brokers whose power failed and that are down, or hold a log that is not whole again; and those
        whose power is about to fail."""
        behind = {
            node
            for partition in self.observed_state.partitions.values()
            for node, replica in partition.replicas.items()
            if replica.lost_from >= 0
        }
        return (
            behind
            | {node for node, fault in self.armed.items() if self.kinds[fault.kind].loses}
            | {node for node in self.observed_state.power_lost if not self.world.hosts[node].up}
        )

    # ---- faults

    def meet(self, fault: Fault) -> None:
        """The fault's time has come: carry it out, or wait for the event that it follows."""
        if fault.follows:
            self.following.append(fault)
        else:
            self.begin(fault)

    def recorded(self, event: Event) -> None:
        """Take one event down; the first fault that waits for it begins so long after it, with those of its
        moment; later ones wait for the next event."""
        self.events.append(event)
        self.observed_state.learn(event)
        if self.following:
            self._follow(event)

    def _follow(self, event: Event) -> None:
        waiting = [fault for fault in self.following if follows(fault, event)]
        for fault in waiting:
            if fault.at_ms == waiting[0].at_ms:
                self.following.remove(fault)
                self.world.scheduler.after(fault.delay_ms * MILLISECOND, self.begin, fault)

    def begin(self, fault: Fault) -> None:
        """Carry a fault out, if its target exists and the budget allows it."""
        kind = self.kinds[fault.kind]
        if kind.ask is not None:
            self._request(fault, kind.ask)
            return
        everybody = kind.on == "cluster"
        node = NOBODY if everybody else resolve(fault.target, self.observed_state, len(self.broker_ids))
        if node is not None and fault.inside in AWAITED and not self.healing:
            if earlier := self.awaiting.pop((node, fault.inside), None):
                self._skipped(earlier, f"no {fault.inside} came before fault {fault.fault_id}")
            self.awaiting[node, fault.inside] = fault
        else:
            self._strike(fault, node)

    def _strike(self, fault: Fault, node: int | None) -> None:
        kind = self.kinds[fault.kind]
        other = resolve(fault.other, self.observed_state, len(self.broker_ids)) if fault.other else None
        earlier = self.armed.get(NOBODY if node is None else node)
        if earlier is not None and _is_patient(earlier) and _is_armed(fault):
            self.end(earlier.fault_id)
        reason = self._why_not(fault, node, other)
        if node is None or reason:
            self._skipped(fault, reason)
            return
        if not _is_armed(fault):
            self._began(fault, node, other)
        self.active[fault.fault_id] = (fault, node)
        self.keeping.began(fault, kind, node, reached_by(kind, node, other, self.broker_ids), self.now)
        if kind.loses and self._keeps_acknowledged(fault):
            self.keeping.held.add(node)
        other = None if other == node else other
        kind.begin(SimulatedHit(kind=kind, fault=fault, node=node, other=other, cluster=self))
        if not _is_patient(fault):
            self.world.scheduler.after(fault.duration_ms * MILLISECOND, self.end, fault.fault_id)

    def _request(self, fault: Fault, ask: Ask) -> None:
        """Make an operator's request, unless it is too late for one. Its fault begins and ends with it,
        before what comes of it."""
        before = len(self.events)
        reason = self._why_not_now(asks_zookeeper=True) or ask(self, fault)
        if reason:
            self._skipped(fault, reason)
            return
        written, self.events[before:] = self.events[before:], []
        self._began(fault, -1)
        self.note(Name.FAULT_ENDED, cause=fault.kind, detail={"fault": fault.fault_id})
        self.events.extend(written)

    def _skipped(self, fault: Fault, reason: str) -> None:
        self.note(Name.FAULT_SKIPPED, cause=fault.kind, detail={"fault": fault.fault_id, "reason": reason})

    def _why_not_now(self, *, asks_zookeeper: bool) -> str:
        if self.healing:
            return "the cluster is healing"
        return "ZooKeeper is down" if asks_zookeeper and not self.world.zookeeper.up else ""

    def _why_not(self, fault: Fault, node: int | None, other: int | None) -> str:
        kind = self.kinds[fault.kind]
        if reason := self._why_not_now(asks_zookeeper=kind.asks_zookeeper):
            return reason
        if node is None:
            return f"nobody is {fault.target} now"
        if (
            kind.needs_up
            and fault.inside != STEP_START
            and (not self.world.hosts[node].up or self.world.hosts[node].paused)
        ):
            return f"broker {node} does not run"
        if _is_armed(fault) and node in self.armed:
            return f"broker {node} is about to go already"
        if kind.single and any(
            (known.kind, hit) == (fault.kind, node) for known, hit in self.active.values()
        ):
            return f"there is a {fault.kind} already"
        if kind.disk and self._sick_disk(node):
            return f"the disk of broker {node} has a fault already"
        if not self.budgeted(fault):
            return ""
        reason = outside_budget(
            kind,
            node,
            plan=self.plan,
            observed_state=self.observed_state,
            stopped=self.stopped(),
            powerless=self._powerless(),
        )
        if reason or not self._keeps_acknowledged(fault):
            return reason
        return self.keeping.why_not(
            kind,
            node,
            reached_by(kind, node, other, self.broker_ids),
            observed_state=self.observed_state,
            stopped=self.stopped(),
            now=self.now,
        )

    def _keeps_acknowledged(self, fault: Fault) -> bool:
        return self.plan.budget.keep_acknowledged and self.budgeted(fault)

    def budgeted(self, fault: Fault) -> bool:
        """Whether the fault budget decides about this fault."""
        return self.plan.budget.outside != "allow"

    def _began(self, fault: Fault, node: int, other: int | None = None) -> None:
        detail = {"fault": fault.fault_id, "target": fault.target, "parameter": fault.parameter}
        if other is not None:
            detail["other"] = other
        if fault.inside:
            detail["inside"] = fault.inside
        self.note(Name.FAULT_BEGAN, node=node, cause=fault.kind, detail=detail)

    def end(self, fault_id: int) -> None:
        """End a fault that is under way; nothing happens if it ended before. One that lost data ends when its
        host is started."""
        entry = self.active.pop(fault_id, None)
        if entry is None:
            return
        fault, node = entry
        if self.kinds[fault.kind].loses and node in self.keeping.held and not self.world.hosts[node].up:
            self.active[fault_id] = entry
            self.world.scheduler.after(LOOK_AGAIN_MS * MILLISECOND, self.end, fault_id)
            return
        kind = self.kinds[fault.kind]
        kind.end(SimulatedHit(kind=kind, fault=fault, node=node, cluster=self))
        self.keeping.ended(fault_id, self.now)
        if self.armed.get(node) is fault:
            del self.armed[node]
            self.world.hosts[node].disk.disarm_power_loss()
            self.keeping.spared(node)
            return
        self.note(Name.FAULT_ENDED, node=node, cause=fault.kind, detail={"fault": fault.fault_id})

    def restart_later(self, node: int, delay_ms: int) -> None:
        """Start the host's process after a while, if it is down then.

        Args:
            node: the host's number.
            delay_ms: virtual milliseconds until the start.
        """
        self.world.scheduler.after(delay_ms * MILLISECOND, self._restart, node)

    def _restart(self, node: int) -> None:
        if self.world.hosts[node].up:
            return
        if self.keeping.may_start(node, self.observed_state, self.now):
            self.stopping.pop(node, None)
            self.keeping.started(node, self.now)
            if (patient := self.armed.get(node)) is not None and _is_patient(patient):
                self.arm_power_loss(patient, node)
            self._strike_at(STEP_START, node)
            self.world.start(node)
        else:
            self.restart_later(node, LOOK_AGAIN_MS)

    def _strike_at(self, step: str, node: int) -> None:
        fault = self.awaiting.pop((node, step), None)
        if fault is not None:
            self._strike(fault, node)

    def arm_power_loss(self, fault: Fault, node: int) -> None:
        """Let the power fail, or the process die, at one of the host's next file calls, or at once.

        Args:
            fault: `parameter` is the number of the call, 0 is at once.
            node: the host's number.
        """
        self.armed[node] = fault
        if fault.parameter or fault.inside:
            calls, kills = max(1, fault.parameter), not self.kinds[fault.kind].loses
            self.world.arm_power_loss(node, calls, fault.inside, kills=kills)
        else:
            self.world.power_loss(node)

    def lost_power(self, node: int, report: PowerLossReport) -> None:
        """The power failed: the record says when.

        Args:
            node: the host's number.
            report: what the disk lost.
        """
        fault = self.armed.pop(node, None)
        if fault is None:
            self.restart_later(node, RESTART_AFTER_POWER_LOSS_MS)
            return
        self._began(fault, node)
        self._kept(node, report.logs, "power_loss")
        self.restart_later(node, fault.duration_ms)
        if _is_patient(fault):
            self.world.scheduler.after(fault.duration_ms * MILLISECOND, self.end, fault.fault_id)

    def _kept(self, node: int, logs: tuple[LogOnDisk, ...], cause: str) -> None:
        """Record what the disk says of its logs. A topic that was ever compacted may have gaps."""
        compacted = {topic.name for topic in self.plan.cluster.topics if "compact" in topic.cleanup_policy}
        compacted |= self.observed_state.compacted_topics
        for log in logs:
            gaps = log.topic in compacted or log.topic in INTERNAL_TOPICS
            self.recorded(durable_event(log, self.now, node, cause, gaps=gaps))

    # ---- stops and disks

    def _sick_disk(self, node: int) -> bool:
        return any(hit == node and self.kinds[fault.kind].disk for fault, hit in self.active.values())

    def stop_cleanly(self, node: int, delay_ms: int) -> None:
        """Ask the process to stop; `halted` is called when it has.

        Args:
            node: the host's number.
            delay_ms: virtual milliseconds between its end and its start.
        """
        self.stopping[node] = delay_ms
        self._strike_at(STEP_STOP, node)
        self.simulation.stop(node)

    def restart_in_order(self, node: int) -> None:
        """Do what an operator does with a broker that nobody told what it is to do.

        Args:
            node: the broker's number.
        """
        if self.world.hosts[node].up:
            fault = Fault(fault_id=STRAY + node, kind="clean_restart", at_ms=0, target=f"broker {node}")
            self._began(fault, node)
            self.stop_cleanly(node, 0)

    def halted(self, node: int, reason: str) -> None:
        """A broker ended itself: it had been asked to, or its disk failed.

        Args:
            node: the broker's number.
            reason: as the broker says it.
        """
        if self._sick_disk(node):
            self.halted_by_disk[node] = None
        else:
            self.restart_later(node, self.stopping.pop(node, RESTART_AFTER_HALT_MS))

    def failed(self, node: int, error: Exception, events: list[Event]) -> None:
        """A process ended by a mistake of its own: a finding, not the end of the run. A broker is started
        again like one that halted. A client stays away, and the outcome of what it did is unknown.

        Args:
            node: the host's number.
            error: what was raised.
            events: what the process recorded before.
        """
        for event in events:
            self.recorded(event if node in self.broker_ids else of_client(event, node - FIRST_CLIENT_NODE))
        if node in self.broker_ids:
            self.halted(node, str(error))

    def disk_healed(self, node: int) -> None:
        """Start the broker if it halted because of its disk."""
        if node in self.halted_by_disk:
            del self.halted_by_disk[node]
            self.restart_later(node, RESTART_AFTER_HALT_MS)

    def rot(self, node: int, choice: int) -> None:
        """Turn over a bit of a batch in the last segment of one of the broker's logs. A segment before the
        last is read again only if somebody asks for it, and Kafka believes what no checksum covers
        (offset, leader epoch, the checkpoints): neither would ever be found.

        Args:
            node: the host's number.
            choice: which log, modulo their count.
        """
        disk = self.world.hosts[node].disk
        last = {
            path.rpartition("/")[0]: path for path in sorted(self.world.files(node)) if path.endswith(".log")
        }
        logs = [path for _, path in sorted(last.items())]
        if not logs or disk.exists(CLEAN_SHUTDOWN):
            return  # a log that was closed whole is believed, too
        path = logs[choice % len(logs)]
        data, covered = disk.look(path), []
        assert isinstance(data, bytes), path
        with suppress(CorruptBatchError):
            for frame in checked_frames(data, check_crc=False):
                covered.append(range(frame.position + CRC_START, frame.position + frame.size))
        if disk.rot_bit_within(path, tuple(covered)) is not None:
            self._kept(node, disk.logs(), "bit_rot")

    def heal(self) -> None:
        """End every fault, and let every broker run."""
        self.healing = True
        for fault in self.following:
            self._skipped(fault, f"no {fault.follows} came")
        self.following.clear()
        for fault in self.awaiting.values():
            self._skipped(fault, f"no {fault.inside} came")
        self.awaiting.clear()
        for fault_id in sorted(self.active):
            self.end(fault_id)
        for broker in self.broker_ids:
            self.world.lose_zookeeper_replies(broker, 0)
            self.world.resume(broker)
            self._restart(broker)


def _is_armed(fault: Fault) -> bool:
    """Whether a fault begins when it strikes, inside a file call or at once."""
    return fault.kind == "power_loss" or _is_patient(fault)


def _is_patient(fault: Fault) -> bool:
    """Whether a fault waits for its step until the cluster is healed, as it costs nothing before."""
    return fault.kind == "crash" and bool(fault.inside)


def of_client(event: Event, process: int) -> Event:
    """An implementation error of a client: no broker is its node, its process is in the detail."""
    detail = msgspec.json.decode(event.detail, type=dict[str, Any]) | {"process": process}
    return evolve(event, node=-1, detail=msgspec.json.encode(detail).decode())
