"""The operations of consumer groups in one trace: joins, commits, fetches of committed offsets, and polls of
members.

Owns these relations; docs/reference/traces.md says which columns have them. Must not know the rules.
"""

from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate

from attrs import define, evolve, field, frozen

from fencepost.checkers.operation_columns import NEVER
from fencepost.traces.operations import ACKS_ALL, CHANGED, COOPERATIVE, SEEK, Function, Operation, Outcome
from fencepost.traces.trace import Claims, Trace

Partition = tuple[str, int]
"""Topic and partition."""
NO_GENERATION = -1
NO_EPOCH = -1
"""The coordinator epoch of a response that does not report one."""
NOTHING = -1
"""The committed offset if nothing is committed."""
MILLISECOND = 1_000_000
_OF_GROUPS = frozenset(
    {Function.JOIN, Function.COMMIT, Function.FETCH_COMMITTED, Function.POLL}
    | {Function.ASSIGN, Function.SUBSCRIBE}
)


@define(kw_only=True)
class Join:
    """A member joined a generation."""

    # The operation.
    op_id: int
    # The member that joined.
    member: str
    # The generation that it joined.
    generation: int
    # Invocation time in nanoseconds.
    invoke: int
    # Completion time in nanoseconds.
    completion: int
    # The assigned partitions, each with the offset where the member begins (-1: not reported).
    partitions: dict[Partition, int]
    # The coordinator epoch of the response.
    epoch: int = NO_EPOCH
    # Process and session of the client.
    who: tuple[int, int] = (0, 0)
    # Whether the client keeps what it had before and is assigned again (KIP-429).
    cooperative: bool = False


@define(kw_only=True)
class Commit:
    """A commit of the offset of one partition."""

    # The operation.
    op_id: int
    # The member that committed; "" outside of a group.
    member: str
    # The generation of the member.
    generation: int
    # The committed offset.
    offset: int
    # Invocation time in nanoseconds.
    invoke: int
    # Completion time in nanoseconds; NEVER if the outcome is unknown.
    completion: int
    # Whether the commit was acknowledged.
    ok: bool
    # The latest time at which it can have taken effect: its completion if it was acknowledged, otherwise the
    # time at which a higher generation was known (NEVER if none was).
    latest: int
    # The epoch in which the coordinator answered.
    epoch: int = NO_EPOCH
    # Process and session of the client.
    who: tuple[int, int] = (0, 0)
    # How often the client had sent it by then.
    attempts: int = 1
    # auto, sync, async: the client commits what its polls returned. before: it commits before processing. ""
    # if the history does not say.
    mode: str = ""


@define(kw_only=True)
class Fetch:
    """A fetch of the committed offset of one partition."""

    # The operation.
    op_id: int
    # The committed offset that was returned (-1: none).
    offset: int
    # Invocation time in nanoseconds.
    invoke: int
    # Completion time in nanoseconds.
    completion: int
    # The epoch in which the coordinator answered. A coordinator that does not know its successor may return
    # what was correct in its own epoch; Kafka accepts that.
    epoch: int = NO_EPOCH
    # Process and session of the client.
    who: tuple[int, int] = (0, 0)


@define(kw_only=True)
class Got:
    """The offsets of one partition that one poll returned to a member."""

    # The operation.
    op_id: int
    # The process of the client.
    process: int
    # The session of the client.
    session: int
    # The member that polled.
    member: str
    # Its generation.
    generation: int
    # Invocation time in nanoseconds.
    invoke: int
    # Completion time in nanoseconds.
    completion: int
    # The offsets of the records, in the order of the poll.
    offsets: tuple[int, ...]


@define(kw_only=True)
class Began:
    """A poll that read from this offset."""

    op_id: int
    # Process and session of the client.
    who: tuple[int, int]
    generation: int
    completion: int
    offset: int
    # The log start that the poll showed; None: not claimed.
    log_start: int | None = None
    # Whether it shows committed records only.
    committed: bool = False


