"""The text timeline: what it shows, marks, folds and escapes."""

import msgspec
from attrs import evolve

from fencepost.checkers.verdict import Finding
from fencepost.report.entries import entries_of
from fencepost.report.event_words import ASKED_BY, EVENT_WORDS, event_in_words, request_in_words
from fencepost.report.explain import explain
from fencepost.report.timeline import as_plain, as_text, timeline
from fencepost.traces.events import Event, Name, Question
from fencepost.traces.operations import Function, Outcome, Position
from fencepost.traces.trace import Trace
from fencepost.viewer.messages import Fate, messages_of
from fencepost.viewer.moments import moments_of
from tests.checkers import lab

STORY = """\
        virtual  t-0
        seconds  1 2  who        what
       0.000000  . .  run        safety phase
       0.005000  . .  broker 1   is the controller of epoch 1
       0.006000  . .  broker 1   t-0: ZooKeeper: leader 1, leader epoch 0, ISR {1, 2} (written by controller epoch 1)
       0.007000  L .  broker 1   t-0: LEADS in epoch 0 from offset 0, high watermark 0
       0.008000  L f  broker 2   t-0: follows broker 1 in epoch 0, log end 0, high watermark 0
                 L f             ... 162.0 ms: 7 high watermark
       0.170000  L f  broker 1   t-0: high watermark 7 (as leader)
       0.203000  L f  client 4   op 1: append v1000 to t-0, acks=all -> ok at offset 0 after 3.0 ms
>>>    0.300000  L f  client 4   op 2: invokes append v2000 to t-0, acks=all
>>>    0.303000  L f  client 4   op 2: append v2000 to t-0, acks=all -> ok at offset 1
                 L f             ... 8.7 s: nothing
       9.000000  L x  fault      fault 1 begins: crash on follower 1 of t-0 (broker 2)
       9.500000  L x  fault      fault 1 ends: crash on follower 1 of t-0 (broker 2)
       9.501000  L .  broker 2   starts
       9.600000  L .  broker 2   t-0: cuts its log from 2 to 1 (1 record; by high_watermark, leader epoch 0, its high watermark was 1)
       9.700000  l .  broker 2   t-0: ZooKeeper: leader 2, leader epoch 1, ISR {2} (written by controller epoch 2)
>>>    9.701000  l L  broker 2   t-0: LEADS in epoch 1 from offset 1, high watermark 1
>>>   12.000000  l L  client 5   op 3: invokes poll t-0 from offset 0
>>>   12.002000  l L  client 5   op 3: poll t-0 from offset 0 -> read v1000, end 1 (final read)
"""


def test_the_story_can_be_followed(trace: Trace, finding: Finding) -> None:
    """Faults, elections, truncations, ISR changes and what convicts stand in order of time, quiet stretches
    folded."""
    text = as_plain(timeline(trace, operations=finding.operations, events=finding.events, most_lines=18))
    assert text.split("\n")[:-2] == STORY.rstrip("\n").split("\n")


def test_marked_events_are_never_folded(trace: Trace) -> None:
    """Whatever convicts is shown, however routine it is."""
    high_watermark = next(i for i, event in enumerate(trace.events) if event.high_watermark == 3)
    marked = [line for line in timeline(trace, events=(high_watermark,), most_lines=1) if line.mark]
    assert [line.what for line in marked] == ["t-0: high watermark 3 (as leader)"]


def test_a_long_trace_gives_a_short_timeline(trace: Trace) -> None:
    """Ten thousand routine moments fold into a line; the turning points stay."""
    many = [Event(time=10**9 + i, name=Name.APPENDED, node=1, **lab.T0) for i in range(10_000)]
    lines = timeline(evolve(trace, events=(*trace.events[:10], *many, *trace.events[10:])))
    assert len(lines) < 40
    assert any("10000 appended" in line.what for line in lines)
    assert any("LEADS in epoch 1" in line.what for line in lines)


def test_other_partitions_leave_no_trace(trace: Trace) -> None:
    """With a partition in focus, what concerns another is not shown, and cluster-wide events are."""
    other = Event(time=10**9, name=Name.BECAME_LEADER, node=1, topic="u", partition=3, leader_epoch=0)
    text = as_plain(timeline(evolve(trace, events=(*trace.events, other)), partitions=[("t", 0)]))
    assert "u-3" not in text
    assert "fault 1 begins" in text


def test_values_are_escaped(trace: Trace) -> None:
    """Nothing that a trace carries can write to the terminal or be taken for markup."""
    nasty = "[bold]\x1b[2J\u202e\n" + "x" * 10_000
    evil = lab.operation(
        9, Function.READ, 1, 2, process=1, outcome=Outcome.FAIL, topic=nasty, partition=0, error=nasty
    )
    skipped = Event(time=1, name=Name.FAULT_SKIPPED, cause=nasty, detail='{"fault":[1],"reason":"\\u001b["}')
    lines = timeline(evolve(trace, operations=(evil,), events=(skipped,)))
    for text in (as_plain(lines), as_text(lines).plain):
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "[bold]" in text
        assert all(len(line) < 400 for line in text.split("\n"))
    assert not any("bold" in str(span.style) and span.start > 200 for span in as_text(lines).spans)


