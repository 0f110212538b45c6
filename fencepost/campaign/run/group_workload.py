"""Consumers in groups: their processes begin, pause, crash, leave and come back as the plan says, and
consume meanwhile by themselves.

Owns the processes. Must not know the phases of a run. What consumers do is not planned one by one: their rows
of the trace have op ids of their own.
"""

from functools import partial

from attrs import define, evolve, field

from fencepost.campaign.run.group_consumer import make_consumer, make_transformer
from fencepost.campaign.run.recorder import Recorder, crash_row
from fencepost.impl.broker.parts import Parts
from fencepost.impl.client.consumer.consumer import Consumer
from fencepost.impl.client.consumer.requests import ConsumerIdentity
from fencepost.impl.client.transaction.transform import TransformLoop
from fencepost.impl.core.core_interface import Core
from fencepost.impl.core.files import FileSystem
from fencepost.sim.host import Host
from fencepost.sim.scheduler import MILLISECOND
from fencepost.sim.world import FIRST_CLIENT_NODE, World
from fencepost.traces.operations import Function, Operation
from fencepost.traces.plan import Plan, PlannedOperation, TransformOptions

CONSUMER_FUNCTIONS = frozenset({"subscribe", "unsubscribe", "crash", "pause", "transform"})
PAUSE_UNIT_MS = 100
LEAVING_MS = 200
"""How long a process that leaves its group is left to say so, before it ends."""


def uses_groups(plan: Plan) -> bool:
    """Whether consumers in groups take part."""
    return any(operation.function in CONSUMER_FUNCTIONS for operation in plan.operations)


@define
class Incarnation:
    """A consumer process: since when (session), of which group and topic. transactional_id: empty unless it
    transforms what it reads."""

    session: int
    group: str
    topic: str
    transactional_id: str = ""