@frozen(kw_only=True)
class Sought:
    """A member sought, in every partition that it had but those in `kept`."""

    op_id: int
    # Process and session of the client.
    who: tuple[int, int]
    generation: int
    invoke: int
    kept: frozenset[Partition]
    # The offsets that the application named.
    named: dict[Partition, int]


@frozen(kw_only=True)
class Landing:
    """Where a member was after it had sought."""

    # The operation that sought, and the one that shows where it led to.
    op_id: int
    shown_by: int
    who: tuple[int, int]
    generation: int
    # When it sought.
    invoke: int
    offset: int
    # The poll that shows it; None: a commit does.
    poll: Began | None
    # The offset that the application named; None: none.
    named: int | None


@define
class GroupOperations:
    """The operations of one group."""

    # The name of the group.
    name: str
    # Successful joins in the order of invocation.
    joins: list[Join] = field(factory=list)
    # (completion, generation, op id) of every operation that proves a generation, in the order of completion.
    known: list[tuple[int, int, int]] = field(factory=list)
    # For each entry of `known` the highest generation so far.
    highest: list[int] = field(factory=list)
    # Commits by partition, in the order of invocation.
    commits: dict[Partition, list[Commit]] = field(factory=dict)
    # Fetches by partition, in the order of invocation.
    fetches: dict[Partition, list[Fetch]] = field(factory=dict)
    # The records that polls returned, by partition, in the order of invocation.
    got: dict[Partition, list[Got]] = field(factory=dict)
    # The start offsets of polls by partition, with or without records.
    begun: dict[Partition, list[Began]] = field(factory=dict)
    seeks: list[Sought] = field(factory=list)
    # (process, session, op id) of joins, subscriptions and assignments: positions are others from then on.
    anew: list[tuple[int, int, int]] = field(factory=list)
    # When each client subscribed or assigned anew, or lost what it had.
    dropped: dict[tuple[int, int], list[int]] = field(factory=dict)
    # By client and generation, where it goes on in what it keeps: its join, and the one before.
    continued: dict[tuple[tuple[int, int], int], tuple[Join, Join]] = field(factory=dict)
    _landed: dict[Partition, list[Landing]] = field(factory=dict, repr=False)

    @property
    def partitions(self) -> list[Partition]:
        """Every partition that some operation names."""
        return sorted({*self.commits, *self.fetches, *self.got})

    def since(self, who: tuple[int, int], generation: int, partition: Partition) -> int:
        """The generation in which a client began to have a partition that it has in `generation`, or has
        given up in it."""
        while found := self.continued.get((who, generation)):
            if partition not in found[1].partitions:
                break
            generation = found[1].generation
        return generation

    def landings(self, partition: Partition) -> list[Landing]:
        """`_landings`, found once: several rules ask."""
        if partition not in self._landed:
            self._landed[partition] = self._landings(partition)
        return self._landed[partition]

    def _landings(self, partition: Partition) -> list[Landing]:
        """Where members were in the partition after they had sought: what the first poll or commit shows of
        the same client and generation. An operation id of a client is above those before it."""
        if not self.seeks:
            return []
        found = []
        shown: list[Began | Commit] = [*self.begun.get(partition, []), *self.commits.get(partition, [])]
        for sought in self.seeks:
            mine = [
                each
                for each in shown
                if each.who == sought.who
                and each.op_id > sought.op_id
                and self.since(each.who, each.generation, partition)
                == self.since(sought.who, sought.generation, partition)
            ]
            if partition in sought.kept or not mine:
                continue
            first = min(mine, key=lambda each: each.op_id)
            later = [(*each.who, each.op_id) for each in self.seeks if partition not in each.kept]
            if any(
                (process, session) == sought.who and sought.op_id < op_id < first.op_id
                for process, session, op_id in (*later, *self.anew)
            ):
                continue
            found.append(
                Landing(
                    op_id=sought.op_id,
                    shown_by=first.op_id,
                    who=sought.who,
                    generation=sought.generation,
                    invoke=sought.invoke,
                    offset=first.offset,
                    poll=first if isinstance(first, Began) else None,
                    named=sought.named.get(partition),
                )
            )
        return found

    def generation_known(self, above: int) -> tuple[int, int]:
        """When a higher generation than this was first known, and by which operation; (NEVER, -1) if
        never."""
        at = bisect_right(self.highest, above)
        return (self.known[at][0], self.known[at][2]) if at < len(self.known) else (NEVER, -1)


