"""Rules about partitions of a live cluster: who leads, who is in sync, what is committed.

Owns these rules. Each compares answers of brokers, and knows what an ordinary cluster does for a while.
"""

from collections.abc import Iterator

from attrs import define, field

from fencepost.checkers.liveness.live.sights import BOOTSTRAP, Answer, Key, LiveRow, Seen, Sight, sight
from fencepost.record.settings import MIN_IN_SYNC
from fencepost.traces.events import Question

DESCRIBE = f"kafka-topics.sh --bootstrap-server {BOOTSTRAP} --describe --topic "
UNCLEAN = "unclean.leader.election.enable"


@define
class Known:
    """What the answers so far say."""

    # The view of the highest leader epoch of each partition.
    views: dict[Key, Answer] = field(factory=dict)
    # The last answer of the leader about its log.
    logs: dict[Key, Answer] = field(factory=dict)
    # The last end of a replica's log outside the ISR.
    ends: dict[tuple[Key, int], Answer] = field(factory=dict)
    # The live brokers of the last answer.
    live: tuple[int, ...] = ()
    # What each broker says of each setting.
    said: dict[tuple[str, str], dict[int, str]] = field(factory=dict)

    def setting(self, topic: str, name: str) -> str:
        """What most brokers say; one that is cut off says what was.

        Args:
            topic: whose setting it is.
            name: of the setting.

        Returns:
            its value; empty if nobody said it.
        """
        values = list(self.said.get((topic, name), {}).values())
        return max(values, key=lambda value: (values.count(value), value), default="")

    def others(self, key: Key, replica: int) -> int:
        """What a replica has of other partitions that it is not in sync with: a throttle lets one after the
        other move."""
        ends = self.ends.items()
        return sum(one.event.end_offset for (of, who), one in ends if who == replica and of != key)

    def min_isr(self, topic: str) -> int:
        """min.insync.replicas; 0: not known."""
        value = self.setting(topic, MIN_IN_SYNC)
        return int(value) if value.isdecimal() else 0


def told(seen: Seen, *questions: Question) -> Iterator[tuple[Answer, Known]]:
    """The answers to these questions, each with what is known by then; old views are left out.

    Args:
        seen: the answers.
        questions: of the protocol.
    """
    known = Known()
    for one in seen.of(*Question):
        cause, key = one.event.cause, one.key
        if cause == Question.BROKERS:
            known.live = one.event.replicas
        elif cause == Question.SETTINGS:
            for topic, name, value in one.detail.settings:
                known.said.setdefault((topic, name), {})[one.event.node] = value
        elif cause == Question.PARTITION:
            before = known.views.get(key)
            if key[1] < 0 or (before and before.event.leader_epoch > one.event.leader_epoch):
                continue
            known.views[key] = one
        if cause in questions:
            yield one, known
        if cause == Question.LOG and one.event.node == one.event.leader:
            known.logs[key] = one
        elif cause == Question.LOG:
            known.ends[key, one.event.node] = one


def _stale(seen: Seen) -> Iterator[Sight]:
    """A broker whose Metadata name an older leader epoch than others did before it was asked."""
    newest: dict[Key, Answer] = {}
    for one in seen.of(Question.PARTITION):
        epoch, best = one.event.leader_epoch, newest.get(one.key)
        stale = best is not None and 0 <= epoch < best.event.leader_epoch
        stale = stale and best is not None and best.event.time < one.detail.asked
        newer = best or one
        for broker in one.brokers:
            yield sight(
                one,
                (broker, one.key),
                epoch if stale else None,
                expected=f"broker {broker} to name leader epoch {newer.event.leader_epoch}, as broker "
                f"{newer.event.node} did before",
                seen=f"it names leader {one.event.leader} of epoch {epoch}",
                command=DESCRIBE + one.key[0],
            )
        if best is None or epoch > best.event.leader_epoch:
            newest[one.key] = one


