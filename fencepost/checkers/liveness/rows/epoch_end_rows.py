"""The rows about leader epochs: a leader that is asked where an epoch of its log ends names the right place,
and it refuses a request that names another leader epoch (KIP-320).

Owns these rows. For a leader that has led since the epoch L, an answer to the question about an epoch a <= L
divides the log: records of epochs up to a are below the end that it names, those of later epochs are not
(KIP-101, KIP-279). Above its start such a log only grows, so that every record of it that is known is a
witness: what the brokers say that they appended, and what clients read in the same reign.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

from attrs import define, field

from fencepost.checkers.liveness.forms import Case, Form, Row
from fencepost.checkers.liveness.rows.asked_rows import Detail, answers
from fencepost.checkers.liveness.rows.place_rows import MAY_LOSE, loses, says_appends
from fencepost.record.facts import Facts, Key, acknowledged
from fencepost.record.timeline import Kind, Subject, Timeline
from fencepost.traces.events import REPLICA_DELETED, Event, Name, Question
from fencepost.traces.operations import Function, Outcome, Record

FOLLOWED = (
    *(Name.BECAME_LEADER, Name.BECAME_FOLLOWER, Name.APPENDED, Name.TRUNCATED, Name.LOG_RECOVERED),
    *(Name.LOG_START, Name.COMPACTED, Name.BROKER_STARTED, Name.MARK, Name.ASKED),
)


@define
class Run:
    """Records of one epoch, from the first offset up to the end."""

    first: int
    end: int
    epoch: int


Place = tuple[int, Key]
"""A replica: its broker and partition."""
Read = tuple[int, int, list[Run]]
"""Of a poll: when it began and ended, nanoseconds, and which records it returned."""


@define
class Witnesses:
    """What is known of a leader's log, for one answer."""

    # Records that it had before it was asked.
    before: list[Run] = field(factory=list)
    # Records that it had when it had answered, above the start of its log.
    after: list[Run] = field(factory=list)


@define
class Log:
    """One replica's, as its broker says."""

    runs: list[Run] = field(factory=list)
    start: int = 0
    # Since when it leads: the epoch, -1 if it does not.
    epoch: int = -1
    # Of that reign: times and log ends.
    times: list[int] = field(factory=list)
    ends: list[int] = field(factory=list)
    # Whether a cleaner took records out, so that epochs may be gone.
    cleaned: bool = False

    def cut(self, end: int) -> None:
        """What is at or above an offset is gone, and nobody leads."""
        self.runs = [Run(run.first, min(run.end, end), run.epoch) for run in self.runs if run.first < end]
        self.epoch = -1

    def lead(self, event: Event) -> None:
        """A reign begins at the end of the log."""
        self.cut(event.offset)
        self.epoch, self.times, self.ends = event.leader_epoch, [event.time], [event.offset]

    def append(self, event: Event) -> None:
        """Records follow."""
        end = event.end_offset if event.end_offset >= 0 else event.offset + len(event.values)
        last = self.runs[-1] if self.runs else None
        if last is not None and last.epoch == event.leader_epoch and last.end == event.offset:
            last.end = end
        else:
            self.runs.append(Run(event.offset, end, event.leader_epoch))
        if self.epoch >= 0:
            self.times.append(event.time)
            self.ends.append(end)

    def witnesses(self, asked: int) -> Witnesses | None:
        """asked: when the question was sent, nanoseconds. None: it did not lead then."""
        place = bisect_right(self.times, asked) - 1
        if place < 0 or self.cleaned:
            return None
        begin, then, now = self.ends[0], self.ends[place], self.ends[-1]
        # Its own epoch begins where it became leader, and what comes after it is not there yet.
        bounds = (Run(begin, begin, self.epoch), Run(now, now, self.epoch + 1))
        before = [Run(run.first, min(run.end, then), run.epoch) for run in self.runs if run.first < then]
        after = [
            Run(max(run.first, self.start), run.end, run.epoch)
            for run in (*self.runs, *bounds)
            if run.end > self.start or run in bounds
        ]
        return Witnesses(before, after)


def _followed(logs: dict[Place, Log], event: Event) -> None:
    """Keep the logs of these replicas up to date."""
    if event.name is Name.BROKER_STARTED:
        for (node, _), one in logs.items():
            if node == event.node:
                one.epoch = -1
        return
    place = event.node, (event.topic or "", event.partition)
    log = logs.get(place)
    if log is None:
        return
    if event.name is Name.APPENDED:
        log.append(event)
    elif event.name is Name.MARK:
        if event.cause == REPLICA_DELETED:
            logs[place] = Log()
    elif event.name is Name.BECAME_LEADER:
        log.lead(event)
    elif event.name is Name.BECAME_FOLLOWER:
        log.epoch = -1
    elif event.name is Name.COMPACTED:
        log.cleaned = True
    elif event.name is Name.LOG_START:
        log.start = max(log.start, event.log_start_offset)
    else:  # recovered, or truncated: all of it if it begins anew above its end
        full = event.name is Name.TRUNCATED and event.cause == "full"
        log.cut(-1 if full else event.offset)
        log.start = event.offset if full else max(log.start, event.log_start_offset)


def _told(facts: Facts) -> Iterator[tuple[int, Event, Detail, Witnesses]]:
    """The answers, with what the same broker says of its log. Only logs that somebody asks about are
    followed."""
    asked: dict[int, tuple[Detail, Place]] = {}
    for position, event, detail in answers(facts, Question.EPOCHS):
        topic = facts.life(event.topic or "", detail.asked)
        asked[position] = detail, (event.node, (topic, event.partition))
    logs = {place: Log() for _, place in asked.values()}
    nodes = {node for node, _ in logs}
    names = FOLLOWED if facts.once(says_appends) else (Name.ASKED,)
    for position, event in facts.of(*names) if asked else ():
        if event.node not in nodes:
            continue
        if event.name is not Name.ASKED:
            _followed(logs, event)
        elif position in asked:
            detail, place = asked[position]
            log = logs[place]
            known = log.witnesses(detail.asked) if log.epoch == event.leader_epoch else None
            yield position, event, detail, known or Witnesses()


