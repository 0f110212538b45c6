"""MEANTIME: a consumer commits what its polls return, as its mode says.

Owns missing_commit. An application in mode `sync`, `async` or `before` commits after each poll that returned
records, before it polls again. In mode `auto` the consumer commits with the first poll after the interval. A
commit that is left out costs nothing until the partition moves, and then its records come again. Reads
operations, of single traces.

Not asked: what follows a fault, as a consumer that does not know its coordinator sends no commit; the last
poll of a member in a generation, or of a process (a static member keeps its generation when its process
begins anew); transactions, which commit offsets by themselves; networks on which a commit has no bound, and
consumers with less patience than a commit takes.
"""

from collections.abc import Iterator

from fencepost.checkers.invariants.findings import Findings
from fencepost.checkers.meantime.calm import is_asked
from fencepost.checkers.meantime.options import MILLISECOND, Options
from fencepost.checkers.meantime.rebalances import is_prompt
from fencepost.checkers.meantime.reprocessing import all_disturbances
from fencepost.checkers.meantime.retries import Disturbances, settled_ns
from fencepost.traces.operations import Function, Operation
from fencepost.traces.trace import Trace

AT_EACH_POLL = frozenset({"sync", "async", "before"})
Owner = tuple[int, str | None, int | None]
"""Process, member id and generation."""


def judge_commits(findings: Findings, trace: Trace, options: Options) -> None:
    """Report polls without their commit; at most one finding for each partition.

    Args:
        findings: where to report.
        trace: the run.
        options: of the run.
    """
    mode = options.consumer.commit
    if mode not in (*AT_EACH_POLL, "auto") or not is_asked(options.network) or not is_prompt(options):
        return
    wait = options.consumer.auto_commit_interval_ms * MILLISECOND if mode == "auto" else 0
    disturbances: Disturbances | None = None
    settled = settled_ns(options)
    for poll, later in uncommitted(trace, wait):
        if disturbances is None:
            disturbances = all_disturbances(trace, options)
        if disturbances.within(poll.invoke_time - settled, _end(later)):
            continue
        record = poll.records[-1]
        findings.add(
            "missing_commit",
            expected=f"member {poll.member} of group {poll.group} to commit ({mode}) what poll {poll.op_id} "
            f"returned before poll {later.op_id} was over, as nothing was broken",
            seen=f"no commit of {record.topic}-{record.partition} beyond offset {record.offset}",
            topic=record.topic,
            partition=record.partition,
            offset=record.offset,
            operations=(poll.op_id, later.op_id),
        )


def uncommitted(trace: Trace, wait: int) -> Iterator[tuple[Operation, Operation]]:
    """Polls that no commit covers in time, each with the poll by which it was due.

    Args:
        trace: the run.
        wait: after a poll, until the first poll that commits it; nanoseconds.
    """
    transactional = {one.process for one in trace.operations if one.function is Function.TXN}
    joins: dict[int, list[int]] = {}
    for one in trace.operations:
        if one.function is Function.JOIN:
            joins.setdefault(one.process, []).append(one.invoke_time)
    polls: dict[Owner, list[Operation]] = {}
    commits: dict[Owner, list[Operation]] = {}
    for one in trace.operations:
        kept = (
            polls if one.function is Function.POLL else commits if one.function is Function.COMMIT else None
        )
        if kept is not None and one.group and one.process not in transactional:
            kept.setdefault((one.process, one.member, one.generation), []).append(one)
    for owner, rows in polls.items():
        rows.sort(key=lambda one: (one.invoke_time, one.op_id))
        for place, poll in enumerate(rows):
            if not poll.records or poll.completion_time is None:
                continue
            due = poll.completion_time + wait
            later = next((one for one in rows[place + 1 :] if one.invoke_time >= due), None)
            if later is None or later.completion_time is None:
                continue
            if not any(poll.invoke_time < at <= later.invoke_time for at in joins.get(poll.process, ())):
                end = later.completion_time if wait else later.invoke_time
                mine = (one for one in commits.get(owner, ()) if poll.invoke_time <= one.invoke_time <= end)
                if not _covers(mine, poll):
                    yield poll, later


def _covers(commits: Iterator[Operation], poll: Operation) -> bool:
    """Whether one of these commits goes beyond the last record of the poll."""
    last = poll.records[-1]
    return any(
        (place.topic, place.partition) == (last.topic, last.partition) and place.offset > last.offset
        for commit in commits
        for place in commit.positions
    )


def _end(one: Operation) -> int:
    return one.invoke_time if one.completion_time is None else one.completion_time
