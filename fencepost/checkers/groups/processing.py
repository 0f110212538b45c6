"""Processing by a group: records that it processed again and records that it never processed, with the cause.

Owns reprocessed_after_commit, processing_gap, commit_beyond_position, seek_ignored, and the facts
`reprocessed` and `gap`.
Must not know how committed offsets are fetched. A record counts as processed when a member's poll returned
it.

At-least-once or at-most-once is the client's choice. Therefore two cases are facts: a record processed again
after a crash or rebalance, and a record missed because of a commit before processing. A case without such a
cause is a finding. A commit in any other mode must be within what polls returned. A commit beyond that is a
finding at once, whether or not records are missed. If a history does not give the mode of its commits, each
may have been made before processing.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import accumulate

from attrs import define, field, frozen

from fencepost.checkers.groups.group_findings import GroupFact, finding
from fencepost.checkers.groups.history import (
    Commit,
    Got,
    GroupHistory,
    GroupOperations,
    Landing,
    Partition,
    may_be_expired,
)
from fencepost.checkers.log.log_rules import loss_in
from fencepost.checkers.operation_columns import NEVER
from fencepost.checkers.verdict import Finding
from fencepost.traces.trace import Claims

MAY_BE_AHEAD = ("", "before", "earlier")
"""Modes of commits that excuse a gap: before processing, not known, and carried over from a group that
ended."""
OF_WHAT_WAS_POLLED = ("auto", "sync", "async")
TO_END, TO_START = -1, -2
"""What a seek to the log end names, and one to the log start, which is 0 as long as nothing is deleted."""


@define
class Tally:
    """The facts of one partition by kind and cause: the count and the first example (offset, operations)."""

    counts: Counter[tuple[str, str]] = field(factory=Counter)
    examples: dict[tuple[str, str], tuple[int, tuple[int, ...]]] = field(factory=dict)

    def add(self, kind: str, cause: str, offset: int, operations: tuple[int, ...], count: int = 1) -> None:
        """Count records.

        Args:
            kind, cause: as in GroupFact.
            offset: the offset of the example.
            operations: the operations of the example.
            count: the number of records.
        """
        self.counts[kind, cause] += count
        self.examples.setdefault((kind, cause), (offset, tuple(dict.fromkeys(operations))))

    def facts(self, group: str, partition: Partition) -> Iterator[GroupFact]:
        """The facts in the order of kind and cause, for this `group` and `partition`."""
        for (kind, cause), count in sorted(self.counts.items()):
            offset, operations = self.examples[kind, cause]
            yield GroupFact(
                kind=kind,
                cause=cause,
                group=group,
                topic=partition[0],
                partition=partition[1],
                count=count,
                offset=offset,
                operations=operations,
            )


@frozen(kw_only=True)
class Processed:
    """The result for one partition."""

    # At most one for each anomaly.
    findings: tuple[Finding, ...]
    facts: tuple[GroupFact, ...]


def processed(
    history: GroupHistory, group: GroupOperations, partition: Partition, claims: Claims
) -> Processed:
    """What the group processed of one partition.

    Args:
        history: the groups of the trace.
        group: the group.
        partition: topic and partition.
        claims: the claims of the trace.

    Returns:
        the findings and the facts.
    """
    tally = Tally()
    findings = [
        found
        for found in (
            _again(history, group, partition, claims, tally),
            _gaps(history, group, partition, claims, tally),
            _beyond_position(history, group, partition, claims),
            _seek_ignored(history, group, partition, claims),
        )
        if found is not None
    ]
    return Processed(findings=tuple(findings), facts=tuple(tally.facts(group.name, partition)))


def _again(
    history: GroupHistory, group: GroupOperations, partition: Partition, claims: Claims, tally: Tally
) -> Finding | None:
    """Polls that returned records that an earlier poll of the group had returned.

    If records below a position may be lost, the position may be beyond the end of the log and is reset; so it
    is after a seek to beyond what had been shown.
    """
    losses, landings = loss_in(claims, *partition), group.landings(partition)
    last: dict[int, Got] = {}
    convicted: Finding | None = None
    for got in group.got.get(partition, []):
        again = sorted(offset for offset in set(got.offsets) if offset in last)
        if again:
            earlier, offset = last[again[0]], again[0]
            beyond = _committed_beyond(history, group, partition, got, offset)
            lost = beyond is not None and any(start < beyond.offset for start, _ in losses)
            expired = beyond is not None and may_be_expired(claims, beyond, got.completion + history.slack)
            sought = beyond is not None and any(
                each.who == (got.process, got.session)
                and group.since(each.who, each.generation, partition)
                == group.since(each.who, got.generation, partition)
                and each.op_id < got.op_id
                and (each.offset <= offset or (each.named or 0) > _shown_end(history, partition, each.invoke))
                for each in landings
            )
            if beyond is not None and not lost and not expired and not sought:
                convicted = convicted or finding(
                    "reprocessed_after_commit",
                    partition=partition,
                    offset=offset,
                    operations=(got.op_id, beyond.op_id, earlier.op_id),
                    expected=f"group {group.name} to go on from {beyond.offset}, committed before (operation "
                    f"{beyond.op_id})",
                    seen=f"operation {got.op_id} got offset {offset} again, after operation {earlier.op_id}",
                )
            else:
                excused = "loss" if lost else "expired" if expired else "seek" if sought else ""
                cause = excused or _cause(history, earlier, got)
                tally.add("reprocessed", cause, offset, (got.op_id, earlier.op_id), len(again))
        last.update(dict.fromkeys(got.offsets, got))
    return convicted


def _cause(history: GroupHistory, earlier: Got, later: Got) -> str:
    """Why a record was returned again."""
    if history.ended.get((earlier.process, earlier.session), NEVER) <= later.invoke:
        return "crash"
    if earlier.generation != later.generation:
        return "rebalance"
    return "same_member" if earlier.member == later.member else "not_known"


def _committed_beyond(
    history: GroupHistory, group: GroupOperations, partition: Partition, got: Got, offset: int
) -> Commit | None:
    """A commit above the offset at which the poll's member must have started. It was acknowledged before the
    member joined, and no lower commit has replaced it since.

    A member that goes back within its own assignment needs no commit for that; the kafka check covers this
    case.
    """
    identity = (got.member, got.generation)
    starts = [join.invoke for join in group.joins if (join.member, join.generation) == identity]
    starts = starts or [g.invoke for g in group.got[partition] if (g.member, g.generation) == identity]
    start = min(starts)
    commits = group.commits.get(partition, [])
    beyond = [c for c in commits if c.ok and c.offset > offset and c.completion + history.slack < start]
    if not beyond:
        return None
    newest = max(beyond, key=lambda commit: (commit.invoke, commit.op_id))
    lowered = any(c.offset <= offset and c.latest + history.slack >= newest.invoke for c in commits)
    return None if lowered else newest


def _gaps(
    history: GroupHistory, group: GroupOperations, partition: Partition, claims: Claims, tally: Tally
) -> Finding | None:
    """Offsets that hold a record and that the group passed without processing them."""
    if claims.retention or partition[0] in claims.compacted:
        return None
    polls, commits = group.got.get(partition, []), group.commits.get(partition, [])
    got = {offset for poll in polls for offset in poll.offsets}
    begins = [o for join in group.joins if (o := join.partitions.get(partition, -1)) >= 0]
    begins += [fetch.offset for fetch in group.fetches.get(partition, []) if fetch.offset >= 0]
    low = min([*begins, *got], default=NEVER)
    high = max([*got, *(c.offset - 1 for c in commits if c.ok)], default=-1)
    reached = list(accumulate((max(poll.offsets) for poll in polls), max))
    ahead = [commit for commit in commits if commit.mode in MAY_BE_AHEAD]
    first = _first_beyond([*ahead, *group.landings(partition)])
    loss = loss_in(claims, *partition)
    convicted: Finding | None = None
    for offset, witness in sorted(history.occupied.get(partition, {}).items()):
        lost = any(start <= offset < end for start, end in loss)
        if not low <= offset <= high or offset in got or lost:
            continue
        at = bisect_right(reached, offset)
        passed = polls[at] if at < len(polls) else None
        jumped = first(offset)
        if jumped is not None and (passed is None or jumped.invoke <= passed.completion):
            cause = "seek" if isinstance(jumped, Landing) else "commit_before_processing"
            tally.add("gap", cause, offset, (jumped.op_id, witness))
        elif convicted is None and passed is not None:
            convicted = finding(
                "processing_gap",
                partition=partition,
                offset=offset,
                operations=(passed.op_id, witness),
                expected=f"offset {offset}, which operation {witness} proves to hold a record, to be got by "
                f"group {group.name}",
                seen=f"operation {passed.op_id} went beyond it; no member got it, and no commit excuses that",
            )
    return convicted


def _beyond_position(
    history: GroupHistory, group: GroupOperations, partition: Partition, claims: Claims
) -> Finding | None:
    """A commit beyond everything that polls returned to its client, and beyond where that client began to
    read.

    The rule does not apply if retention, compaction or loss can move positions without a poll, or before the
    history says where the member began.
    """
    if claims.retention or partition[0] in claims.compacted or loss_in(claims, *partition):
        return None
    landings = group.landings(partition)
    for commit in group.commits.get(partition, []):
        if commit.mode not in OF_WHAT_WAS_POLLED or commit.generation < 0:
            continue
        by, when = commit.who, commit.invoke + history.slack

        def same(generation: int, by: tuple[int, int] = by, last: int = commit.generation) -> bool:
            return group.since(by, generation, partition) == group.since(by, last, partition)

        polled = [
            got
            for got in group.got.get(partition, [])
            if (got.process, got.session) == by and same(got.generation) and got.completion <= when
        ]
        begun = [
            began.offset
            for began in group.begun.get(partition, [])
            if began.who == by and same(began.generation) and began.completion <= when
        ]
        begun += [
            fetch.offset
            for fetch in group.fetches.get(partition, [])
            if fetch.who == by and fetch.completion <= when and fetch.offset >= 0
        ]
        begun += [
            each.offset
            for each in landings
            if each.who == by and same(each.generation) and each.shown_by <= commit.op_id
        ]
        reached = max([*begun, *(max(got.offsets) + 1 for got in polled)], default=NEVER)
        if commit.offset > reached:
            last = max(polled, key=lambda got: got.completion, default=None)
            return finding(
                "commit_beyond_position",
                partition=partition,
                offset=commit.offset,
                operations=(commit.op_id, *(() if last is None else (last.op_id,))),
                expected=f"a commit of at most {reached}, up to which member {commit.member} of group "
                f"{group.name} had got records",
                seen=f"operation {commit.op_id} committed {commit.offset} ({commit.mode})",
            )
    return None


def _seek_ignored(
    history: GroupHistory, group: GroupOperations, partition: Partition, claims: Claims
) -> Finding | None:
    """A seek to an offset, after which the first poll of that member read from a lower one, or from beyond a
    record that the group had got before; or one to the end, after which it read from below what was known to
    be there.

    A position outside of the log is reset, so that the rule does not apply where the log start moves or
    records are lost, nor to an offset beyond what had been shown. A poll reads on past what it does not
    show, such as the gaps of a compacted log.
    """
    if claims.retention or loss_in(claims, *partition):
        return None
    for each in group.landings(partition):
        got = (one for one in group.got.get(partition, []) if one.completion + history.slack < each.invoke)
        known = {offset for one in got for offset in one.offsets}
        end = _shown_end(history, partition, each.invoke)
        if each.named is None or each.poll is None or (each.named == TO_END and each.poll.committed):
            continue
        named = {TO_END: end, TO_START: 0}.get(each.named, each.named)
        if not (each.poll.log_start or 0) <= named <= end:
            continue
        passed = partition[0] not in claims.compacted and any(named <= at < each.offset for at in known)
        if each.offset >= named and not passed:
            continue
        return finding(
            "seek_ignored",
            partition=partition,
            offset=each.offset,
            operations=(each.shown_by, each.op_id),
            expected=f"the next poll of that member to read from {named}, where operation {each.op_id} sought"
            f"{', or beyond' if each.named == TO_END else ''}",
            seen=f"operation {each.shown_by} read from {each.offset}",
        )
    return None


def _shown_end(history: GroupHistory, partition: Partition, moment: int) -> int:
    """The end of what was known to be in the log before this moment, nanoseconds."""
    shown = history.shown.get(partition, ())
    return 1 + max((at for done, at in shown if done + history.slack < moment), default=-1)


def _first_beyond(commits: list[Commit | Landing]) -> Callable[[int], Commit | Landing | None]:
    """The commit or seek that began first, among those above an offset."""
    by_offset = sorted(commits, key=lambda commit: commit.offset)
    earliest: list[Commit | Landing] = []
    for commit in reversed(by_offset):
        sooner = not earliest or (commit.invoke, commit.op_id) < (earliest[-1].invoke, earliest[-1].op_id)
        earliest.append(commit if sooner else earliest[-1])
    offsets = [commit.offset for commit in by_offset]

    def beyond(offset: int) -> Commit | Landing | None:
        above = len(offsets) - bisect_right(offsets, offset)
        return earliest[above - 1] if above else None

    return beyond
