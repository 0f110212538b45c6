"""Rules about transactions of a live cluster: what holds the last stable offset, and who could end it.

Owns these rules. A transaction is called hanging only if the coordinator of its own id contradicts it: access
rules leave ids out of a list in silence, and an id that was left out looks like nobody's.
"""

from collections.abc import Iterator

from attrs import define, field

from fencepost.checkers.liveness.live.partition_rules import Known, told
from fencepost.checkers.liveness.live.sights import BOOTSTRAP, Answer, Key, LiveRow, Seen, Sight, sight
from fencepost.traces.events import Question

PREPARED = ("PrepareCommit", "PrepareAbort")
UNDER_WAY = ("Ongoing", *PREPARED)
OVERDUE_MS = 60_000
"""After its time-out a coordinator looks for it every 10 s, decides, and writes markers, each within
request.timeout.ms, 30 s."""
TOOL = f"kafka-transactions.sh --bootstrap-server {BOOTSTRAP}"


@define
class Open:
    """The open transaction of a producer in a partition, as its leader's log has it."""

    producer: int
    epoch: int
    # Of the first record.
    first: int
    # The leader's.
    log: Answer
    answer: Answer
    # What the coordinator of the producer's id says, and said before.
    owner: Answer | None
    # When its leader was first seen with it, nanoseconds.
    since: int
    known: Known = field(repr=False)

    @property
    def disowned(self) -> bool:
        """Whether the coordinator said, while it was open in the log, that it is not."""
        if self.owner is None or self.owner.detail.asked <= self.since:
            return False
        said = self.owner.detail
        return said.state not in UNDER_WAY or self.answer.key not in said.partitions

    @property
    def watched_ms(self) -> int:
        """For how long it has been seen, by one clock."""
        return (self.answer.event.time - self.since) // 1_000_000

    @property
    def age_ms(self) -> int:
        """Since it began, by the clocks of both sides, so that nothing follows from it; -1: not known, or the
        trace's time is no time of the day."""
        started = self.owner.detail.started_ms if self.owner else -1
        age = self.answer.event.time // 1_000_000 - started
        return age if started >= 0 and self.answer.event.time >= started * 1_000_000 else -1

    @property
    def words(self) -> str:
        """What is known of it."""
        age = f", open for {self.age_ms // 1000} s" if self.age_ms >= 0 else ""
        said = "no coordinator names its id"
        if self.owner is not None:
            of = self.owner.detail
            said = (
                f"the coordinator of {of.transactional_id} says {of.state}, time-out {of.timeout_ms} ms{age}"
            )
        return f"producer {self.producer}, epoch {self.epoch}, from offset {self.first}; {said}"


def _open(seen: Seen) -> Iterator[Open]:
    owners: dict[int, Answer] = {}
    since: dict[tuple[Key, int, int], int] = {}
    for one, known in told(seen, Question.TRANSACTION, Question.PRODUCERS, Question.LOG):
        if one.event.cause == Question.TRANSACTION:
            owners[one.detail.producer_id] = one
        log = known.logs.get(one.key)
        if one.event.cause != Question.PRODUCERS or log is None or one.event.leader not in one.brokers:
            continue
        for producer, epoch, *_, first in one.detail.producers:
            if first >= 0:
                begun = since.setdefault((one.key, producer, first), one.event.time)
                yield Open(producer, epoch, first, log, one, owners.get(producer), begun, known)


def _sight(one: Open, wrong: object, **more: str) -> Sight:
    return sight(
        one.answer,
        (one.answer.key, one.producer),
        (one.producer, one.first) if wrong else None,
        offset=one.first,
        seen=f"{one.words}; the last stable offset is {one.log.event.offset}",
        **more,
    )


def _hanging(seen: Seen) -> Iterator[Sight]:
    for one in _open(seen):
        topic, partition = one.answer.key
        yield _sight(
            one,
            one.disowned,
            expected="a transaction that its coordinator knows to be under way",
            command=f"{TOOL} abort --topic {topic} --partition {partition} --start-offset {one.first}",
        )


def _overdue(seen: Seen) -> Iterator[Sight]:
    for one in _open(seen):
        of = one.owner.detail if one.owner else None
        late = of is not None and of.state == "Ongoing" and one.watched_ms > of.timeout_ms + OVERDUE_MS
        yield _sight(
            one,
            late and not one.disowned,
            expected=f"its coordinator to abort it {OVERDUE_MS // 1000} s after its time-out",
            command=f"{TOOL} describe --transactional-id {of.transactional_id if of else ''}",
        )


def _undecided(seen: Seen) -> Iterator[Sight]:
    """Markers need the in-sync replicas that their partition demands."""
    for one, known in told(seen, Question.TRANSACTION):
        of = one.detail
        views = [known.views.get(key) for key in of.partitions]
        able = all(view and len(view.event.isr) >= known.min_isr(view.key[0]) > 0 for view in views)
        wrong = (of.producer_id, of.producer_epoch, of.state, of.started_ms)
        yield sight(
            one,
            of.transactional_id,
            wrong if of.state in PREPARED and able else None,
            expected=f"the markers of {of.transactional_id}, whose commit or abort is decided",
            seen=f"its coordinator says {of.state}; partitions without a marker: {list(of.partitions)}",
            command=f"{TOOL} describe --transactional-id {of.transactional_id}",
        )


def _stuck(seen: Seen) -> Iterator[Sight]:
    """Everything is replicated, no transaction is open, and readers of committed records get less."""
    for one, known in told(seen, Question.LOG, Question.PRODUCERS):
        log = one if one.event.cause == Question.LOG else known.logs.get(one.key)
        if log is None or log.event.node != log.event.leader or log.event.offset < 0:
            continue
        of, open_ = log.event, any(each[4] >= 0 for each in one.detail.producers if len(each) > 4)
        if one.event.cause == Question.LOG and of.offset < of.high_watermark:
            continue  # the answer about producers says more
        held = of.offset < of.high_watermark == of.end_offset and not open_
        yield sight(
            one,
            one.key,
            (of.leader_epoch, of.offset) if held else None,
            offset=of.offset,
            expected=f"the last stable offset to be the high watermark {of.high_watermark}, as no "
            "transaction is open",
            seen=f"it is {of.offset}",
            command=f"{TOOL} describe-producers --topic {one.key[0]} --partition {one.key[1]}",
        )


def _held(seen: Seen) -> Iterator[Sight]:
    for one in _open(seen):
        topic, partition = one.answer.key
        yield _sight(
            one,
            one.log.event.offset <= one.first < one.log.event.high_watermark and not one.disowned,
            expected="readers of committed records to get as far as others",
            command=f"{TOOL} describe --transactional-id {one.owner.detail.transactional_id}"
            if one.owner
            else f"{TOOL} find-hanging --topic {topic} --partition {partition}",
        )


ROWS = (
    LiveRow(
        name="hanging_transaction",
        sights=_hanging,
        reason="the coordinator contradicts twice, and the log has it open before and after",
    ),
    LiveRow(
        name="transaction_outlives_timeout",
        sights=_overdue,
        reason="watched for its time-out and a minute, since clocks differ",
    ),
    LiveRow(
        name="decision_stands",
        sights=_undecided,
        bound_s=60,
        reason="twice request.timeout.ms between brokers",
    ),
    LiveRow(
        name="last_stable_offset_stuck",
        sights=_stuck,
        bound_s=60,
        least=3,
        reason="twice replica.lag.time.max.ms: a marker counts once it is committed",
    ),
    LiveRow(name="an open transaction holds the last stable offset", sights=_held, note=True),
)