@define(eq=False)
class GroupWorkload:
    """incarnations: the last one of each process. live: processes that run. reached: the highest offset that
    a group got of each partition."""

    plan: Plan
    parts: Parts
    world: World
    recorder: Recorder
    brokers: tuple[int, ...]
    # What processes that transform do.
    transform: TransformOptions = field(init=False)
    incarnations: dict[int, Incarnation] = field(factory=dict)
    live: dict[int, None] = field(factory=dict)
    reached: dict[tuple[str, str, int], int] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.transform = self.plan.transform

    # ---- processes

    def do(self, operation: PlannedOperation) -> None:
        """What the plan says of a consumer process, if it makes sense now."""
        process, runs = operation.process, operation.process in self.live
        if operation.function == "subscribe" and not runs:
            self._subscribe(process, operation.key, operation.topic)
        elif operation.function == "transform" and not runs:
            transactional_id = f"{operation.key}-{operation.partition}"
            self._subscribe(process, operation.key, operation.topic, transactional_id)
        elif operation.function == "crash" and runs:
            self._crash(operation)
        elif operation.function == "unsubscribe" and runs:
            self._host(process).invoke(lambda core, now: core.use(Consumer.close, now))
            del self.live[process]
            delay = LEAVING_MS * MILLISECOND
            self.world.scheduler.after(delay, self._end, process, self.incarnations[process].session)
        elif operation.function == "pause" and runs:
            self.world.pause(FIRST_CLIENT_NODE + process)
            delay = operation.records * PAUSE_UNIT_MS * MILLISECOND
            self.world.scheduler.after(delay, self.world.resume, FIRST_CLIENT_NODE + process)

    def _host(self, process: int) -> Host:
        return self.world.hosts[FIRST_CLIENT_NODE + process]

    def _subscribe(self, process: int, group: str, topic: str, transactional_id: str = "") -> None:
        node, before = FIRST_CLIENT_NODE + process, self.incarnations.get(process)
        if before is not None and self.world.hosts[node].up:
            self.world.crash(node)
        session = 0 if before is None else before.session + 1
        self.incarnations[process] = Incarnation(session, group, topic, transactional_id)
        if before is None:
            self.world.add_host(node, partial(self._make, process), zookeeper=False)
        self.live[process] = None
        self.world.start(node)

    def _make(self, process: int, files: FileSystem, now: int) -> Core:
        mine, options = self.incarnations[process], self.plan.consumer
        identity = ConsumerIdentity(
            process=process,
            group=mine.group,
            topics=(mine.topic,),
            session=mine.session,
            instance_id=f"instance-{process}" if options.static_members else None,
        )
        if mine.transactional_id:
            version = self.plan.cluster.transactions.version
            loop = self.parts.transform_loop(mine.transactional_id, self.transform, version)
            return make_transformer(identity, options, self.brokers, loop, self.parts.consumer_coordinator)
        return make_consumer(identity, options, self.brokers, self.parts.consumer_coordinator)

    def _crash(self, operation: PlannedOperation) -> None:
        process, now = operation.process, self.recorder.now
        self.world.crash(FIRST_CLIENT_NODE + process)
        del self.live[process]
        self.recorder.operations.append(crash_row(operation, self.incarnations[process].session, now))

    def _end(self, process: int, session: int) -> None:
        if self.incarnations[process].session == session:
            self.world.crash(FIRST_CLIENT_NODE + process)

    # ---- progress

    def saw(self, row: Operation) -> None:
        """A row of a consumer is complete. What lies below the log start is gone (retention): nobody gets it,
        and a consumer that is beyond it is past it."""
        if row.function is not Function.POLL or row.group is None:
            return
        for record in row.records:
            self._reach((row.group, record.topic, record.partition), record.offset)
        for position in row.positions:
            gone = min(position.offset, position.log_start_offset or 0)
            self._reach((row.group, position.topic, position.partition), gone - 1)

    def _reach(self, key: tuple[str, str, int], offset: int) -> None:
        self.reached[key] = max(offset, self.reached.get(key, -1))

    def heal(self, process: int) -> None:
        """The faults are over: nobody is paused. A group that lives on is left to its own members; in one
        that has none another consumer takes part from now on, with process numbers from this one."""
        for known in self.live:
            self.world.resume(FIRST_CLIENT_NODE + known)
        self._end_zombies()
        alive = {(self.incarnations[known].group, self.incarnations[known].topic) for known in self.live}
        groups = sorted(
            {
                (mine.group, mine.topic, bool(mine.transactional_id))
                for mine in self.incarnations.values()
                if (mine.group, mine.topic) not in alive
            }
        )
        for number, (group, topic, transforms) in enumerate(groups, process):
            self._subscribe(number, group, topic, f"{group}-{number}" if transforms else "")

    def settle(self) -> bool:
        """From now on nobody aborts a transaction by choice, or gives a batch up before it may be answered;
        returns whether anybody did. A group that does gets no further, however healthy the cluster is."""
        patient = max(self.transform.attempts, TransformOptions().attempts)
        settled = evolve(self.transform, aborts_ppm=0, attempts=patient)
        cores = (self._host(known).core for known in self.live)
        loops = [core.application for core in cores if isinstance(core, Consumer)]
        if settled == self.transform or not any(isinstance(loop, TransformLoop) for loop in loops):
            return False
        self.transform = settled
        for loop in loops:
            if isinstance(loop, TransformLoop):
                loop.go_on_with(settled)
        return True

    def _end_zombies(self) -> None:
        """Of processes that share a transactional id one stays: they would fence each other for ever."""
        having: dict[str, int] = {}
        for known in sorted(self.live):
            name = self.incarnations[known].transactional_id
            if name and having.setdefault(name, known) != known:
                self.world.crash(FIRST_CLIENT_NODE + known)
                del self.live[known]

    def _passed(self, deleted: dict[tuple[str, int], int]) -> dict[tuple[str, str, int], int]:
        """Up to which deleted offset members of each group read on: an empty poll shows no position."""
        found: dict[tuple[str, str, int], int] = {}
        for process in self.live:
            core = self._host(process).core
            if isinstance(core, Consumer):
                group = self.incarnations[process].group
                for place, position in core.fetcher.positions.items():
                    key = group, *place
                    found[key] = max(min(position, deleted.get(place, 0)), found.get(key, 0))
        return found

    def lagging(self, ends: dict[tuple[str, int], int], deleted: dict[tuple[str, int], int]) -> list[str]:
        """Groups that have not got the record at these offsets.

        Args:
            ends: offset of the last record, by topic and partition.
            deleted: offset below which retention deleted, by topic and partition: a group with a member
                beyond a record that was deleted before the group was stable does not lag.
        """
        passed = self._passed(deleted)
        return [
            f"{group} of {topic}-{partition}"
            for group, wanted in sorted({(mine.group, mine.topic) for mine in self.incarnations.values()})
            for (topic, partition), offset in sorted(ends.items())
            if topic == wanted
            and max(self.reached.get(key := (group, topic, partition), -1), passed.get(key, 0) - 1) < offset
        ]
