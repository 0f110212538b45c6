"""The streaming form of the checks of transactions finds what they find in the whole trace, never more."""

from collections import Counter
from random import Random

import exactly_once_naive
import numpy as np
import pytest
import test_transactions_differential
from attrs import evolve
from streams import CIRCLES, moments, strongest

from fencepost.checkers import exactly_once, transactions
from fencepost.checkers.kafka.relations import TXN
from fencepost.checkers.operation_columns import columns_of_traces
from fencepost.checkers.transactions.graph import graph_of
from fencepost.checkers.transactions.streaming import CHECKS, TransactionWindow
from fencepost.checkers.transactions.streaming.closed import reached
from fencepost.checkers.verdict import Decision, Verdict
from fencepost.traces.operations import Function, Operation, Outcome, Position, Record
from fencepost.traces.trace import Claims, LossRange, Trace
from tests.checkers import lab
from tests.selfcheck.amounts import amount

MAKERS = {
    "transactions": (test_transactions_differential.history, transactions.judge_trace),
    "exactly_once": (exactly_once_naive.history, exactly_once.judge_trace),
}


def history(check: str, seed: int) -> Trace:
    """A random history of a check's own tests, with op ids in the order of rows."""
    made = MAKERS[check][0](seed)
    return evolve(made, operations=tuple(sorted(made.operations, key=lambda op: op.op_id)))


def streamed(trace: Trace, horizon: int, rng: Random) -> tuple[dict[str, list[str]], dict[str, Verdict]]:
    """The anomalies of each check in the order in which they were reported, cut anywhere; and the
    verdicts."""
    window = TransactionWindow(trace=evolve(trace, operations=()), horizon=horizon)
    found = []
    for moment in moments(trace):
        (window.complete if moment.completes else window.invoke)(moment.operation)
        if rng.random() < 0.3:
            found += window.news()
    verdicts = {verdict.check: verdict for verdict in window.end()}
    found += [finding for verdict in verdicts.values() for finding in verdict.findings]
    return {check: [one.anomaly for one in found if one.check == check] for check in CHECKS}, verdicts


@pytest.mark.parametrize("check", CHECKS)
def test_the_stream_finds_what_the_judge_of_the_whole_trace_finds(check: str) -> None:
    """As long as the horizon holds everything, whatever the cuts: the same anomalies, each once."""
    decided = Counter()
    for seed in range(amount(40, 80)):
        made = history(check, seed)
        wanted = {finding.anomaly for finding in MAKERS[check][1](made).findings}
        found, verdicts = streamed(made, 1_000, Random(seed))
        assert strongest(check, found[check]) == wanted, seed
        assert len(found[check]) == len(set(found[check])), seed
        assert verdicts[check].decision is (Decision.ILLEGAL if wanted else Decision.OK), seed
        decided[verdicts[check].decision] += 1
    assert min(decided.values()) > amount(5, 10)


@pytest.mark.parametrize("check", CHECKS)
def test_what_is_forgotten_convicts_nobody_and_is_not_called_ok(check: str) -> None:
    """With a horizon of a few operations: nothing that is not in the whole trace, and where something of
    it is missing the reason says so."""
    decided = Counter()
    for seed in range(amount(25, 50)):
        made = history(check, seed)
        wanted = [finding.anomaly for finding in MAKERS[check][1](made).findings]
        for horizon in (4, 6):
            found, verdicts = streamed(made, horizon, Random(seed))
            if check == "transactions":
                known = CIRCLES[: CIRCLES.index(wanted[0]) + 1] if wanted else ()
                assert set(found[check]) <= set(known), (seed, horizon)
            else:
                assert set(found[check]) <= set(wanted), (seed, horizon)
            if strongest(check, found[check]) != set(wanted):
                assert f"beyond the horizon of {horizon}" in verdicts[check].reason, (seed, horizon)
            decided[verdicts[check].decision] += 1
    assert min(decided[one] for one in (Decision.ILLEGAL, Decision.UNKNOWN, Decision.OK)) > 2


LONG = 60
"""Places of a stream that goes far beyond its horizon of twenty operations: five operations each."""