@frozen(kw_only=True)
class GroupHistory:
    """The groups of one trace.

    Attributes:
        groups: by name.
        occupied: by partition, the offsets that are known to hold a record, each with an operation that
            proves it.
        shown: by partition, an offset of a record that a poll showed, or that was acknowledged with acks=all,
            and when that was known.
        ended: when each incarnation (process, session) ended.
        slack: how far two times of different clocks must be apart to be ordered, in nanoseconds.
    """

    groups: dict[str, GroupOperations]
    occupied: dict[Partition, dict[int, int]]
    shown: dict[Partition, list[tuple[int, int]]]
    ended: dict[tuple[int, int], int]
    slack: int


def may_be_expired(claims: Claims, commit: Commit, moment: int) -> bool:
    """Whether the broker may have removed a commit by a moment of the same clock. Older brokers count from
    the commit, later ones from when the group was empty (KIP-211): the earlier of the two is allowed.

    Args:
        claims: of the trace.
        commit: of an offset.
        moment: nanoseconds.
    """
    expiry_ms = claims.offsets_expiry_ms
    return expiry_ms >= 0 and commit.invoke + expiry_ms * MILLISECOND <= moment


def history_of(trace: Trace) -> GroupHistory:
    """The groups of a trace."""
    ordered = sorted(trace.operations, key=lambda operation: (operation.invoke_time, operation.op_id))
    groups: dict[str, GroupOperations] = {}
    for operation in ordered:
        if operation.group is None or operation.function not in _OF_GROUPS:
            continue
        if operation.outcome is not Outcome.FAIL:
            _add(groups.setdefault(operation.group, GroupOperations(operation.group)), operation)
    for group in groups.values():
        group.known.sort()
        group.highest = list(accumulate((generation for _, generation, _ in group.known), max))
        _set_latest(group)
        _set_continued(group)
    clocks = {operation.clock_id for operation in ordered if operation.group is not None}
    history = GroupHistory(
        groups=groups,
        occupied=_occupied(ordered),
        shown=_shown(ordered),
        ended=_ended(ordered),
        slack=2 * trace.claims.clock_uncertainty_ns if len(clocks) > 1 else 0,
    )
    if trace.claims.offsets_expiry_ms >= 0:
        for group in groups.values():
            _leave_out_expired(trace.claims, history.slack, group)
    return history


def _leave_out_expired(claims: Claims, slack: int, group: GroupOperations) -> None:
    """Drop fetches that found nothing where everything acknowledged before may have expired: they say nothing
    of the commits."""
    for partition, fetches in group.fetches.items():
        commits = [commit for commit in group.commits.get(partition, []) if commit.ok]
        group.fetches[partition] = [
            fetch
            for fetch in fetches
            if fetch.offset != NOTHING
            or not all(
                may_be_expired(claims, commit, fetch.completion + slack)
                for commit in commits
                if commit.completion + slack < fetch.invoke
            )
        ]


