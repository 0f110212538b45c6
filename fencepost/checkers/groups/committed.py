"""Committed offsets: a fetch returns the last acknowledged commit.

Owns committed_offset_lost, committed_offset_unexplained, committed_offset_not_linearizable, commit_sent_again
and the fact older_commit_won. The first two are necessary conditions with short proofs. What passes them is
decided exactly, within limits: first by two orders that usually work, otherwise by the general
linearizability check with the model `CommittedOffset`. If a later coordinator may have loaded a commit that
an earlier one had given up on, the model is `ReloadedOffset`. At the start of the trace nothing is committed.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator

import msgspec

from fencepost.checkers.groups.group_findings import GroupFact, finding
from fencepost.checkers.groups.history import (
    NO_EPOCH,
    NOTHING,
    Commit,
    Fetch,
    GroupHistory,
    GroupOperations,
    Join,
    Partition,
)
from fencepost.checkers.groups.register import CommittedOffset, ReloadedOffset
from fencepost.checkers.linearizability.limits import SearchLimits
from fencepost.checkers.linearizability.linearizability_judge import judge_counted
from fencepost.checkers.models.base import IMPOSSIBLE, Call, Model
from fencepost.checkers.operation_columns import NEVER
from fencepost.checkers.verdict import Decision, Finding, Verdict
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.trace import Trace

LIMITS = SearchLimits(timeout_s=20.0, memory_bytes=1 << 30)
"""Limits for one partition of a group; if one is reached, the partition is undecided."""

_LONG_AGO = -(1 << 62)
"""The time at which "nothing is committed" was written."""


def committed_findings(
    history: GroupHistory, group: GroupOperations, partition: Partition
) -> Iterator[Finding]:
    """For each partition the first fetch that a short proof convicts.

    Args:
        history: the groups of the trace.
        group: the group.
        partition: topic and partition.

    Returns:
        the findings.
    """
    commits, fetches = group.commits.get(partition, []), group.fetches.get(partition, [])
    replaced = {
        epoch: _newest_before([commit for commit in commits if answers(epoch, commit)], history.slack)
        for epoch in {fetch.epoch for fetch in fetches}
    }
    writers: dict[int, list[Commit]] = {}
    for commit in commits:
        writers.setdefault(commit.offset, []).append(commit)
    for fetch in fetches:
        found = _unexplained(fetch, writers, history.slack, partition) or _lost(
            fetch, writers, replaced[fetch.epoch](fetch.invoke), history.slack, partition
        )
        if found is not None:
            yield found
            return


def answers(epoch: int, commit: Commit) -> bool:
    """Whether a coordinator of this epoch must know the commit. It need not if a later coordinator
    acknowledged it."""
    return epoch == NO_EPOCH or commit.epoch <= epoch


def _newest_before(commits: list[Commit], slack: int) -> Callable[[int], Commit | None]:
    """The commit that began last, among those acknowledged before a moment."""
    done = sorted((commit for commit in commits if commit.ok), key=lambda commit: commit.completion)
    newest: list[Commit] = []
    for commit in done:
        newest.append(commit if not newest or commit.invoke > newest[-1].invoke else newest[-1])
    completions = [commit.completion + slack for commit in done]

    def before(moment: int) -> Commit | None:
        count = bisect_left(completions, moment)
        return newest[count - 1] if count else None

    return before


def _unexplained(
    fetch: Fetch, writers: dict[int, list[Commit]], slack: int, partition: Partition
) -> Finding | None:
    heard = fetch.completion + slack
    if fetch.offset == NOTHING or any(c.invoke <= heard for c in writers.get(fetch.offset, [])):
        return None
    return finding(
        "committed_offset_unexplained",
        partition=partition,
        offset=fetch.offset,
        operations=(fetch.op_id, *(commit.op_id for commit in writers.get(fetch.offset, [])[:1])),
        expected="an offset that some commit had carried by then",
        seen=f"operation {fetch.op_id} read back {fetch.offset}",
    )


def _lost(
    fetch: Fetch, writers: dict[int, list[Commit]], newest: Commit | None, slack: int, partition: Partition
) -> Finding | None:
    """A commit that the fetch should have returned. It was acknowledged before the fetch began, and began
    after everything that could have written the returned offset."""
    mine = [commit for commit in writers.get(fetch.offset, []) if commit.invoke <= fetch.completion + slack]
    latest = max((commit.latest for commit in mine), default=_LONG_AGO)
    if newest is None or latest == NEVER or newest.invoke <= latest + slack:
        return None
    return finding(
        "committed_offset_lost",
        partition=partition,
        offset=newest.offset,
        operations=(fetch.op_id, newest.op_id, *(commit.op_id for commit in mine[-1:])),
        expected=f"offset {newest.offset}, committed before and acknowledged (operation {newest.op_id}), "
        f"or a later commit's",
        seen=f"operation {fetch.op_id} read back {'nothing' if fetch.offset == NOTHING else fetch.offset}",
    )


def exact(history: GroupHistory, group: GroupOperations, partition: Partition) -> tuple[Finding | None, str]:
    """Decide whether some order explains all commits and fetches of a partition.

    Args:
        history: the groups of the trace.
        group: the group.
        partition: topic and partition.

    Returns:
        a finding or None, and why the partition is undecided ("" if it is decided).
    """
    operations, of = _operations(history, group, partition)
    if any(_legal(sorted(operations, key=order)) for order in (_by_completion, _by_invocation)):
        return None, ""
    verdict = _judged(operations, CommittedOffset())
    if verdict.decision is Decision.ILLEGAL and _may_be_reloaded(group, partition):
        operations, of = _operations(history, group, partition, reloaded=True)
        verdict = _judged(operations, ReloadedOffset())
    if verdict.decision is not Decision.ILLEGAL:
        return None, verdict.reason
    proof = verdict.findings[0]
    return finding(
        "committed_offset_not_linearizable",
        partition=partition,
        operations=tuple(sorted({of[number] for number in proof.operations})),
        expected=f"an order of the commits, generations and fetches of group {group.name} that explains "
        f"what was read back",
        seen=proof.seen,
    ), ""


def _judged(operations: list[Operation], model: Model) -> Verdict:
    trace = Trace(trace_id=0, plan="", seed=0, software_version="", operations=tuple(operations))
    return judge_counted(trace, model, LIMITS).verdict


def _may_be_reloaded(group: GroupOperations, partition: Partition) -> bool:
    """Whether a commit with an unknown outcome may have been loaded by a later coordinator than the one that
    wrote it."""
    commits, fetches = group.commits.get(partition, []), group.fetches.get(partition, [])
    epochs = {commit.epoch for commit in commits} | {fetch.epoch for fetch in fetches}
    epochs |= {joined.epoch for joined in group.joins}
    return len(epochs - {NO_EPOCH}) > 1 and not all(commit.ok for commit in commits)


def _operations(
    history: GroupHistory, group: GroupOperations, partition: Partition, *, reloaded: bool = False
) -> tuple[list[Operation], dict[int, int]]:
    """The commits, joins and fetches as operations of the model, and by their ids those of the trace: they
    are the same, but for a fetch that names a partition twice.

    reloaded: add the epochs of the coordinators, and whether the outcome is unknown, for `ReloadedOffset`.
    """

    def made(
        op_id: int, function: Function, invoke: int, completion: int, argument: object, result: object = None
    ) -> Operation:
        known = completion != NEVER
        own = op_id if op_id not in of else -1 - len(operations)
        of[own] = op_id
        return Operation(
            op_id=own,
            process=len(operations),
            function=function,
            invoke_time=invoke - history.slack // 2,
            completion_time=completion + history.slack // 2 if known else None,
            outcome=Outcome.OK if known else Outcome.UNKNOWN,
            argument=None if argument is None else msgspec.json.encode(argument).decode(),
            result=None if result is None else msgspec.json.encode(result).decode(),
        )

    operations: list[Operation] = []
    of: dict[int, int] = {}
    for commit in group.commits.get(partition, []):
        argument = [commit.generation, commit.offset, *((commit.epoch, not commit.ok) if reloaded else ())]
        operations.append(
            made(
                commit.op_id,
                Function.COMMIT,
                commit.invoke,
                commit.completion if commit.ok else NEVER,
                argument,
            )
        )
    present = _present(group, partition, history.slack)
    for join in filter(present, group.joins):
        known = [join.generation, join.epoch] if reloaded else join.generation
        operations.append(made(join.op_id, Function.JOIN, join.invoke, join.completion, known))
    for fetch in filter(present, group.fetches.get(partition, [])):
        asked, read = fetch.epoch if reloaded else None, fetch.offset
        operations.append(
            made(fetch.op_id, Function.FETCH_COMMITTED, fetch.invoke, fetch.completion, asked, read)
        )
    return operations, of


def _present(group: GroupOperations, partition: Partition, slack: int) -> Callable[[Join | Fetch], bool]:
    """Whether the answer to a join or fetch came from a current coordinator: no coordinator of a later epoch
    had answered before it began."""
    answered: tuple[Commit | Fetch | Join, ...] = (
        *(commit for commit in group.commits.get(partition, []) if commit.ok),
        *group.fetches.get(partition, []),
        *group.joins,
    )
    epochs_heard = [(each.completion, each.epoch) for each in answered]

    def present(one: Join | Fetch) -> bool:
        return one.epoch == NO_EPOCH or all(
            epoch <= one.epoch or when + slack >= one.invoke for when, epoch in epochs_heard
        )

    return present


def regressed_commits(
    history: GroupHistory, group: GroupOperations, partition: Partition
) -> Iterator[Finding]:
    """Find commits that a member sent again although a later commit with a higher offset was already
    acknowledged.

    commitSync waits for its answer and commitAsync is sent once, so a correct client never does this.

    Args:
        history: the groups of the trace.
        group: the group.
        partition: topic and partition.

    Returns:
        the findings.
    """
    newest: dict[tuple[tuple[int, int], str, int], Commit] = {}
    commits = group.commits.get(partition, [])
    done = sorted((c for c in commits if c.ok and c.generation >= 0), key=lambda c: c.completion)
    at = 0
    for commit in sorted(commits, key=lambda c: (c.invoke, c.op_id)):
        while at < len(done) and done[at].completion < commit.invoke:
            key = (done[at].who, done[at].member, done[at].generation)
            if key not in newest or newest[key].offset < done[at].offset:
                newest[key] = done[at]
            at += 1
        before = newest.get((commit.who, commit.member, commit.generation))
        again = commit.attempts > 1 and commit.generation >= 0
        if again and before is not None and NOTHING < commit.offset < before.offset:
            if any(
                each.who == commit.who
                and before.op_id < each.op_id < commit.op_id
                and partition not in each.kept
                for each in group.seeks
            ):
                continue  # it sought back
            if any(
                each.who == commit.who
                and before.op_id < each.op_id < commit.op_id
                and each.offset < before.offset
                for each in group.begun.get(partition, ())
            ):
                continue  # its position was reset: it polled from below (another rule says whether it may)
            yield finding(
                "commit_sent_again",
                partition=partition,
                offset=commit.offset,
                operations=(commit.op_id, before.op_id),
                expected=f"member {commit.member} to let go of older commits once operation {before.op_id} "
                f"had committed {before.offset}",
                seen=f"operation {commit.op_id} committed {commit.offset} after that, by attempt "
                f"{commit.attempts}",
            )
            return


def _by_completion(operation: Operation) -> tuple[int, int]:
    assert operation.completion_time is not None or operation.outcome is Outcome.UNKNOWN
    return operation.completion_time or 0, operation.op_id


def _by_invocation(operation: Operation) -> tuple[int, int]:
    return operation.invoke_time, operation.op_id


def _legal(ordered: list[Operation]) -> bool:
    """Whether the model allows the operations in this order, without those of unknown outcome. Orders by
    completion and by invocation respect real time."""
    model = CommittedOffset()
    state = model.init()
    for operation in ordered:
        if operation.outcome is Outcome.UNKNOWN:
            continue
        call = model.call(operation)
        assert isinstance(call, Call)
        state = model.step(state, call)
        if state is IMPOSSIBLE:
            return False
    return True


def older_commits(group: GroupOperations, partition: Partition) -> Iterator[GroupFact]:
    """Find fetches that returned an older commit although a newer one was acknowledged.

    The older commit took effect after the newer one, for example after a retry.

    Args:
        group: the group.
        partition: topic and partition.

    Returns:
        the facts, each with its cause.
    """
    commits = group.commits.get(partition, [])
    before = _newest_before(commits, 0)
    hits: dict[str, list[tuple[int, ...]]] = {}
    for fetch in group.fetches.get(partition, []):
        newest = before(fetch.invoke)
        if newest is None or fetch.offset >= newest.offset:
            continue
        older = [c for c in commits if c.offset == fetch.offset and c.invoke < newest.invoke <= c.latest]
        if older:
            cause = "concurrent" if older[-1].ok else "unknown_outcome"
            hits.setdefault(cause, []).append((fetch.op_id, older[-1].op_id, newest.op_id))
    for cause, found in sorted(hits.items()):
        yield GroupFact(
            kind="older_commit_won",
            cause=cause,
            group=group.name,
            topic=partition[0],
            partition=partition[1],
            count=len(found),
            offset=-1,
            operations=found[0],
        )