def rows(count: int, *, first: int = 0) -> list[Operation]:
    """A process that consumes, transforms and produces, and a reader of its output, `count` times, from a
    place of the input on."""
    made = []
    for n in range(first, first + count):
        at, op_id = 100 * n, 10 * n
        txn = {"process": 1, "producer_id": 7, "producer_epoch": 0}
        read = {"outcome": Outcome.OK, "partition": 0, "offset": n, "isolation": "read_committed"}
        made += [
            row(op_id, Function.POLL, at, process=1, topic="in", records=(record("in", n, -1 - n),), **read),
            row(op_id + 1, Function.TXN, at + 10, 70, **txn),
            row(
                op_id + 2, Function.APPEND, at + 20, 60, topic="out", partition=0, acks=-1, offset=n,
                records=(record("out", n, n),), result=f"in-0@{n}", **txn,
            ),
            row(
                op_id + 3, Function.COMMIT, at + 30, 50, process=1, argument="txn", group="g",
                positions=(Position(topic="in", partition=0, offset=n + 1),),
            ),
            row(
                op_id + 4, Function.POLL, at + 85, process=2, topic="out",
                records=(record("out", n, n),), **read,
            ),
        ]  # fmt: skip
    return made


def record(topic: str, offset: int, value: int) -> Record:
    """One record."""
    return Record(topic=topic, partition=0, offset=offset, value=value)


def row(op_id: int, function: Function, at: int, lasts: int = 5, **columns: object) -> Operation:
    """An operation that succeeds."""
    columns.setdefault("outcome", Outcome.OK)
    return Operation(op_id=op_id, function=function, invoke_time=at, completion_time=at + lasts, **columns)


def made_of(operations: list[Operation], **columns: object) -> Trace:
    """A trace of these."""
    ordered = tuple(sorted(operations, key=lambda op: op.op_id))
    return lab.trace(ordered, trace_id=1, **columns)


def watched(trace: Trace, horizon: int) -> tuple[TransactionWindow, dict[str, int], int]:
    """The trace through a window, asked after every operation: by anomaly the time at which it was reported,
    and the most operations that were remembered."""
    window, reported, most = TransactionWindow(trace=evolve(trace, operations=()), horizon=horizon), {}, 0
    for moment in moments(trace):
        (window.complete if moment.completes else window.invoke)(moment.operation)
        reported |= {finding.anomaly: moment.time for finding in window.news()}
        most = max(most, len(window.completed) + len(window.under_way))
    return window, reported, most


def test_a_healthy_stream_is_judged_in_bounded_memory() -> None:
    """A process that transforms for a long time is Ok, with a few operations of memory."""
    window, reported, most = watched(made_of(rows(LONG)), 20)
    assert reported == {} and most <= 80
    assert [(one.check, one.decision, one.reason) for one in window.end()] == [
        (check, Decision.OK, "") for check in CHECKS
    ]


def passed(trace: Trace, horizon: int) -> dict[str, tuple[Decision, str]]:
    """The decision and its reason of each check, asked only where something is forgotten and at the end."""
    window = TransactionWindow(trace=evolve(trace, operations=()), horizon=horizon)
    for moment in moments(trace):
        (window.complete if moment.completes else window.invoke)(moment.operation)
    return {verdict.check: (verdict.decision, verdict.reason) for verdict in window.end()}


def far_apart(op: Operation) -> Operation:
    """The input from offset 5,000 on; three of four outputs go to a log that begins at offset 90,000."""

    def moved(offset: int, topic: str | None, n: int) -> tuple[int, str | None]:
        if topic != "out":
            return offset + 5_000, topic
        return (offset + 90_000, "far") if n % 4 else (offset, topic)

    n = op.op_id // 10
    records = []
    for one in op.records:
        offset, topic = moved(one.offset, one.topic, n)
        records.append(evolve(one, offset=offset, topic=topic))
    changes: dict[str, object] = {
        "records": tuple(records),
        "positions": tuple(evolve(one, offset=one.offset + 5_000) for one in op.positions),
        "result": op.result and f"in-0@{n + 5_000}",
    }
    if op.offset is not None:
        changes["offset"], changes["topic"] = moved(op.offset, op.topic, n)
    return evolve(op, **changes)


def without_offset(op: Operation) -> Operation:
    """The producer of some outputs does not learn where they are."""
    if op.op_id % 30 != 2:
        return op
    return evolve(op, offset=None, records=tuple(evolve(one, offset=-1) for one in op.records))


def aborted(source: int) -> list[Operation]:
    """A transaction at place 80 that transforms this record and aborts."""
    head, append = (evolve(op, outcome=Outcome.FAIL) for op in rows(81)[-4:-2])
    return [head, evolve(append, result=f"in-0@{source}")]