def _add(group: GroupOperations, operation: Operation) -> None:
    """Take one operation of a group in that did not fail."""
    ok = operation.outcome is Outcome.OK and operation.completion_time is not None
    if operation.function is Function.COMMIT:
        _committed(group, operation, ok=ok)
    if not ok:
        return
    completion, generation, who = _completion(operation), _generation(operation), _who(operation)
    seeks = operation.function is Function.ASSIGN and operation.argument == SEEK
    kept = seeks or operation.argument == CHANGED
    if operation.function in (Function.SUBSCRIBE, Function.ASSIGN) and not kept:
        group.anew.append((*who, operation.op_id))
        group.dropped.setdefault(who, []).append(operation.invoke_time)
    if operation.function is Function.JOIN:
        _joined(group, operation)
    elif operation.function is Function.FETCH_COMMITTED:
        for partition, offset in _named(operation):
            fetch = Fetch(
                op_id=operation.op_id,
                invoke=operation.invoke_time,
                completion=completion,
                offset=offset,
                epoch=_epoch(operation),
                who=who,
            )
            group.fetches.setdefault(partition, []).append(fetch)
    elif operation.function is Function.POLL:
        _polled(group, operation)
    elif seeks:
        sought = Sought(
            op_id=operation.op_id,
            who=who,
            generation=generation,
            invoke=operation.invoke_time,
            kept=frozenset((each.topic, each.partition) for each in operation.positions),
            named=_sought(operation.result or ""),
        )
        group.seeks.append(sought)
    if generation >= 0 and operation.function in (Function.JOIN, Function.COMMIT):
        group.known.append((completion, generation, operation.op_id))


def _completion(operation: Operation) -> int:
    return NEVER if operation.completion_time is None else operation.completion_time


def _generation(operation: Operation) -> int:
    return NO_GENERATION if operation.generation is None else operation.generation


def _epoch(operation: Operation) -> int:
    return NO_EPOCH if operation.leader_epoch is None else operation.leader_epoch


def _who(operation: Operation) -> tuple[int, int]:
    return operation.process, operation.session


def _committed(group: GroupOperations, operation: Operation, *, ok: bool) -> None:
    completion = _completion(operation)
    for partition, offset in _named(operation):
        commit = Commit(
            op_id=operation.op_id,
            member=operation.member or "",
            generation=_generation(operation),
            invoke=operation.invoke_time,
            completion=completion,
            offset=offset,
            ok=ok,
            latest=completion if ok else NEVER,
            epoch=_epoch(operation),
            who=_who(operation),
            attempts=operation.attempts,
            mode=operation.argument or "",
        )
        group.commits.setdefault(partition, []).append(commit)


def _joined(group: GroupOperations, operation: Operation) -> None:
    cooperative = operation.argument == COOPERATIVE
    if not cooperative:
        group.anew.append((*_who(operation), operation.op_id))
    joined = Join(
        op_id=operation.op_id,
        member=operation.member or "",
        generation=_generation(operation),
        invoke=operation.invoke_time,
        completion=_completion(operation),
        partitions=dict(_named(operation)),
        epoch=_epoch(operation),
        who=_who(operation),
        cooperative=cooperative,
    )
    group.joins.append(joined)


def _polled(group: GroupOperations, operation: Operation) -> None:
    completion, generation, who = _completion(operation), _generation(operation), _who(operation)
    for position in operation.positions:
        began = Began(
            op_id=operation.op_id,
            who=who,
            generation=generation,
            completion=completion,
            offset=position.offset,
            log_start=position.log_start_offset,
            committed=operation.isolation == "read_committed",
        )
        group.begun.setdefault((position.topic, position.partition), []).append(began)
    for partition, offsets in _offsets(operation).items():
        got = Got(
            op_id=operation.op_id,
            member=operation.member or "",
            generation=generation,
            invoke=operation.invoke_time,
            completion=completion,
            process=operation.process,
            session=operation.session,
            offsets=offsets,
        )
        group.got.setdefault(partition, []).append(got)


def _named(operation: Operation) -> list[tuple[Partition, int]]:
    """The partitions that an operation names, each with its offset (-1: none)."""
    if operation.topic is not None and operation.partition is not None:
        return [
            (
                (operation.topic, operation.partition),
                NOTHING if operation.offset is None else operation.offset,
            )
        ]
    return [((position.topic, position.partition), position.offset) for position in operation.positions]


