"""Consumers in groups: their processes begin, pause, crash, leave and come back as the plan says, and consume
meanwhile by themselves, each poll in a transaction of its own if they transform what they read.

Owns which process runs, and how far each group got. Must not know the phases of a run, or what a process runs
on. What consumers do is not planned one by one: their rows of the trace have op ids of their own.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial

from attrs import define, evolve, field

from fencepost.impl.broker.parts import Parts
from fencepost.impl.client.consumer.consumer import Consumer
from fencepost.impl.client.consumer.requests import ConsumerIdentity
from fencepost.run.consumers import (
    PollLoop,
    Wish,
    close,
    make_consumer,
    make_transformer,
    resubscribe,
    seek,
    subscribe,
    work_long,
)
from fencepost.run.record import Record
from fencepost.traces.operations import CHANGED, SEEK, Function, Operation
from fencepost.traces.plan import CLOSING_MS, IN_ORDER, Plan, PlannedOperation, TransformOptions

TRANSFORM = "transform"
BEGINS = frozenset({TRANSFORM, "subscribe", "assign"})
FUNCTIONS = BEGINS | {"unsubscribe", "crash", "pause", "seek", "resubscribe"}
"""What a plan asks of a consumer's process."""
PAUSE_UNIT_MS = 100
WORKING = "working"
"""The argument of a pause of the application alone."""
LEAVING_MS = 200
"""How long a process that leaves its group is left to say so, before it ends."""
Key = tuple[str, int]
"""Topic and partition number."""


def uses_groups(plan: Plan) -> bool:
    """Whether consumers in groups take part."""
    return any(operation.function in FUNCTIONS for operation in plan.operations)


def transforms(plan: Plan) -> bool:
    """Whether processes of this plan write in transactions."""
    return any(operation.function == TRANSFORM for operation in plan.operations)


def _wanted(incarnations: Iterable["Incarnation"]) -> Iterator[tuple[str, str]]:
    """Groups, and each of the topics that these read for them."""
    return ((mine.group, topic) for mine in incarnations for topic in mine.topics)


def _wish(wish: Wish, consumer: Consumer) -> None:
    assert isinstance(consumer.application, PollLoop)
    consumer.application.wishes.append(wish)


@define
class Incarnation:
    """A consumer's process, since it was started last."""

    # How often it was started before.
    session: int
    group: str
    topics: tuple[str, ...]
    # Empty unless it transforms what it reads.
    transactional_id: str = ""
    # Whether it assigns itself its partitions.
    standalone: bool = False