def tried_again() -> list[Operation]:
    """Nobody reads the output. Of the first of two attempts at a record, a long time apart, it is not known
    how it ended; the other commits."""
    lost = [evolve(op, outcome=Outcome.UNKNOWN) if op.op_id in (301, 302, 303) else op for op in unread(80)]
    head, append, commit = rows(81)[-4:-1]
    at = Position(topic="in", partition=0, offset=31)
    return [*lost, head, evolve(append, result="in-0@30"), evolve(commit, positions=(at,))]


def unread(count: int) -> list[Operation]:
    """As `rows`, without the reader of the output."""
    return [op for op in rows(count) if op.op_id % 10 != 4]


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(tried_again(), id="an unread output is made again"),
        pytest.param([*rows(80), *aborted(30)], id="an old record is done again, and aborted"),
        pytest.param([far_apart(op) for op in rows(80)], id="logs whose offsets are far apart"),
        pytest.param(unread(80), id="nobody reads the output"),
        pytest.param([without_offset(op) for op in rows(80)], id="appends without an offset"),
    ],
)
def test_a_healthy_stream_is_ok_beyond_its_horizon(made: list[Operation]) -> None:
    """Rule: what is forgotten of one log says nothing of another; an output that is not yet read, or with an
    offset that nobody knows, is no missing one."""
    assert passed(made_of(made), 20) == dict.fromkeys(CHECKS, (Decision.OK, ""))


def test_an_output_that_is_missing_among_what_is_forgotten_is_not_called_ok() -> None:
    """A record of input without an output, committed long ago: the check ends unknown, with the number of
    logs of which it does not know."""
    missing = [op for op in rows(80) if op.op_id != 302]
    unread = [evolve(op, records=()) if op.op_id == 304 else op for op in missing]
    decided = passed(made_of(unread), 20)
    assert decided["exactly_once"] == (Decision.UNKNOWN, "1 operations lay beyond the horizon of 20")
    assert decided["transactions"] == (Decision.OK, "")


@pytest.mark.parametrize("outcome", [Outcome.OK, Outcome.FAIL])
def test_an_output_is_missing_though_no_output_of_its_log_is_remembered(outcome: Outcome) -> None:
    """The outputs that are forgotten were read by nobody, or aborted. The last record is committed without
    one."""
    *before, _, commit = [
        evolve(op, outcome=outcome) if op.op_id % 10 and op.op_id < 790 else op for op in unread(80)
    ]
    assert passed(made_of([*before, commit]), 20)["exactly_once"][0] is Decision.ILLEGAL


def planted(n: int, *changes: Operation) -> Trace:
    """A long stream in which operations are replaced, or added after place n."""
    new = {change.op_id: change for change in changes}
    kept = [new.pop(op.op_id, op) for op in rows(LONG)]
    return made_of([*kept, *new.values()])


def test_a_torn_transaction_is_found_while_the_run_goes_on() -> None:
    """Of two records of a transaction one is shown and the other passed over: reported with the read that
    shows it, long before the end."""
    at = 30
    append, reader = (next(op for op in rows(LONG) if op.op_id == 10 * at + n) for n in (2, 4))
    two = (record("out", at, at), record("out", at + 1, 5_000))
    passing = evolve(reader, records=(record("out", at, at), record("out", at + 2, at + 2)))
    torn = planted(at, evolve(append, records=two, result=f"in-0@{at} in-0@{at}"), passing)
    reported = watched(torn, 20)[1]
    assert reported["torn_transaction"] == reader.completion_time


def test_a_zombies_write_is_found_while_the_run_goes_on() -> None:
    """The producer of a later epoch began long ago, beyond the horizon: what the earlier one sends now is
    visible."""
    later = row(9_000, Function.TXN, 5, 20, process=5, producer_id=9, producer_epoch=1)
    zombie = [evolve(op, producer_id=9) for op in rows(LONG) if op.op_id in (501, 502)]
    reported = watched(planted(0, later, *zombie), 20)[1]
    assert reported == {"zombie_write": 5_090}  # the read of what the zombie sent


def test_an_output_made_twice_is_found_while_the_run_goes_on() -> None:
    """The same record of input, in two transactions one after the other."""
    again = next(op for op in rows(LONG) if op.op_id == 312)
    reported = watched(planted(31, evolve(again, result="in-0@30")), 20)[1]
    assert reported == {"output_twice": 3_190}


