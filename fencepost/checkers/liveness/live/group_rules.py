"""Rules about groups of a live cluster: whether they rebalance, who reads what, what they committed.

Owns these rules. What may be meant to be so is a note: more members than partitions, a reader that runs
once a day, retention that overtook a group.
"""

from collections import Counter
from collections.abc import Iterator
from functools import partial

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


def _stored(seen: Seen) -> Iterator[tuple[Answer, Key, list[tuple[int, int]], int]]:
    """Each partition that a group committed, where the log is replicated and no transaction is open: the
    latest records (place, offset), the last one at the end, and what OffsetFetch said before.

    Where a log has more than its high watermark, a coordinator of 3.x may serve what is not to be read yet.
    """
    served: dict[str, dict[Key, int]] = {}
    for one, known in told(seen, Question.COMMITTED, Question.OFFSET_RECORDS):
        of, log = one.detail, known.logs.get(one.key)
        if one.event.cause == Question.COMMITTED:
            served[of.group] = {(topic, number): offset for topic, number, offset, _ in of.offsets}
        elif of.of is not None and log is not None and not of.cut:
            said = served.get(of.group, {}).get(of.of, -1)
            counting = [each for each in of.records if each[3] is not False]
            decided = counting and all(each[3] and isinstance(each[1], int) for each in counting)
            if decided and said >= 0 and log.event.end_offset <= one.event.high_watermark:
                yield one, of.of, [(place, value) for place, value, *_ in counting], said


def _told_apart(seen: Seen, *, moves: bool) -> Iterator[Sight]:
    """A coordinator that serves another offset than its log has last: none of the latest, while more and more
    come (`moves`), or while the last one stays. Before 4.0 a commit that failed after it was appended is
    stored and not served, until the next one."""
    last: dict[tuple[str, Key], int] = {}
    for one, key, records, said in _stored(seen):
        (place, value), group = records[-1], one.detail.group
        before = last.get((group, key), place)
        last[group, key] = place
        other = said not in {each for _, each in records} if moves else said != value
        if moves and other and place == before:
            continue  # no commit came
        yield sight(
            one,
            (group, key),
            ((said,) if moves else (said, place)) if other else None,
            topic=key[0],
            partition=key[1],
            offset=said,
            expected=f"the offset of group {group} to be {value}, which {one.key[0]}-{one.key[1]} has last, "
            f"at offset {place}",
            seen=f"OffsetFetch says {said}",
            command=_describe(group) + "--offsets",
        )


# ---- notes


def _flapping(seen: Seen) -> Iterator[Sight]:
    """A client whose members leave more often than it has members at once: in a restart each leaves once."""
    there: dict[tuple[str, str], dict[str, str]] = {}
    left, most = Counter[tuple[str, str, str]](), Counter[tuple[str, str, str]]()
    for one in seen.of(*GROUPS):
        place, now = (one.detail.group, str(one.event.cause)), one.detail.clients
        before = there.get(place, {})
        left.update((*place, before[member]) for member in before.keys() - now.keys())
        most |= Counter((*place, client) for client in now.values())
        there[place] = now
        for subject in sorted(each for each in most if each[:2] == place):
            count, client = left[subject], subject[2]
            yield sight(
                one,
                subject,
                True if count > most[subject] else None,
                topic=None,
                partition=-1,
                expected=f"members of group {place[0]} to stay: each that comes or goes makes a rebalance",
                seen=f"client {client} left {count} times, and had {most[subject]} members at most",
                command=_describe(place[0]) + "--members --verbose",
            )


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
        reason="max.poll.interval.ms, 300 s; few answers may each show another rebalance",
    ),
    LiveRow(name="commit_beyond_end", sights=_beyond, reason="a log's end goes back only with a loss"),
    LiveRow(
        name="served_offset_stands",
        sights=partial(_told_apart, moves=True),
        bound_s=5,
        least=3,
        reason="one commit alone may have failed",
    ),
    LiveRow(name="members come and go", sights=_flapping, note=True),
    LiveRow(
        name="another offset is stored",
        sights=partial(_told_apart, moves=False),
        bound_s=5,
        least=3,
        reason="a coordinator serves what is replicated; before 4.0 a commit that failed may stay in the log",
        note=True,
    ),
    LiveRow(name="a group skipped records", sights=_below, note=True),
    LiveRow(name="members without partitions", sights=_idle, note=True),
    LiveRow(name="lag without a reader", sights=_unread, note=True),
)
