"""COMMIT-SAFE: an append with acks=all is acknowledged when min.insync.replicas replicas have it.

Owns acked_by_too_few. "When a producer sets acks to all, min.insync.replicas specifies the minimum number of
replicas that must acknowledge a write for the write to be considered successful" (Kafka, topic configuration;
a partition with fewer replicas needs all of them). It counts who appended the batch, not the ISR: that is
what the number is for, and a deposed leader may acknowledge what its followers have. Of the values that a
topic ever had, the smallest counts.
"""

from bisect import bisect_left

from attrs import define, field

from fencepost.checkers.invariants.findings import Findings
from fencepost.record.facts import Facts, Key, acknowledged, overrides_of
from fencepost.record.settings import MIN_IN_SYNC
from fencepost.traces.events import Name
from fencepost.traces.operations import ACKS_ALL


@define
class Copy:
    """What one replica appended in one leader epoch."""

    # Ends of logs, ascending.
    ends: list[int] = field(factory=list)
    # When it first reached each of them, nanoseconds.
    times: list[int] = field(factory=list)

    def reached(self, end: int, time: int) -> None:
        """Its log ends there now; only the first time counts."""
        if not self.ends or end > self.ends[-1]:
            self.ends.append(end)
            self.times.append(time)

    def has(self, offset: int, moment: int) -> bool:
        """Whether it had appended this offset by then."""
        place = bisect_left(self.ends, offset + 1)
        return place < len(self.ends) and self.times[place] <= moment


def judge_acknowledged(findings: Findings, facts: Facts) -> None:
    """Look for appends that were acknowledged too early; at most one finding for each partition.

    Args:
        findings: where a finding goes.
        facts: of a run that records what each replica appends.
    """
    least: dict[Key, int] = {}
    asked = {topic.name for topic in facts.settings.cluster.topics if topic.min_insync_replicas > 1}
    for one in acknowledged(facts) if asked else ():
        if one.topic not in asked or one.acks != ACKS_ALL or one.leader_epoch is None:
            continue
        assert one.completion_time is not None and one.offset is not None
        key = facts.life(one.topic or "", one.completion_time), one.partition or 0
        if key not in least:
            least[key] = _least(facts, key)
        if least[key] < 2:
            continue
        of = facts.once(_copies).get((key, one.leader_epoch))
        last = one.offset + len(one.records) - 1
        if of is None or sum(copy.has(last, one.completion_time) for copy in of.values()) >= least[key]:
            continue
        findings.add(
            "acked_by_too_few",
            expected=f"{least[key]} replicas to have offset {last} of leader epoch {one.leader_epoch} when "
            f"it is acknowledged (acks=all, min.insync.replicas)",
            seen=f"only {sorted(node for node, copy in of.items() if copy.has(last, one.completion_time))}",
            topic=key[0],
            partition=key[1],
            offset=last,
            operations=(one.op_id,),
        )


def _least(facts: Facts, key: Key) -> int:
    """The smallest number of replicas that an acknowledgement ever meant."""
    numbers = [facts.settings.topic(key[0]).min_insync_replicas]
    for _, event in facts.of(Name.TOPIC_CONFIGURED):
        if event.topic in (None, key[0]):
            number = overrides_of(event).get(MIN_IN_SYNC, "")
            numbers += [int(number)] if number.isdecimal() else []
    return min([*numbers, *(len(told.value) for told in facts.assigned.get(key, ()) if told.value)])


def _copies(facts: Facts) -> dict[tuple[Key, int], dict[int, Copy]]:
    """What each replica appended, by partition and leader epoch, then by broker."""
    found: dict[tuple[Key, int], dict[int, Copy]] = {}
    for _, event in facts.of(Name.APPENDED):
        of = found.setdefault(((event.topic or "", event.partition), event.leader_epoch), {})
        end = max(event.end_offset, event.offset + len(event.values))
        of.setdefault(event.node, Copy()).reached(end, event.time)
    return found