def test_two_transactions_that_read_each_other_are_found_while_the_run_goes_on() -> None:
    """Reported with the end of the second one."""
    crossed = []
    for n, (mine, other) in enumerate(((0, 1), (1, 0))):
        crossed += [
            row(9_000 + 10 * n, Function.TXN, 5_001, 20 + n, process=5 + n),
            row(
                9_001 + 10 * n, Function.APPEND, 5_002, 2, process=5 + n, topic=f"x{mine}", partition=0,
                acks=-1, offset=0, records=(record(f"x{mine}", 0, 9_000 + mine),),
            ),
            row(
                9_002 + 10 * n, Function.POLL, 5_005, 2, process=5 + n, topic=f"x{other}", partition=0,
                offset=0, records=(record(f"x{other}", 0, 9_000 + other),), isolation="read_committed",
            ),
        ]  # fmt: skip
    reported = watched(planted(50, *crossed), 20)[1]
    assert reported == {"circular_reads": 5_022}


def test_who_comes_back_to_what_is_forgotten_is_not_judged() -> None:
    """A reader of the output's beginning at the end of a long stream: exactly_once ends unknown, with a
    number; the other check does not need what is forgotten."""
    back = row(
        9_000, Function.POLL, 100 * LONG, process=5, topic="out", partition=0, offset=0,
        records=(record("out", 0, 0),), isolation="read_committed",
    )  # fmt: skip
    window, reported, _ = watched(made_of([*rows(LONG), back]), 20)
    verdicts = {verdict.check: verdict for verdict in window.end()}
    assert reported == {} and verdicts["transactions"].decision is Decision.OK
    assert verdicts["exactly_once"].decision is Decision.UNKNOWN
    assert verdicts["exactly_once"].reason == "1 operations lay beyond the horizon of 20"


def test_too_much_under_way_ends_the_judgement_and_not_the_memory() -> None:
    """More operations in flight than the horizon: nothing is judged any more, nothing is remembered."""
    open_ones = [
        evolve(row(9_000 + n, Function.TXN, 200 + n, process=50 + n), completion_time=None) for n in range(30)
    ]
    window, reported, most = watched(made_of([*rows(40), *open_ones]), 20)
    assert reported == {} and most <= 80 and not window.completed
    decided = {(verdict.decision, verdict.reason) for verdict in window.end()}
    assert decided == {(Decision.UNKNOWN, "1 operations lay beyond the horizon of 20")}


@pytest.mark.parametrize(("parts", "decision"), [(58, Decision.OK), (59, Decision.UNKNOWN)])
def test_a_transaction_is_judged_while_memory_has_room_for_it(parts: int, decision: Decision) -> None:
    """Nothing of a transaction under way is forgotten. With a horizon of 20, 40 operations may stay when
    something is to be forgotten; 60, the transaction and its parts, may not."""
    whole = row(0, Function.TXN, 0, 10_000, process=1)
    sent = [
        row(
            1 + n, Function.APPEND, 10 * (1 + n), process=1, topic="out", partition=0, acks=-1, offset=n,
            records=(record("out", n, n),),
        )
        for n in range(parts)
    ]  # fmt: skip
    assert {one for one, _ in passed(made_of([whole, *sent]), 20).values()} == {decision}


def test_who_writes_what_forgotten_readers_read_makes_the_check_unknown() -> None:
    """Rule: nobody had written to this log when its readers were forgotten; one of them may have read the
    record that is appended now."""
    late = row(
        9_000, Function.APPEND, 12_000, process=5, topic="in", partition=0, acks=-1, offset=500,
        records=(record("in", 500, 5),),
    )  # fmt: skip
    decided = passed(made_of([*rows(80), late]), 20)
    assert decided["transactions"] == (Decision.UNKNOWN, "1 operations lay beyond the horizon of 20")


def test_what_a_path_reaches() -> None:
    """Rule: each transaction that begins after the end of another one is reached from it, over any number of
    others; none before it is."""
    columns = columns_of_traces((made_of(rows(4)),))
    heads = np.flatnonzero(columns.function == TXN)
    found = reached(graph_of(columns), heads[1:2])
    assert found[heads].tolist() == [False, True, True, True]


def test_loss_that_the_claims_allow_excuses_and_other_traces_have_no_verdict() -> None:
    """As in the judge of the whole trace; a trace without transactions is Ok."""
    again = next(op for op in rows(LONG) if op.op_id == 312)
    lossy = LossRange(topic="out", partition=0, start=0, end=9, reason="a power loss")
    excused = evolve(planted(31, evolve(again, result="in-0@30")), claims=Claims(loss=(lossy,)))
    window, reported, _ = watched(excused, 20)
    assert reported == {} and {verdict.decision for verdict in window.end()} == {Decision.OK}
    plain = [op for op in rows(40) if op.function is Function.POLL]
    window, reported, _ = watched(made_of(plain), 5)
    assert reported == {} and {verdict.decision for verdict in window.end()} == {Decision.OK}