def _lists(seen: Seen) -> Iterator[Sight]:
    """A broker that knows other live brokers than most of the others, if most agree."""
    latest: dict[int, tuple[int, ...]] = {}
    for one in seen.of(Question.BROKERS):
        others = [live for broker, live in latest.items() if broker != one.event.node]
        common = max(set(others), key=others.count, default=())
        agreed = 2 * others.count(common) > len(others) + 1
        yield sight(
            one,
            one.event.node,
            (one.event.replicas, common) if agreed and common != one.event.replicas else None,
            expected=f"broker {one.event.node} to know the live brokers {sorted(common)}, as most do",
            seen=f"its Metadata name {sorted(one.event.replicas)}",
            command=f"kafka-broker-api-versions.sh --bootstrap-server {BOOTSTRAP}",
        )
        latest[one.event.node] = one.event.replicas


def _fenced(seen: Seen) -> Iterator[Sight]:
    """A broker that answers, and knows itself that the controllers count it for away."""
    for one in seen.of(Question.BROKERS):
        yield sight(
            one,
            one.event.node,
            None if one.event.node in one.event.replicas else True,
            expected=f"broker {one.event.node}, which answers, to be one of the live brokers",
            seen=f"its own Metadata name {sorted(one.event.replicas)}",
            command=f"look for heartbeats to the controllers in the log of broker {one.event.node}",
        )


def _leaderless(seen: Seen) -> Iterator[Sight]:
    for one, known in told(seen, Question.PARTITION):
        away = sorted(set(one.event.replicas) - set(known.live))
        yield sight(
            one,
            one.key,
            one.event.leader_epoch if one.event.leader < 0 else None,
            expected="a leader",
            seen=f"broker {one.event.node} names none; ISR {list(one.event.isr)}, replicas "
            f"{list(one.event.replicas)}, not live: {away}",
            command=f"start one of its replicas; then {DESCRIBE}{one.key[0]}",
        )


def _below_min_isr(seen: Seen) -> Iterator[Sight]:
    for one, known in told(seen, Question.PARTITION):
        least, isr = known.min_isr(one.key[0]), tuple(sorted(one.event.isr))
        if not least or one.event.leader < 0:
            continue
        yield sight(
            one,
            one.key,
            (isr, least) if len(isr) < least else None,
            expected=f"{least} in-sync replicas ({MIN_IN_SYNC}), for acks=all to be accepted",
            seen=f"ISR {list(isr)} of the replicas {list(one.event.replicas)}",
            command=f"kafka-topics.sh --bootstrap-server {BOOTSTRAP} --describe --under-min-isr-partitions",
        )


def _not_filled(seen: Seen) -> Iterator[Sight]:
    """A live replica outside the ISR that has all, or does not move. One that moves is catching up. A later
    high watermark says that it has all, an earlier one that it lacks some."""
    for one, known in told(seen, Question.PARTITION, Question.LOG):
        view, leader = known.views.get(one.key), known.logs.get(one.key)
        if one.event.cause == Question.PARTITION:
            for replica in one.event.isr:
                yield sight(one, (one.key, replica))
        elif view is not None and one.event.node == one.event.leader:
            for replica in (set(view.event.replicas) - set(view.event.isr)) & set(known.live):
                end = known.ends.get((one.key, replica))
                if end and end.event.end_offset >= one.event.high_watermark >= 0:
                    yield _outside(one, known, replica, "all", end.event.end_offset)
        elif view is not None and leader is not None:
            lacks = 0 <= one.event.end_offset < leader.event.high_watermark
            if lacks and one.event.node in {*known.live} - {*view.event.isr}:
                yield _outside(one, known, one.event.node, "some", one.event.end_offset)


