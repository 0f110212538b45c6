"""Rules about groups of a live cluster: whether they rebalance, who reads what, what they committed.

Owns these rules. What may be meant to be so is a note: more members than partitions, a reader that runs
once a day, retention that overtook a group.
"""

from collections.abc import Iterator

from fencepost.checkers.liveness.live.partition_rules import told
from fencepost.checkers.liveness.live.sights import BOOTSTRAP, Answer, Key, LiveRow, Seen, Sight, sight
from fencepost.traces.events import Question

REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")
GROUPS = (Question.GROUP, Question.CONSUMER_GROUP)


def _describe(group: str) -> str:
    return f"kafka-consumer-groups.sh --bootstrap-server {BOOTSTRAP} --describe --group {group} "


def _rebalancing(seen: Seen) -> Iterator[Sight]:
    for one in seen.of(*GROUPS):
        of = one.detail
        yield sight(
            one,
            (of.group, one.event.cause),
            True if of.state in REBALANCING else None,
            topic=None,
            partition=-1,
            expected=f"group {of.group} to end its rebalance",
            seen=f"its coordinator, broker {one.event.node}, says {of.state}, {len(of.members)} members",
            command=_describe(of.group) + "--members --verbose",
        )


def _offsets(seen: Seen) -> Iterator[tuple[Answer, Answer, str, Key, int]]:
    """Each committed offset with the next answer of that partition's leader about its log."""
    waiting: dict[Key, dict[str, tuple[Answer, int]]] = {}
    for one, _ in told(seen, Question.COMMITTED, Question.LOG):
        if one.event.cause == Question.COMMITTED:
            for topic, partition, offset, _epoch in one.detail.offsets:
                waiting.setdefault((topic, partition), {})[one.detail.group] = one, offset
        elif one.event.node == one.event.leader and min(one.event.end_offset, one.event.high_watermark) >= 0:
            for group, (commit, offset) in sorted(waiting.pop(one.key, {}).items()):
                if offset >= 0:
                    yield commit, one, group, one.key, offset


def _beyond(seen: Seen) -> Iterator[Sight]:
    for commit, log, group, key, offset in _offsets(seen):
        yield sight(
            log,
            (group, key),
            offset if offset > log.event.end_offset else None,
            offset=offset,
            expected=f"the offset that group {group} committed to be at most the log's end, "
            f"{log.event.end_offset}",
            seen=f"broker {commit.event.node} says {offset}: records are lost, or the topic was made anew",
            command=f"kafka-consumer-groups.sh --bootstrap-server {BOOTSTRAP} --group {group} "
            f"--topic {key[0]}:{key[1]} --reset-offsets --to-latest --dry-run",
        )


# ---- notes


def _below(seen: Seen) -> Iterator[Sight]:
    for commit, log, group, key, offset in _offsets(seen):
        start = log.event.log_start_offset
        yield sight(
            log,
            (group, key),
            True if offset < start else None,
            offset=offset,
            expected=f"group {group} to have read before retention deletes",
            seen=f"broker {commit.event.node} says {offset}, the log begins at {start}: {start - offset} "
            "offsets are skipped",
            command=_describe(group) + "--offsets",
        )


def _idle(seen: Seen) -> Iterator[Sight]:
    for one in seen.of(*GROUPS):
        idle = [member[0] for member in one.detail.members if len(member) > 2 and member[2] == []]
        yield sight(
            one,
            one.detail.group,
            tuple(idle) if one.detail.state == "Stable" and idle else None,
            topic=None,
            partition=-1,
            expected=f"each member of group {one.detail.group} to have partitions",
            seen=f"{len(idle)} of {len(one.detail.members)} have none: more members than partitions, or "
            "other subscriptions",
            command=_describe(one.detail.group) + "--members --verbose",
        )


def _unread(seen: Seen) -> Iterator[Sight]:
    owned: dict[str, set[Key]] = {}
    latest: dict[str, Answer] = {one.detail.group: one for one in seen.of(*GROUPS) if one.detail.members}
    for group, one in latest.items():
        places = [place for member in one.detail.members if len(member) > 2 for place in member[2] or ()]
        owned[group] = {(str(topic), int(number)) for topic, number in places}
    for _, log, group, key, offset in _offsets(seen):
        lag = log.event.high_watermark - offset
        yield sight(
            log,
            (group, key),
            offset if lag > 0 and key not in owned.get(group, set()) else None,
            offset=offset,
            expected=f"a member of group {group} to read this partition",
            seen=f"it lags by {lag}, and no member has it",
            command=_describe(group),
        )


ROWS = (
    LiveRow(
        name="group_rebalances",
        sights=_rebalancing,
        bound_s=330,
        least=20,
        reason="a member may work for max.poll.interval.ms, 300 s, before it joins again; few answers may "
        "each show another rebalance",
    ),
    LiveRow(
        name="commit_beyond_end",
        sights=_beyond,
        reason="the end was asked for after the offset, and a log's end goes back only with a loss",
    ),
    LiveRow(name="a group skipped records", sights=_below, note=True),
    LiveRow(name="members without partitions", sights=_idle, note=True),
    LiveRow(name="lag, and nobody reads", sights=_unread, note=True),
)
