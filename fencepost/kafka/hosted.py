"""An embedded cluster that is recorded, broken by name and judged: the campaign's cluster over the world of
systems/embedded.py.

Owns the bound of the record, faults that last until they are ended, and the end of a run. Must not know
threads, sockets (systems/embedded.py), or what users write (handle.py). Everything here runs in the loop's
thread.

The record is the simulator's: ZooKeeper's commits and the brokers' protocol events as they happen
(run/simulated/recorder.py). At the end the last phases of a run follow, in virtual time and therefore at
once: every fault ends, the cluster has to make progress, a client of its own reads every partition to its
end, all replicas' logs are compared.
"""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from attrs import define, evolve, field, frozen

from fencepost.bugs import parts_with
from fencepost.impl.admin.cluster_state import Assignment
from fencepost.impl.admin.topic_administration import create_topic
from fencepost.impl.broker.broker import Broker
from fencepost.impl.coordinator.group_states import GroupPhase
from fencepost.impl.core.broker_context import FIRST_WIRE_CLIENT
from fencepost.impl.core.core_interface import Effect
from fencepost.impl.messages.broker_api import InitProducerIdRequest
from fencepost.kafka.chaos import ApplicationChaos
from fencepost.kafka.chaos.draw import Strike
from fencepost.kafka.chaos.service_processes import Processes
from fencepost.kafka.recording.client_record import ClientRecord
from fencepost.kafka.request_faults import ClusterFaults
from fencepost.run.faults.kind import FaultKind
from fencepost.run.faults.roles import parse_role
from fencepost.run.faults.table import EMBEDDED_FAULTS
from fencepost.run.simulated.run import Run, WorkingCluster
from fencepost.sim.scheduler import MILLISECOND
from fencepost.systems.embedded import Embedded
from fencepost.systems.gateway import CLIENTS
from fencepost.systems.requests import carry_out
from fencepost.systems.system import UnsupportedError
from fencepost.traces.digest import digest_of
from fencepost.traces.errors import PlanError
from fencepost.traces.events import Event, Name
from fencepost.traces.kafka_names.internal_topics import INTERNAL_TOPICS
from fencepost.traces.kafka_names.outcomes import NO_ERROR
from fencepost.traces.operations import Operation
from fencepost.traces.plan import Fault, Plan
from fencepost.traces.plan_json import CREATES, Place, place_of
from fencepost.traces.trace import Trace

LOG = logging.getLogger("fencepost.kafka")
MOST_EVENTS = 250_000
"""Of the record: about a hundred megabytes. Beyond it nothing more is recorded; what was recorded is a whole
run up to there, and is judged as one."""
TARGET = "embedded"
"""The target of its traces."""
REBALANCE = "rebalance"
"""What the record calls a rebalance that was asked for."""
AT_WORK = frozenset({GroupPhase.STABLE, GroupPhase.COMPLETING})
"""States of a group in which a rebalance can be asked for. In the others one is under way, or the group is
empty."""
REPLICAS = 3
"""Of a topic that is created without saying how many: as many as Kafka's documentation recommends, or as
there are brokers."""
FOR_GOOD_MS = 10_000_000
"""Duration of a fault that lasts until it is ended: the most that a plan may say, 2.7 hours of virtual
time."""

NO_CONNECTION = 2 * FIRST_WIRE_CLIENT - 1
"""Connections are counted from FIRST_WIRE_CLIENT on: none comes so far."""
MOST_KNOWN = 10
"""Partitions that an error names."""
ALONE_MS = 100
"""Of a leader that is to be lost: time for some results, and far below replica.lag.time.max.ms, so that the
others may lead after it."""
DEAD_MS = 1_500
"""Above the session with ZooKeeper, 1 s, after which another one leads."""
TAKES_OVER_MS = 60_000
"""Kafka's default of transaction.timeout.ms, of a producer that takes over an id."""