def _outside(one: Answer, known: Known, replica: int, has: str, end: int) -> Sight:
    view = known.views[one.key]
    state = "it has all that is committed" if has == "all" else "its log does not grow, and lacks records"
    return sight(
        one,
        (one.key, replica),
        (view.event.leader_epoch, has, *((end, known.others(one.key, replica)) if has == "some" else ())),
        expected=f"broker {replica}, which lives, to return into the ISR",
        seen=f"ISR {list(view.event.isr)}; the log of broker {replica} ends at {end}: {state}",
        offset=end,
        command=f"look for errors of the fetcher in the log of broker {replica}; "
        f"kafka-topics.sh --bootstrap-server {BOOTSTRAP} --describe --under-replicated-partitions",
    )


def _uncommitted(seen: Seen) -> Iterator[Sight]:
    for one, known in told(seen, Question.LOG):
        view, high_watermark = known.views.get(one.key), one.event.high_watermark
        least = known.min_isr(one.key[0])
        if one.event.node != one.event.leader or high_watermark < 0 or one.event.end_offset < 0:
            continue
        held = view is not None and 0 < least <= len(view.event.isr) and high_watermark < one.event.end_offset
        yield sight(
            one,
            one.key,
            (view.event.leader_epoch, view.event.isr, high_watermark) if held and view else None,
            expected=f"the high watermark to move, for the log ends at {one.event.end_offset} and the ISR "
            f"{list(view.event.isr) if view else []} is large enough",
            seen=f"it is {high_watermark}",
            offset=high_watermark,
            command=DESCRIBE + one.key[0],
        )


# ---- notes


def _away(seen: Seen) -> Iterator[Sight]:
    for one, known in told(seen, Question.BROKERS):
        assigned = [broker for view in known.views.values() for broker in view.event.replicas]
        for broker in sorted(set(assigned)):
            yield sight(
                one,
                broker,
                None if broker in one.event.replicas else True,
                expected=f"broker {broker} to live, for it has {assigned.count(broker)} replicas",
                seen=f"the Metadata of broker {one.event.node} do not name it",
            )


def _not_preferred(seen: Seen) -> Iterator[Sight]:
    for one, known in told(seen, Question.PARTITION):
        first = next(iter(one.event.replicas), -1)
        able = first in one.event.isr and first in known.live and one.event.leader >= 0
        yield sight(
            one,
            one.key,
            one.event.leader_epoch if able and one.event.leader != first else None,
            expected=f"broker {first} to lead, the first of its replicas, which is in sync",
            seen=f"broker {one.event.leader} leads",
            command=f"kafka-leader-election.sh --bootstrap-server {BOOTSTRAP} --election-type preferred "
            f"--topic {one.key[0]} --partition {one.key[1]}",
        )


DECIDED = "an election takes less than a second once the session of the last leader is over"
ROWS = (
    LiveRow(
        name="metadata_disagrees",
        sights=_stale,
        bound_s=5,
        reason="two fetches of the metadata log, a second, and the broker's disk",
    ),
    LiveRow(
        name="metadata_disagrees",
        sights=_lists,
        bound_s=8,
        least=3,
        reason="as above, without a version in the answer",
    ),
    LiveRow(
        name="fenced_broker_answers",
        sights=_fenced,
        bound_s=8,
        least=3,
        reason="a broker is fenced until its next heartbeat",
    ),
    LiveRow(name="partition_without_leader", sights=_leaderless, bound_s=5, reason=DECIDED),
    LiveRow(name="below_min_isr", sights=_below_min_isr, bound_s=5, least=3, reason=DECIDED),
    LiveRow(
        name="isr_does_not_fill",
        sights=_not_filled,
        bound_s=35,
        least=3,
        reason="replica.socket.timeout.ms, 30 s, a back-off, two fetches and the controller's answer",
    ),
    LiveRow(
        name="high_watermark_held",
        sights=_uncommitted,
        bound_s=60,
        least=3,
        reason="twice replica.lag.time.max.ms, 30 s",
    ),
    LiveRow(name="a broker is away", sights=_away, note=True),
    LiveRow(name="not the preferred leader", sights=_not_preferred, note=True),
)
