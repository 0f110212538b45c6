"""JUSTIFIED: a group does a record's work again only after a crash, an expulsion or a fault.

Owns needless_reprocessing. A member that rejoins or leaves commits first what its polls returned: in mode
`auto` by itself, in mode `before` before the work, in mode `sync` after the work on each poll. While nothing
is broken that commit is stored before anybody else gets the partition; so nothing comes again, except the
last poll of a member in mode `sync`. Reads operations, of single traces.

Not asked: `async` and `none`, whose commits may be on the way or missing; groups whose offsets are committed
in transactions, which may be aborted; networks on which a commit has no bound, and consumers with less
patience than a commit takes.
"""

from collections.abc import Iterator

from attrs import evolve

from fencepost.checkers.invariants.findings import Findings
from fencepost.checkers.meantime.calm import is_asked
from fencepost.checkers.meantime.options import MILLISECOND, Options, Planned
from fencepost.checkers.meantime.rebalances import COMMIT_TRIPS, DISK_MS, PAUSE_MS, is_prompt
from fencepost.checkers.meantime.retries import Disturbances, disturbances_of, settled_ns
from fencepost.traces.events import Name
from fencepost.traces.operations import Function, Operation
from fencepost.traces.trace import Trace

COMMITTED_AT_ONCE = frozenset({"auto", "before"})
FORGETTING = frozenset({Name.GROUP_OFFSET_EXPIRED, Name.GROUP_REMOVED, Name.GROUPS_LOADED, Name.LOG_START})
"""After these a group may have no committed offset, or one below the log's start."""
LEAVING_MS = 200
"""How long a consumer of a run that leaves has for its last commit (campaign/run/group_workload.py)."""
Place = tuple[str, str, int]
"""Group, topic and partition."""


def judge_reprocessing(findings: Findings, trace: Trace, options: Options) -> None:
    """Report records that a group got again without a reason; at most one finding for each partition.

    Args:
        findings: where to report.
        trace: the run.
        options: of the run.
    """
    mode = options.consumer.commit
    if mode not in (*COMMITTED_AT_ONCE, "sync") or trace.claims.loss:
        return
    if not is_asked(options.network) or not is_prompt(options):
        return
    disturbances: Disturbances | None = None
    settled = settled_ns(options)
    for place, earlier, later, offset in repeated(trace, last_poll_too=mode != "sync"):
        if disturbances is None:
            disturbances = all_disturbances(trace, options)
        end = later.invoke_time if later.completion_time is None else later.completion_time
        if disturbances.within(earlier.invoke_time - settled, end):
            continue
        group, topic, partition = place
        findings.add(
            "needless_reprocessing",
            expected=f"group {group} to go on after what member {earlier.member} had got: it committed "
            f"({mode}) before it gave the partition up, and nothing was broken",
            seen=f"member {later.member} got offset {offset} again in generation {later.generation}",
            topic=topic,
            partition=partition,
            offset=offset,
            operations=(earlier.op_id, later.op_id),
        )


def repeated(trace: Trace, *, last_poll_too: bool) -> Iterator[tuple[Place, Operation, Operation, int]]:
    """Records that another member, or a later generation, got again: partition, both polls, offset.
    last_poll_too: also those that the former owner's last poll returned."""
    transactional = {one.process for one in trace.operations if one.function is Function.TXN}
    polls = [
        one
        for one in trace.operations
        if one.function is Function.POLL and one.group and one.records and one.process not in transactional
    ]
    polls.sort(key=lambda one: (one.completion_time or one.invoke_time, one.op_id))
    got: dict[tuple[Place, int], Operation] = {}
    last: dict[tuple[Place, str | None, int | None], Operation] = {}
    for poll in polls:
        for record in poll.records:
            place = poll.group or "", record.topic, record.partition
            earlier = got.get((place, record.offset))
            if earlier is not None and (earlier.member, earlier.generation) != (poll.member, poll.generation):
                owner = place, earlier.member, earlier.generation
                if last_poll_too or last.get(owner) is not earlier:
                    yield place, earlier, poll, record.offset
            got[place, record.offset] = poll
            last[place, poll.member, poll.generation] = poll


def all_disturbances(trace: Trace, options: Options) -> Disturbances:
    """Those of the cluster, what makes a group forget, and crashed or paused consumers.

    Args:
        trace: the run.
        options: of the run.

    Returns:
        the disturbances.
    """
    found = disturbances_of(trace.events)
    found.times += [event.time for event in trace.events if event.name in FORGETTING]
    found.times.sort()
    phases = {event.cause: event.time for event in trace.events if event.name is Name.PHASE}
    began, healed = phases.get("safety", 0), phases.get("heal", 0)
    network = options.network
    usual_us = min(network.latency_max_us, network.latency_min_us + 2 * network.latency_tail_us)
    clean = COMMIT_TRIPS * usual_us // 1_000 + DISK_MS // 4 <= LEAVING_MS
    for one in options.operations:
        at = began + one.at_ms * MILLISECOND
        if at < healed and _ends_badly(one, clean=clean):
            length = one.records * PAUSE_MS * MILLISECOND if one.function == "pause" else 0
            found.broken.append((at, at + length))
    return evolve(found)


def _ends_badly(one: Planned, *, clean: bool) -> bool:
    """Whether a consumer cannot commit what it got."""
    return one.function in ("crash", "pause") or (one.function == "unsubscribe" and not clean)