@frozen(kw_only=True)
class Settings:
    """What a cluster is made of."""

    plan: Plan
    """Options, seed, network, disk and budget; it plans no operations and no faults."""
    directory: str | None = None
    """Of real files; None: simulated disks."""
    port: int = 0
    """Of the first broker; 0: any free ones."""
    most_events: int = MOST_EVENTS
    """Of the record."""
    listen: bool = True
    """Whether sockets are opened."""


@define(eq=False, kw_only=True)
class HostedCluster(WorkingCluster):
    """The cluster of a run (run/simulated/cluster_of_run.py), hosted by a system that outsiders talk to."""

    kinds: ClassVar = EMBEDDED_FAULTS
    settings: Settings
    system: Embedded = field(init=False)
    clients: ClientRecord = field(init=False)
    """What clients from outside did."""
    request_faults: ClusterFaults = field(init=False)
    """Faults of single requests."""
    processes: Processes = field(factory=Processes, init=False)
    """Of services under test."""
    full_at: int | None = field(default=None, init=False)
    """Virtual time at which the record was full; None while it is not."""
    faults: int = field(default=0, init=False)
    """That were asked for so far; ids of faults are numbers below."""
    _first_of_chaos: int = field(default=0, init=False)
    """Id of the first fault of the last chaos."""
    _end_of_chaos: int = field(default=0, init=False)
    """Above the id of its last one; not above the first once it was healed."""
    _refusals: dict[int, str] = field(factory=dict, init=False)
    """Why a fault could not begin, by its id."""
    _restarts: dict[int, int] = field(factory=dict, init=False)
    """Handles of the restarts that are planned, by broker."""

    def __attrs_post_init__(self) -> None:
        cluster = self.plan.cluster
        self.parts = parts_with(cluster.bugs)
        self.clients = ClientRecord(
            now=lambda: self.now,
            most=self.settings.most_events,
            closed=lambda: self.full_at is not None,
            on_full=self.close_record,
        )
        self.request_faults = ClusterFaults(
            seed=self.plan.seed,
            scheduler=lambda: self.system.world.scheduler,
            clients=self.clients,
            recorded=self.recorded,
        )
        self.system = Embedded(
            options=cluster,
            parts=self.parts,
            observer=self,
            on_commit=self.committed,
            tap=self.clients,
            hooks=self.request_faults.hook,
            network=self.plan.network,
            disk=self.plan.disk,
            seed=self.plan.seed,
            directory=self.directory,
            port=self.settings.port,
            listen=self.settings.listen,
        )
        self.world, self.scheduler = self.system.world, self.system.world.scheduler
        self.simulation = self.system.simulation
        self.broker_ids = self.system.brokers

    @property
    def directory(self) -> Path | None:
        """Where brokers' files are; None: on simulated disks."""
        return None if self.settings.directory is None else Path(self.settings.directory)

    # ---- the record

    def recorded(self, event: Event) -> None:
        """Record one event, unless the record is full. Roles, and faults that follow an event, use it in any
        case."""
        if len(self.events) >= self.settings.most_events:
            self.close_record()
        if self.full_at is None:
            super().recorded(event)
            return
        self.observed_state.learn(event)
        if self.following:
            self._follow(event)

    def close_record(self) -> None:
        """Record nothing more, because a bound is met: neither events nor operations, so that what is
        recorded is a whole run up to now."""
        if self.full_at is None:
            self.full_at = self.now
            LOG.warning(
                "the record of an embedded cluster is full: %d events, %d records sent and reads, of at most"
                " %d each, at %d ms of its time; it is judged up to there",
                len(self.events),
                self.clients.size,
                self.settings.most_events,
                self.now // MILLISECOND,
            )

    def history(self, known: Mapping[int, Operation]) -> tuple[Operation, ...]:
        """Those of the run's own clients and of connections, by invoke time."""
        rows = [*super().history(known), *self.clients.operations()]
        return tuple(sorted(rows, key=lambda row: (row.invoke_time, row.op_id)))

    def client_nodes(self) -> list[int]:
        """All clients from outside are one node of the network."""
        return [CLIENTS]

    # ---- faults

    def fault(
        self, kind: str, target: str, *, duration_ms: int | None, other: str = "", parameter: int = 0
    ) -> int:
        """Begin a fault and answer its id. duration_ms: None until it is ended. Raises PlanError for what is
        no fault, and where it cannot begin now."""
        known = self._known(kind)
        if known.on == "broker":
            parse_role(target)
        if kind != CREATES:
            for name in (target, other):
                self.exists(place_of(name), f"the target {name!r} of a fault")
        try:
            fault = Fault(
                fault_id=self.faults,
                kind=kind,
                at_ms=self.now // MILLISECOND,
                duration_ms=FOR_GOOD_MS if duration_ms is None else duration_ms,
                target=target,
                other=other,
                parameter=parameter,
            )
        except (TypeError, ValueError) as error:
            raise PlanError(expected="the fields of a fault", seen=str(error), where=f"a {kind}") from None
        self.faults += 1
        self.begin(fault)
        refusal = self._refusals.pop(fault.fault_id, "")
        if refusal:
            raise PlanError(
                expected=f"a cluster in which {kind} can hit {target}",
                seen=refusal,
                where="an embedded cluster",
            )
        return fault.fault_id

    def exists(self, place: Place | None, where: str) -> None:
        """Raises PlanError for a partition that there is not, such as one of a mistyped topic; an internal
        topic may come later. place: what a person named, None: nothing. where: for the error."""
        if place is None or place[0] in INTERNAL_TOPICS or self.observed_state.assignments.get(place):
            return
        known = sorted(
            f"{name}-{number}" for (name, number), ids in self.observed_state.assignments.items() if ids
        )
        raise PlanError(
            expected=f"a partition that exists: {', '.join(known[:MOST_KNOWN]) or 'there is none yet'}",
            seen=f"{place[0]}-{place[1]}",
            where=where,
        )

    def _skipped(self, fault: Fault, reason: str) -> None:
        super()._skipped(fault, reason)
        if not self.budgeted(fault):
            self._refusals[fault.fault_id] = reason

    def budgeted(self, fault: Fault) -> bool:
        """Faults that somebody asks for by name begin; those of chaos only within the budget."""
        return self._first_of_chaos <= fault.fault_id < self._end_of_chaos

    def chaos(self, faults: tuple[Fault, ...]) -> None:
        """Begin these faults at their times from now, each within the budget or not at all. Those of an
        earlier chaos that have not begun by now never do."""
        for fault in faults:
            self._known(fault.kind)
        self._first_of_chaos, self.faults = self.faults, self.faults + len(faults)
        self._end_of_chaos = self.faults
        for number, fault in enumerate(faults, self._first_of_chaos):
            self.world.scheduler.after(
                fault.at_ms * MILLISECOND, self._meet_chaos, evolve(fault, fault_id=number)
            )

    def chaos_at_applications(self, seed: int, only: frozenset[str] | None = None) -> None:
        """Strike the clients under test from now on; an earlier chaos of this kind ends. only: names of the
        strikes that are carried out; None: all."""
        listeners, faults = self.system.listeners, self.request_faults
        self._end_aimed()
        faults.chaos = ApplicationChaos(
            seed=seed,
            now=lambda: self.now,
            after=lambda delay_ms, function: self.world.scheduler.after(delay_ms * MILLISECOND, function),
            port_of=(lambda source: 0) if listeners is None else listeners.port_of,
            arm=faults.arm,
            disarm=faults.engine.end,
            rebalance=self._rebalance_somewhere,
            take_over=self._take_over,
            lose_leader=self._lose_leader,
            note=self._note_strike,
            processes=self.processes,
            only=only,
        )

    def _end_aimed(self) -> None:
        if self.request_faults.chaos is not None:
            self.request_faults.chaos.end()

    def _rebalance_somewhere(self, group_id: str) -> None:
        for broker in self.broker_ids:
            if self.coordinates(broker, group_id):
                self.rebalance(broker, group_id)
                return

    def _take_over(self, transactional_id: str) -> None:
        """Ask for a transactional id as another producer does, which fences the present one; no connection
        gets the answer, and only its coordinator does it."""
        request = InitProducerIdRequest(
            correlation_id=0, transactional_id=transactional_id, transaction_timeout_ms=TAKES_OVER_MS
        )

        def ask(core: Broker, now: int) -> list[Effect]:
            core.broker_context.now, core.broker_context.outbox = now, []
            core.transactions.coordinator.init_producer_id(NO_CONNECTION, request)
            return core.broker_context.outbox

        for broker in self.broker_ids:
            if self.world.hosts[broker].core is not None:
                self.world.hosts[broker].invoke(ask)

    def _lose_leader(self, topic: str, partition: int) -> None:
        """Cut a leader off from the other brokers for a moment, in which it answers what does not wait for
        them, and let it die then."""
        leader = self.observed_state.partition((topic, partition)).leader
        if leader in self.broker_ids:
            target = f"broker {leader}"
            self.fault("partition", target, duration_ms=ALONE_MS)
            self.world.scheduler.after(
                ALONE_MS * MILLISECOND, lambda: self.fault("crash", target, duration_ms=DEAD_MS)
            )

    def _note_strike(self, strike: Strike) -> None:
        cause = f"service_{strike.act}"
        self.note(Name.FAULT_BEGAN, cause=cause, detail={"target": "the service", "says": str(strike)})
        self.note(Name.FAULT_ENDED, cause=cause)

    def _meet_chaos(self, fault: Fault) -> None:
        if self.budgeted(fault):
            self.meet(fault)

    def _known(self, kind: str) -> FaultKind:
        known = self.kinds.get(kind)
        if known is None:
            raise PlanError(
                expected=f"one of {', '.join(self.kinds)}",
                seen=repr(kind),
                where="a fault of an embedded cluster",
            )
        if self.directory is not None and (known.loses or known.rots or known.lies):
            raise UnsupportedError(
                expected="a fault that real files can have",
                seen=kind,
                where=f"a cluster with its files in {self.directory}",
                hint="leave the option directory out: the simulated disk can do it",
            )
        return known

    def end_faults(self, broker: int, *, stops: bool | None = None) -> None:
        """End what is under way on this broker. stops: only faults that stop it, or only the others; None:
        all."""
        for fault_id, (fault, node) in sorted(self.active.items()):
            if node == broker and stops in (None, self.kinds[fault.kind].stops):
                self.end(fault_id)

    def bring_back(self, broker: int) -> None:
        """End what stops this broker, and start it if it is down, whatever the budget says."""
        self.keeping.held.discard(broker)
        self.end_faults(broker, stops=True)
        self.stopping.pop(broker, None)
        self._cancel_restart(broker)
        self._restart(broker)

    def heal(self) -> None:
        """End every fault, and let every broker run; faults may begin again after it."""
        self._end_of_chaos = self._first_of_chaos
        self._end_aimed()
        self.request_faults.engine.heal()
        super().heal()
        self.healing = False

    def restart_later(self, node: int, delay_ms: int) -> None:
        """Start the host's process after a while, if it is down then. Only the last planned restart counts.

        Args:
            node: the host's number.
            delay_ms: virtual milliseconds until the start.
        """
        self._cancel_restart(node)
        self._restarts[node] = self.world.scheduler.after(delay_ms * MILLISECOND, self._restart, node)

    def _restart(self, node: int) -> None:
        self._restarts.pop(node, None)
        super()._restart(node)

    def _cancel_restart(self, node: int) -> None:
        handle = self._restarts.pop(node, None)
        if handle is not None:
            self.world.scheduler.cancel(handle)

    def coordinates(self, broker: int, group_id: str) -> bool:
        """Whether this broker answers for the group: it leads its offsets partition, and has loaded it."""
        core = self.world.hosts[broker].core
        return (
            core is not None
            and core.groups.log.not_coordinator(core.groups.table.number_of(group_id)) is NO_ERROR
        )

    def rebalance(self, broker: int, group_id: str) -> str:
        """Let the members of a group join again, as if one had come; its coordinator is this broker. Answers
        the state that the group was in: if it is none of AT_WORK, nothing happened ("" without the group)."""
        seen: list[str] = []

        def prepare(core: Broker, now: int) -> list[Effect]:
            broker_context, group = core.broker_context, core.groups.table.groups.get(group_id)
            broker_context.now, broker_context.outbox = now, []
            if group is not None:
                seen.append(group.phase.value)
            if group is not None and group.phase in AT_WORK:
                self.note(Name.FAULT_BEGAN, cause=REBALANCE, detail={"target": f"group {group_id}"})
                core.groups.membership.prepare(group, "somebody asked for it")
                self.note(Name.FAULT_ENDED, cause=REBALANCE)
            return broker_context.outbox

        self.world.hosts[broker].invoke(prepare)
        return seen[0] if seen else ""

    # ---- topics

    def add_topic(
        self, name: str, partitions: int, replication_factor: int | None, config: Mapping[str, str]
    ) -> Assignment:
        """Create a topic as the admin tool does. replication_factor: None for 3, or as many as there are
        brokers. Raises AdminError."""
        factor = replication_factor or min(REPLICAS, len(self.broker_ids))
        steps = create_topic(
            name, partitions=partitions, replication_factor=factor, draw=lambda below: 0, config=config
        )
        assignment: Assignment = carry_out(steps, self.world.admin)
        return assignment


