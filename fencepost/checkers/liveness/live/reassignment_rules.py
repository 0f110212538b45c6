"""Rules about reassignments in a live cluster: those that stand, and those that move.

Owns these rules. A throttle lets one partition of a broker move after the other.
"""

from collections.abc import Iterator

from fencepost.checkers.liveness.live.partition_rules import told
from fencepost.checkers.liveness.live.sights import (
    BOOTSTRAP,
    SECOND,
    Answer,
    Key,
    LiveRow,
    Seen,
    Sight,
    sight,
)
from fencepost.traces.events import Question


def _unmoved(seen: Seen) -> Iterator[Sight]:
    """Reassignments whose new replicas get nothing."""
    for one, known in told(seen, Question.REASSIGNMENTS):
        for topic, partition, replicas, adding, removing in one.detail.reassignments:
            key = str(topic), int(partition)
            ends = [known.ends.get((key, replica)) for replica in adding]
            missing = [one.event.end_offset if one else -1 for one in ends]
            away = sorted(set(adding) - set(known.live))
            yield sight(
                one,
                key,
                (tuple(adding), tuple(removing), *missing, *(known.others(key, each) for each in adding)),
                topic=key[0],
                partition=key[1],
                expected=f"the reassignment to {list(replicas)} to move",
                seen=f"brokers {list(adding)} are still to be added, {list(removing)} to be removed; logs of "
                f"the new ones end at {missing}; not live: {away}",
                command=f"kafka-reassign-partitions.sh --bootstrap-server {BOOTSTRAP} --list",
            )


def _under_way(seen: Seen) -> Iterator[Sight]:
    """Reassignments that move, with what they take at the rate that was seen."""
    first: dict[tuple[Key, int], Answer] = {}
    for one, known in told(seen, Question.REASSIGNMENTS):
        for topic, partition, replicas, adding, _ in one.detail.reassignments:
            key, leader = (str(topic), int(partition)), known.logs.get((str(topic), int(partition)))
            for replica in adding:
                end = known.ends.get((key, replica))
                if end is None or leader is None:
                    continue
                begun = first.setdefault((key, replica), end)
                seconds = (end.event.time - begun.event.time) / SECOND
                rate = (end.event.end_offset - begun.event.end_offset) / seconds if seconds else 0.0
                lacks = max(leader.event.end_offset - end.event.end_offset, 0)
                yield sight(
                    one,
                    (key, replica),
                    True if rate > 0 else None,
                    topic=key[0],
                    partition=key[1],
                    expected=f"the reassignment to {list(replicas)} to end",
                    seen=f"the log of broker {replica} ends at {end.event.end_offset} of "
                    f"{leader.event.end_offset}, {rate:.1f} records a second: "
                    + (f"{lacks / rate:.0f} s more" if rate > 0 else "no end"),
                    command=f"kafka-reassign-partitions.sh --bootstrap-server {BOOTSTRAP} --list",
                )


ROWS = (
    LiveRow(
        name="reassignment_stands",
        sights=_unmoved,
        bound_s=60,
        least=3,
        reason="a throttled copy moves each second; a failed one is tried again after a second",
    ),
    LiveRow(name="a reassignment is under way", sights=_under_way, note=True),
)