def test_an_empty_trace_has_a_timeline() -> None:
    """A foreign trace without events still reads."""
    assert "seconds" in as_plain(timeline(lab.trace(trace_id=1)))


def test_the_words_are_kafkas() -> None:
    """Rule: a request has Kafka's name, a state is written as Kafka writes it; what was not answered has no
    code of ours."""
    assert set(ASKED_BY) == set(Question)

    def said(question: Question, detail: dict[str, object], **columns: object) -> str:
        text = msgspec.json.encode({"asked": 5, **detail}).decode()
        return event_in_words(Event(time=9, name=Name.ASKED, node=1, cause=question, detail=text, **columns))

    leads = {"topic": "t", "partition": 0, "leader": 2, "leader_epoch": 3, "isr": (2, 3), "replicas": (2, 3)}
    assert said(Question.PARTITION, {}, **leads) == (
        "answers Metadata: leader 2, leader epoch 3, ISR {2, 3}, replicas {2, 3}"
    )
    assert said(Question.COMMITTED, {"group": "g", "offsets": [["t", 0, 4, -1]]}) == (
        'answers OffsetFetch: group g, offsets [["t",0,4,-1]]'
    )
    assert said(Question.GROUP, {"error": "NOT_COORDINATOR"}) == "answers DescribeGroups with NOT_COORDINATOR"
    assert said(Question.LOG, {"error": "NO_ANSWER"}) == "does not answer ListOffsets"
    assert said(Question.GROUP, {"error": "NO_COORDINATOR"}) == (
        "no coordinator is known that could answer DescribeGroups"
    )
    assert "NO_ROOM" not in said(Question.LOG, {"error": "NO_ROOM", "left_out": ["log_ends"]})


def test_a_transaction_is_committed_or_aborted() -> None:
    """Rule: an abort that its producer wanted is no refusal, in words, in counts and as an arrow; a read of
    committed records says so."""
    aborted = lab.operation(1, Function.TXN, 0, 5, process=1, outcome=Outcome.FAIL, node=1)
    (entry,) = entries_of(lab.trace((aborted,), trace_id=1))
    assert (entry.kind, entry.what.partition(" after")[0]) == ("txn aborted", "op 1: transaction -> aborted")
    trace = lab.trace((aborted,), trace_id=1, events=(Event(time=1, name=Name.BROKER_STARTED, node=1),))
    assert [message.fate for message in messages_of(trace, moments_of(trace))] == [Fate.ARRIVED]
    poll = lab.operation(2, Function.POLL, 0, 1, process=1, **lab.T0, offset=4, isolation="read_committed")
    assert request_in_words(poll) == "poll t-0 from offset 4, isolation.level=read_committed"


def test_what_concerns_several_partitions_is_shown_for_each() -> None:
    """Rule: a commit of two partitions is in the timeline of either, and not in that of a third."""
    spots = tuple(Position(topic="t", partition=number, offset=7) for number in range(2))
    commit = lab.operation(1, Function.COMMIT, 0, 1, group="g", process=1, positions=spots)
    trace = lab.trace((commit,), trace_id=1)
    shown = [len(entries_of(trace, focus=frozenset({("t", number)}))) for number in range(3)]
    assert shown == [1, 1, 0]


def test_every_event_name_has_words() -> None:
    """Each name of the vocabulary has its own words, also with its columns left at -1."""
    assert set(EVENT_WORDS) == set(Name)
    for name in Name:
        assert event_in_words(Event(time=0, name=name))


def test_a_finding_explains_itself(trace: Trace, finding: Finding) -> None:
    """Expected, seen, where, the convicting operations and events, and the replay command all stand in the
    explanation."""
    text = explain(finding, trace, replay="fencepost replay out --trace 7").plain()
    for part in (
        "lost_write in trace 7, found by log",
        "expected:  the read of op 3 to show v2000 at offset 1",
        "seen:      an end of 1 and no v2000",
        "where:     t-0 at offset 1",
        "replay:    fencepost replay out --trace 7",
        ">>> op 2, client 4, [0.300000 .. 0.303000]: append v2000 to t-0, acks=all -> ok at offset 1",
        ">>> op 3, client 5, [12.000000 .. 12.002000]: poll t-0 from offset 0 -> read v1000, end 1 (final "
        "read)",
        "at 9.701000, broker 2 t-0: LEADS in epoch 1 from offset 1, high watermark 1",
    ):
        assert part in text
    assert explain(finding, trace).text().plain.replace(" ", "") == explain(finding, trace).plain().replace(
        " ", ""
    )


def test_a_certificate_that_misses_its_operations_says_so(trace: Trace, finding: Finding) -> None:
    """A finding about operations that the trace does not hold is told, not crashed on."""
    text = explain(evolve(finding, operations=(99,), events=(10_000, -1)), trace).plain()
    assert "op 99: not in the trace" in text
    assert "event 10000: not in the trace" in text