def _sought(text: str) -> dict[Partition, int]:
    """The offsets that a seek names: "topic-partition@offset", separated by spaces. -1 is the log end, -2
    the log start."""
    found: dict[Partition, int] = {}
    for each in text.split():
        place, _, offset = each.rpartition("@")
        topic, _, number = place.rpartition("-")
        if number.isdecimal() and offset.removeprefix("-").isdecimal():
            found[topic, int(number)] = int(offset)
    return found


def _offsets(operation: Operation) -> dict[Partition, tuple[int, ...]]:
    found: dict[Partition, list[int]] = {}
    for record in operation.records:
        found.setdefault((record.topic, record.partition), []).append(record.offset)
    return {partition: tuple(offsets) for partition, offsets in found.items()}


def _set_continued(group: GroupOperations) -> None:
    """Set `continued`: a cooperative member goes on from its last generation, unless it lost what it had."""
    last: dict[tuple[int, int], Join] = {}
    for join in sorted(group.joins, key=lambda join: (join.completion, join.op_id)):
        before = last.get(join.who)
        if before is not None and (
            not (join.cooperative and before.cooperative)
            or before.member != join.member
            or before.generation > join.generation  # of a group that began anew
            or any(before.completion <= at <= join.completion for at in group.dropped.get(join.who, ()))
        ):
            before = None
        elif before is not None and before.generation == join.generation:
            continue  # a member that joins again is told of the generation that it is in
        group.continued.pop((join.who, join.generation), None)
        if before is not None:
            group.continued[join.who, join.generation] = (join, before)
        last[join.who] = join


def _set_latest(group: GroupOperations) -> None:
    """Set `latest` of unknown commits: they cannot take effect once a higher generation is known."""
    for partition, commits in group.commits.items():
        group.commits[partition] = [
            commit
            if commit.ok or commit.generation < 0
            else evolve(commit, latest=group.generation_known(commit.generation)[0])
            for commit in commits
        ]


def _occupied(operations: Iterable[Operation]) -> dict[Partition, dict[int, int]]:
    found: dict[Partition, dict[int, int]] = {}
    for operation in operations:
        if operation.outcome is not Outcome.OK:
            continue
        firm = operation.function is Function.APPEND and operation.acks in (None, ACKS_ALL)
        if operation.function is Function.POLL:
            for record in operation.records:
                found.setdefault((record.topic, record.partition), {}).setdefault(
                    record.offset, operation.op_id
                )
        elif firm and operation.offset is not None:
            for nth, record in enumerate(operation.records):
                place = (record.topic, record.partition)
                found.setdefault(place, {}).setdefault(operation.offset + nth, operation.op_id)
    return found


def _shown(operations: Iterable[Operation]) -> dict[Partition, list[tuple[int, int]]]:
    found: dict[Partition, list[tuple[int, int]]] = {}
    for operation in operations:
        done = operation.completion_time
        if done is None or operation.outcome is not Outcome.OK:
            continue
        if operation.function is Function.POLL:
            for partition, offsets in _offsets(operation).items():
                found.setdefault(partition, []).append((done, max(offsets)))
        elif operation.function is Function.APPEND and operation.acks == ACKS_ALL:
            for partition, offset in _named(operation) if operation.offset is not None else ():
                found.setdefault(partition, []).append((done, offset))
    return found


def _ended(operations: Iterable[Operation]) -> dict[tuple[int, int], int]:
    """When each incarnation ended: it crashed, or the process began a new one."""
    ended: dict[tuple[int, int], int] = {}
    session_of: dict[int, int] = {}
    for operation in operations:
        process = operation.process
        before = session_of.setdefault(process, operation.session)
        if operation.function is Function.CRASH:
            ended.setdefault((process, operation.session), operation.invoke_time)
        elif operation.session > before:
            ended.setdefault((process, before), operation.invoke_time)
            session_of[process] = operation.session
    return ended