@define(eq=False, kw_only=True)
class Members:
    """All of them. Topics are named as in the plan."""

    plan: Plan
    record: Record
    brokers: tuple[int, ...]
    parts: Parts = field(factory=Parts)
    # Of transactions.
    version: int = 1
    # What processes that transform do.
    transform: TransformOptions = field(init=False)
    # The last one of each process.
    incarnations: dict[int, Incarnation] = field(factory=dict)
    # The highest offset that a group got, or transformed, by group, topic and partition.
    reached: dict[tuple[str, str, int], int] = field(factory=dict)
    # Processes that sought: they pass on purpose what lies below where they went.
    seekers: set[int] = field(factory=set)

    def __attrs_post_init__(self) -> None:
        self.transform = self.plan.transform

    # ---- what differs between systems

    def running(self) -> Collection[int]:
        """The processes that run, paused ones included."""
        raise NotImplementedError

    def start(self, process: int) -> None:
        """Start its last incarnation, with `core` of it."""
        raise NotImplementedError

    def kill(self, process: int) -> None:
        """It is gone at once."""
        raise NotImplementedError

    def leave(self, process: int, verb: Callable[[Consumer], None], within_ms: int) -> None:
        """The `process` does `verb`, and ends `within_ms` later."""
        raise NotImplementedError

    def use(self, process: int, verb: Callable[[Consumer], None]) -> None:
        """Its application does this, as soon as its process goes on."""
        raise NotImplementedError

    def pause(self, process: int, duration_ms: int) -> None:
        """It stands still.

        Args:
            process: one that runs.
            duration_ms: for how long.
        """
        raise NotImplementedError

    def resume(self, process: int) -> None:
        """It goes on now."""
        raise NotImplementedError

    def name_of(self, topic: str) -> str:
        """The cluster's name of a topic."""
        return topic

    def group_of(self, key: str) -> str:
        """The cluster's name of a group."""
        return key

    def passed(self) -> Mapping[tuple[str, str, int], int]:
        """Up to which deleted offset members of each group are known to have read on."""
        return {}

    # ---- what the plan says

    def do(self, operation: PlannedOperation) -> None:
        """What the plan says of a process, if it makes sense now."""
        process, function = operation.process, operation.function
        runs = process in self.running()
        if function in BEGINS and not runs:
            group = self.group_of(operation.key)
            name = f"{group}-{operation.partition}" if function == TRANSFORM else ""
            self._begin(process, group, operation.topics, name, standalone=function == "assign")
        elif function == "crash" and runs:
            self._leave_commits(process)
            self.kill(process)
            self.record.crashed(operation, self.incarnations[process].session)
        elif function == "unsubscribe" and runs:
            self._leave_commits(process)
            if operation.argument == IN_ORDER and not self.incarnations[process].transactional_id:
                self.leave(process, partial(_wish, close), CLOSING_MS)
            else:
                self.leave(process, Consumer.close, LEAVING_MS)
        elif function in self._wishes(process) and runs:
            self.use(process, partial(_wish, self._wish_of(operation)))
        elif function == "pause" and runs:
            duration_ms = operation.records * PAUSE_UNIT_MS
            if operation.argument == WORKING:
                self.use(process, partial(work_long, duration_ms))
            else:
                self.pause(process, duration_ms)

    def _begin(
        self,
        process: int,
        group: str,
        topics: tuple[str, ...],
        transactional_id: str,
        *,
        standalone: bool = False,
    ) -> None:
        before = self.incarnations.get(process)
        session = 0 if before is None else before.session + 1
        self.incarnations[process] = Incarnation(session, group, topics, transactional_id, standalone)
        self.start(process)

    def _wish_of(self, operation: PlannedOperation) -> Wish:
        """What its application shall do before it polls again."""
        if operation.function == "seek":
            return partial(seek, operation)
        self.incarnations[operation.process].topics = operation.topics
        verb = subscribe if operation.argument == CHANGED else resubscribe
        return partial(verb, tuple(map(self.name_of, operation.topics)))

    def core(self, process: int) -> Consumer:
        """The core of its last incarnation."""
        mine = self.incarnations[process]
        options = self.plan.consumer_of(process, mine.session)
        identity = ConsumerIdentity(
            process=process,
            group=mine.group,
            topics=tuple(map(self.name_of, mine.topics)),
            session=mine.session,
            instance_id=f"instance-{process}" if options.static_members and not mine.standalone else None,
            standalone=mine.standalone,
        )
        if not mine.transactional_id:
            parts = self.parts
            return make_consumer(
                identity, options, self.brokers, parts.consumer_coordinator, parts.consumer_fetcher
            )
        transform = evolve(self.transform, output=self.name_of(self.transform.output))
        loop = self.parts.transform_loop(mine.transactional_id, transform, self.version)
        return make_transformer(identity, options, self.brokers, loop, self.parts.consumer_coordinator)

    # ---- progress

    def saw(self, row: Operation) -> None:
        """A row of a consumer is complete. What lies below the log start is gone (retention): nobody gets it,
        and a consumer that is beyond it is past it."""
        if row.function is Function.ASSIGN and row.argument == SEEK:
            self.seekers.add(row.process)
        if row.function not in (Function.POLL, Function.COMMIT) or row.group is None:
            return
        for position in row.positions if row.process in self.seekers else ():
            self.reach((row.group, position.topic, position.partition), position.offset - 1)
        if row.function is Function.COMMIT:
            return
        for record in row.records:
            self.reach((row.group, record.topic, record.partition), record.offset)
        for position in row.positions:
            gone = min(position.offset, position.log_start_offset or 0)
            self.reach((row.group, position.topic, position.partition), gone - 1)

    def _wishes(self, process: int) -> tuple[str, ...]:
        """What its application does for the asking."""
        mine = self.incarnations.get(process)
        if mine is None or mine.transactional_id:
            return ()
        return ("seek",) if mine.standalone else ("seek", "resubscribe")

    def _leave_commits(self, process: int) -> None:
        """Commits that are under way when a process ends may still count."""
        for row, _ in list(self.record.begun.values()):
            if row.process == process and row.function is Function.COMMIT and process in self.seekers:
                self.saw(row)

    def reach(self, key: tuple[str, str, int], offset: int) -> None:
        """A group got so far. key: the group, topic and partition."""
        self.reached[key] = max(offset, self.reached.get(key, -1))

    def heal(self, process: int) -> None:
        """The faults are over: nobody is paused, and of those that share a transactional id one stays: they
        would fence each other for ever. A group that lives on is left to its own members; in one that has
        none another process takes part from now on.

        Args:
            process: the number of the first of these; the others have those after it.
        """
        for known in self.running():
            self.resume(known)
        having: set[str] = set()
        for known in sorted(self.running()):
            name = self.incarnations[known].transactional_id
            if name and name in having:
                self.kill(known)
            having.add(name)
        alive = set(_wanted(self.incarnations[known] for known in self.running()))
        left = sorted(
            {
                (mine.group, mine.topics, bool(mine.transactional_id), mine.standalone)
                for mine in self.incarnations.values()
                if not alive.issuperset(_wanted((mine,)))
            }
        )
        for number, (group, topics, writes, standalone) in enumerate(left, process):
            name = f"{group}-{number}" if writes else ""
            self._begin(number, group, topics, name, standalone=standalone)

    def lagging(self, ends: Mapping[Key, int]) -> list[str]:
        """Groups that have not got the record at these offsets. One with a member beyond a record that was
        deleted before the group was stable does not lag.

        Args:
            ends: offset of the last record, by topic and partition.
        """
        passed = self.passed()
        return [
            f"{group} of {topic}-{partition}"
            for group, wanted in sorted(set(_wanted(self.incarnations.values())) - self._refusable())
            for (topic, partition), offset in sorted(ends.items())
            if topic == wanted
            and max(self.reached.get(key := (group, topic, partition), -1), passed.get(key, 0) - 1) < offset
        ]

    def _refusable(self) -> set[tuple[str, str]]:
        """Topics of groups that nobody may be left to read: a coordinator that has loaded a group knows one
        of its assignors, and refuses whoever does not name that one, as Kafka's does."""
        named: dict[str, list[tuple[set[str], tuple[str, ...]]]] = {}
        for process in self.running():
            mine = self.incarnations[process]
            options = self.plan.consumer_of(process, mine.session)
            names = {options.assignor, options.second_assignor} - {""}
            named.setdefault(mine.group, []).append((set() if mine.standalone else names, mine.topics))
        return {
            (group, topic)
            for group, members in named.items()
            for assignor in set().union(*(names for names, _ in members))
            for topic in {topic for _, topics in members for topic in topics}
            if not any(topic in topics for names, topics in members if assignor in names or not names)
        }