@define(eq=False, kw_only=True)
class HostedRun(Run):
    """A run whose safety phase lasts as long as its users like."""

    settings: Settings
    ended: Trace | None = field(default=None, init=False)
    """The trace of the whole run; None until `end`."""

    def _make_cluster(self) -> HostedCluster:
        return HostedCluster(plan=self.plan, settings=self.settings)

    def begin(self) -> None:
        """The brokers run: the safety phase begins."""
        self.begin_phase("safety")

    def trace(self) -> Trace:
        """The run so far, with the replicas' logs as they are now; the whole run once it has ended."""
        if self.ended is not None:
            return self.ended
        recorded = len(self.cluster.events)
        self._read_files()
        try:
            return self._named(self._trace())
        finally:
            del self.cluster.events[recorded:]

    def end(self) -> Trace:
        """Heal the cluster, demand progress, read everything to its end. In virtual time, at once. Ending
        again answers the same."""
        if self.ended is None:
            if self._hosted.full_at is None:
                self.ended = self._named(self.end_of_run())
            else:
                self._read_files()
                self.ended = self._named(self._trace())
        return self.ended

    def _named(self, trace: Trace) -> Trace:
        clients = self._hosted.clients
        claims = trace.claims
        if clients.repeated:
            reason = "a plain producer sent records again whose first attempt had no answer"
            claims = evolve(claims, duplicates=True, dense=False, reasons=(*claims.reasons, reason))
        spoken = clients.spoken(max((event.time for event in trace.events), default=0))
        named = evolve(
            trace,
            target=TARGET,
            claims=claims,
            unique_values=not clients.alike,
            concurrent_processes=True,
            events=tuple(sorted((*trace.events, *spoken), key=lambda event: event.time)),
        )
        return evolve(named, digest=digest_of(named))

    @property
    def _hosted(self) -> HostedCluster:
        assert isinstance(self.cluster, HostedCluster)
        return self.cluster