def _seen(facts: Facts, event: Event, detail: Detail, reads: Sequence[Read]) -> Witnesses:
    """What clients read of that leader in the same epoch: it has what is of earlier epochs all the time. A
    record with a key may be cleaned, so that its epoch is not known any more."""
    found = Witnesses()
    if not reads:
        return found
    key = event.topic or "", event.partition
    losses = [loss.time for _, loss in facts.of(*MAY_LOSE) if loses(loss, event.node, key)]
    for invoked, completed, runs in reads:
        begin, end = min(invoked, detail.asked), max(completed, event.time)
        if any(begin <= time <= end for time in losses):
            continue
        for run in runs:
            if run.epoch < event.leader_epoch or completed < detail.asked:
                found.before.append(run)
            if invoked > event.time:
                found.after.append(run)
    return found


def _reads(facts: Facts) -> dict[tuple[int, int, Key], list[Read]]:
    """Polls of one partition that its leader answered, by that broker, its epoch and the partition, with
    those records that were appended without a key."""
    plain = {record.value for one in acknowledged(facts) if one.key is None for record in one.records}
    found: dict[tuple[int, int, Key], list[Read]] = {}
    for one in facts.operations:
        if one.function is not Function.POLL or one.outcome is not Outcome.OK or one.completion_time is None:
            continue
        if one.topic is None or one.partition is None or one.leader_epoch is None or one.node < 0:
            continue
        if runs := _runs(record for record in one.records if record.value in plain):
            of = one.node, one.leader_epoch, (one.topic, one.partition)
            found.setdefault(of, []).append((one.invoke_time, one.completion_time, runs))
    return found


def _runs(records: Iterable[Record]) -> list[Run]:
    """Records that follow each other in one epoch are one run."""
    found: list[Run] = []
    first, end, epoch = -1, -1, -1
    for record in records:
        if record.leader_epoch < 0 or record.offset < 0:
            continue
        if record.offset != end or record.leader_epoch != epoch:
            if epoch >= 0:
                found.append(Run(first, end, epoch))
            first, epoch = record.offset, record.leader_epoch
        end = record.offset + 1
    if epoch >= 0:
        found.append(Run(first, end, epoch))
    return found


def _ends(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    reads: dict[tuple[int, int, Key], list[Read]] | None = None
    for position, event, detail, known in _told(facts):
        latent = [one for one in timeline.touching((Subject.BROKER, event.node)) if one.kind is Kind.LATENT]
        if any(one.begin <= event.time for one in latent):
            continue
        reads = _reads(facts) if reads is None else reads
        key = event.topic or "", event.partition
        seen = _seen(facts, event, detail, reads.get((event.node, event.leader_epoch, key), ()))
        known = Witnesses([*known.before, *seen.before], [*known.after, *seen.after])
        for asked, epoch, end in detail.ends:
            wrong = _wrong(asked, epoch, end, event.leader_epoch, known)
            if not wrong and not facts.counting:
                continue
            yield Case(
                subject=(Subject.PARTITION, key),
                since=event.time,
                fine=not wrong,
                expected=wrong,
                seen=f"broker {event.node}, asked in epoch {event.leader_epoch} about epoch {asked}: "
                f"epoch {epoch} ends at {end}",
                topic=key[0],
                partition=key[1],
                offset=end,
                events=(position,),
            )


def _wrong(asked: int, epoch: int, end: int, leader_epoch: int, known: Witnesses) -> str:
    """What should have been answered; empty if nothing contradicts the answer."""
    if not 0 <= asked <= leader_epoch:
        return ""
    if epoch < 0 or end < 0:
        return f"an epoch of at most {asked} and its end, as the leader has epoch {leader_epoch}"
    if epoch > asked:
        return f"an epoch of at most {asked}"
    for run in known.before:
        if run.epoch <= asked and run.end > end:
            return f"an end of {run.end} at least, where records of epoch {run.epoch} end"
    for run in known.after:
        if run.epoch > asked and run.first < end:
            return f"an end of {run.first} at most, where epoch {run.epoch} begins"
        if epoch < run.epoch <= asked and run.end > run.first:
            return f"epoch {run.epoch}, of which there are records from {run.first}"
    return ""


def _other_epochs(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    """It served its own epoch between the two others, and an epoch only grows while the topic lives."""
    for position, event, detail in answers(facts, Question.EPOCHS):
        topic = facts.life(event.topic or "", detail.asked)
        if topic != facts.life(event.topic or "", event.time):
            continue
        for epoch, error in detail.refused if detail.ends else ():
            yield Case(
                subject=(Subject.PARTITION, (topic, event.partition)),
                since=event.time,
                fine=bool(error),
                expected=f"broker {event.node}, which serves epoch {event.leader_epoch}, to refuse {epoch}",
                seen="it answered without an error",
                topic=topic,
                partition=event.partition,
                events=(position,),
            )


ROWS = (
    Row(
        name="other_epoch_served",
        form=Form.DONE,
        subject=Subject.PARTITION,
        cases=_other_epochs,
        where="OffsetForLeaderEpoch",
    ),
    Row(
        name="wrong_epoch_end",
        form=Form.DONE,
        subject=Subject.PARTITION,
        cases=_ends,
        where="OffsetForLeaderEpoch",
    ),
)
