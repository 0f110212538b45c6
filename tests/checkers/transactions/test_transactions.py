"""The transactions check on histories written by hand: what convicts, with which certificate, and what Kafka
allows."""

from attrs import evolve

from fencepost.checkers.judges import judge
from fencepost.checkers.transactions import cycles_of_trace, judge_trace
from fencepost.checkers.verdict import Decision
from fencepost.traces.importers import import_text
from fencepost.traces.operations import Function, Operation, Outcome, Record
from fencepost.traces.trace import Claims, LossRange, Trace
from tests.checkers import lab


def txn(
    op_id: int, process: int, at: tuple[int, int], *parts: Operation, outcome: Outcome = Outcome.OK
) -> list[Operation]:
    """A transaction from at[0] to at[1] with its parts, one nanosecond each from at[0] + 1 on."""
    head = lab.operation(
        *(op_id, Function.TXN, at[0], None if outcome is Outcome.UNKNOWN else at[1]),
        process=process,
        outcome=outcome,
    )
    inside = [
        evolve(
            part,
            op_id=op_id + 1 + n,
            process=process,
            invoke_time=at[0] + 1 + n,
            completion_time=at[0] + 1 + n,
        )
        for n, part in enumerate(parts)
    ]
    return [head, *inside]


def part(
    function: Function, partition: int, offset: int | None, *records: Record, **more: object
) -> Operation:
    """A part whose ids and times its transaction gives."""
    return Operation(
        op_id=0,
        process=0,
        function=function,
        topic="t",
        partition=partition,
        invoke_time=0,
        completion_time=0,
        outcome=Outcome.OK,
        acks=-1,
        offset=offset,
        records=records,
        **more,  # type: ignore[arg-type]
    )


def send(partition: int, offset: int, value: int) -> Operation:
    """One record, acknowledged at its offset."""
    return part(
        Function.APPEND, partition, offset, Record(topic="t", partition=partition, offset=-1, value=value)
    )


def poll(
    partition: int, *records: tuple[int, int], start: int | None = None, isolation: str | None = None
) -> Operation:
    """A poll that returned (offset, value) pairs."""
    shown = (Record(topic="t", partition=partition, offset=offset, value=value) for offset, value in records)
    return part(Function.POLL, partition, start, *shown, isolation=isolation)


def trace(*transactions: list[Operation], claims: Claims | None = None) -> Trace:
    """A trace of them."""
    operations = tuple(op for one in transactions for op in one)
    return lab.trace(operations, trace_id=1, claims=claims or Claims())


def crossed(isolation: str | None = "read_committed", outcome: Outcome = Outcome.OK) -> Trace:
    """Two transactions at once, each of which reads what the other one writes."""
    return trace(
        txn(10, 0, (0, 9), send(0, 0, 1), poll(1, (0, 2), isolation=isolation), outcome=outcome),
        txn(20, 1, (0, 9), send(1, 0, 2), poll(0, (0, 1), isolation=isolation), outcome=outcome),
    )


def names(of: Trace) -> set[str]:
    """What the check finds."""
    return {finding.anomaly for finding in judge_trace(of).findings}


def test_two_transactions_that_read_each_other_are_convicted() -> None:
    """Each would have committed before the other one; the certificate is the transactions and the polls."""
    (finding,) = judge_trace(crossed()).findings
    assert finding.anomaly == "circular_reads"
    assert set(finding.operations) == {10, 12, 20, 22}
    assert finding.seen in (
        "operation 20 read what operation 10 wrote to t-0 at offset 0; operation 10 read what operation 20 "
        "wrote to t-1 at offset 0",
        "operation 10 read what operation 20 wrote to t-1 at offset 0; operation 20 read what operation 10 "
        "wrote to t-0 at offset 0",
    )


def test_values_at_both_ends_of_64_bits_are_told_apart() -> None:
    """Log and value do not fit into one number then; a third log has other values."""
    first, last, logs = -(2**63), 2**63 - 1, 4
    crossing = (
        txn(10, 0, (0, 9), send(0, 0, first), poll(1, (0, last), isolation="read_committed")),
        txn(20, 1, (0, 9), send(1, 0, last), poll(0, (0, first), isolation="read_committed")),
    )
    others = [txn(30 + 10 * n, 2, (20 + 10 * n, 29 + 10 * n), send(2 + n, 0, n)) for n in range(logs - 2)]
    (finding,) = judge_trace(trace(*crossing, *others)).findings
    assert finding.anomaly == "circular_reads" and set(finding.operations) == {10, 12, 20, 22}
    assert names(trace(crossing[0], *others)) == set()


def test_who_asked_for_uncommitted_records_gets_them() -> None:
    """Rule (isolation.level): a read_uncommitted read promises nothing about commits."""
    assert names(crossed("read_uncommitted")) == set()
    assert names(crossed(None)) == {"circular_reads"}, "who says nothing is believed"


def test_what_failed_wrote_nothing_that_counts_here() -> None:
    """An aborted record that is read is G1a, which the log check names; it makes no circle."""
    assert names(crossed(outcome=Outcome.FAIL)) == set()
    assert names(crossed(outcome=Outcome.UNKNOWN)) == {"circular_reads"}, "what was read has committed"


def test_the_order_of_a_process_closes_a_circle() -> None:
    """A process writes after it has ended a transaction that read what depends on the later one."""
    found = trace(
        txn(10, 0, (0, 9), poll(0, (0, 1))),
        txn(20, 0, (10, 19), send(1, 0, 2)),
        txn(30, 1, (0, 25), poll(1, (0, 2)), send(0, 0, 1)),
    )
    (finding,) = judge_trace(found).findings
    assert finding.anomaly == "circular_reads_in_process"
    assert "operation 10 ended before operation 20 began" in finding.seen
    assert set(finding.operations) == {10, 11, 20, 30, 31}


def test_the_order_of_time_closes_a_circle_unless_clocks_may_err() -> None:
    """As above between two processes; with an uncertainty as long as the gap nothing is certain."""
    parts = (
        txn(10, 0, (0, 9), poll(0, (0, 1))),
        txn(20, 2, (10, 19), send(1, 0, 2)),
        txn(30, 1, (0, 25), poll(1, (0, 2)), send(0, 0, 1)),
    )
    assert names(trace(*parts)) == {"circular_reads_in_real_time"}
    assert names(trace(*parts, claims=Claims(clock_uncertainty_ns=1))) == set()


def test_a_tie_is_concurrent() -> None:
    """What began at the moment at which another ended did not begin after it."""
    found = trace(
        txn(10, 0, (0, 9), poll(0, (0, 1))),
        txn(20, 2, (9, 19), send(1, 0, 2)),
        txn(30, 1, (0, 25), poll(1, (0, 2)), send(0, 0, 1)),
    )
    assert names(found) == set()


def test_cycles_of_writes_and_anti_dependencies_are_counted_and_legal() -> None:
    """Kafka writes open transactions into its logs in any order, and shows readers old states."""
    writes = trace(
        txn(10, 0, (0, 9), send(0, 0, 1), send(1, 1, 3)), txn(20, 1, (0, 9), send(0, 1, 2), send(1, 0, 4))
    )
    assert judge_trace(writes).decision is Decision.OK
    assert cycles_of_trace(writes).found["G0"] == 1
    skew = trace(
        txn(10, 0, (0, 9), poll(0, start=0), send(1, 0, 1)),
        txn(20, 1, (0, 9), poll(1, start=0), send(0, 0, 2)),
    )
    assert judge_trace(skew).decision is Decision.OK
    assert cycles_of_trace(skew).found == {"G2-item": 1, "G2-item-process": 1, "G2-item-realtime": 1}
    single = trace(
        txn(10, 0, (0, 9), poll(0, start=0), poll(1, (0, 1))),
        txn(20, 1, (0, 9), send(1, 0, 1), send(0, 0, 2)),
    )
    assert cycles_of_trace(single).found["G-single"] == 1


def test_compaction_takes_anti_dependencies_away() -> None:
    """What a poll of a compacted log did not return may have been removed."""
    skew = trace(
        txn(10, 0, (0, 9), poll(0, start=0), send(1, 0, 1)),
        txn(20, 1, (0, 9), poll(1, start=0), send(0, 0, 2)),
        claims=Claims(compacted=("t",)),
    )
    assert cycles_of_trace(skew).found == {}


def test_a_long_circle_has_its_shortest_certificate() -> None:
    """Of a component with a long circle and a short one inside, the short one is shown."""
    ring = [txn(10 * n, n, (0, 99), send(n, 0, n), poll((n + 1) % 9, (0, (n + 1) % 9))) for n in range(9)]
    ring[4].append(evolve(poll(3, (0, 3)), op_id=49, process=4, invoke_time=5, completion_time=5))
    (finding,) = judge_trace(trace(*ring)).findings
    assert {op for op in finding.operations if op % 10 == 0} == {30, 40}


def test_jepsens_circle_is_found() -> None:
    """A history of Jepsen's Kafka workload in which two transactions read each other (its G1c)."""
    history = """
{:process 0, :type :invoke, :f :txn, :value [[:send 0 1] [:poll]], :time 0}
{:process 1, :type :invoke, :f :txn, :value [[:send 1 2] [:poll]], :time 1}
{:process 0, :type :ok, :f :txn, :value [[:send 0 [0 1]] [:poll {1 [[0 2]]}]], :time 2}
{:process 1, :type :ok, :f :txn, :value [[:send 1 [0 2]] [:poll {0 [[0 1]]}]], :time 3}
"""
    imported = import_text(history, where="a history", format="jepsen-kafka")
    found = {
        finding.anomaly for verdict in judge(imported, ("transactions",)) for finding in verdict.findings
    }
    assert found == {"circular_reads"}


def test_a_trace_without_transactions_is_not_looked_at() -> None:
    """Consumers and producers without transactions are the log check's and kafka's."""
    plain = evolve(
        crossed(), operations=tuple(op for op in crossed().operations if op.function is not Function.TXN)
    )
    assert judge_trace(plain).decision is Decision.OK
    assert cycles_of_trace(plain).found == {}


def test_repeated_values_name_no_writer() -> None:
    """Where values may repeat, nobody knows who wrote what was read: nothing is said."""
    repeated = evolve(crossed(), unique_values=False)
    assert judge_trace(repeated).decision is Decision.OK
    assert cycles_of_trace(repeated).found == {}


def test_what_may_have_been_lost_has_no_place() -> None:
    """Rule (claims, loss): the order of writes inside of a range that may be lost is no order."""
    writes = (
        txn(10, 0, (0, 9), send(0, 0, 1), send(1, 1, 3)),
        txn(20, 1, (0, 9), send(0, 1, 2), send(1, 0, 4)),
    )
    lost = LossRange(topic="t", partition=1, start=0, end=2, reason="a test")
    assert "G0" in cycles_of_trace(trace(*writes)).found
    assert cycles_of_trace(trace(*writes, claims=Claims(loss=(lost,)))).found == {}


def test_a_position_meets_the_next_writer_of_its_own_log() -> None:
    """However high that one stands, and whatever other logs hold."""
    single = trace(
        txn(10, 0, (0, 9), poll(0, start=0), poll(1, (0, 1))),
        txn(20, 1, (0, 9), send(1, 0, 1), send(0, 60, 2)),
    )
    assert cycles_of_trace(single).found["G-single"] == 1
    beside = trace(
        txn(10, 0, (0, 9), poll(0, start=61), poll(1, (0, 1))),
        txn(20, 1, (0, 9), send(1, 0, 1), send(0, 60, 2)),
    )
    assert cycles_of_trace(beside).found == {}, "it had read beyond that record"


def test_a_trace_that_says_too_little_is_not_judged() -> None:
    """Rule (assumption_broken): the reason is the claims'."""
    weak = evolve(crossed(), claims=Claims(assumption_broken="nobody read"))
    verdict = judge_trace(weak)
    assert (verdict.decision, verdict.reason) == (Decision.ASSUMPTION_BROKEN, "nobody read")


def test_anti_dependencies_that_close_nothing_are_none() -> None:
    """A reader of an old state outside of every circle makes no circle of others an anti-dependency."""
    found = trace(
        txn(10, 0, (0, 9), send(0, 0, 1), poll(1, (0, 2))),
        txn(20, 1, (0, 9), send(1, 0, 2), poll(0, (0, 1))),
        txn(30, 2, (0, 9), poll(0, start=0)),
    )
    assert cycles_of_trace(found).found == {"G1c": 1, "G1c-process": 1, "G1c-realtime": 1}


def test_of_many_circles_each_trace_shows_one() -> None:
    """However many components there are, each is looked at by itself, and a trace has one finding."""
    pairs = [
        one
        for n in range(300)
        for one in (
            txn(100 * n, 2 * n, (0, 9), send(0, 2 * n, 2 * n), poll(1, (2 * n + 1, 2 * n + 1))),
            txn(100 * n + 50, 2 * n + 1, (0, 9), send(1, 2 * n + 1, 2 * n + 1), poll(0, (2 * n, 2 * n))),
        )
    ]
    (finding,) = judge_trace(trace(*pairs)).findings
    assert len(finding.operations) == 4
    assert cycles_of_trace(trace(*pairs)).found["G1c"] == 300


def test_loss_is_of_one_log_and_its_offsets() -> None:
    """Rule (claims, loss): places high up in the log of the range have no order, and those of the other log
    keep theirs."""
    writes = (
        txn(10, 0, (0, 9), send(0, 5, 1), send(1, 6, 3)),
        txn(20, 1, (0, 9), send(0, 6, 2), send(1, 5, 4)),
    )
    lost = LossRange(topic="t", partition=1, start=5, end=7, reason="a test")
    assert cycles_of_trace(trace(*writes)).found["G0"] == 1
    assert cycles_of_trace(trace(*writes, claims=Claims(loss=(lost,)))).found == {}


def test_repeated_values_have_no_order() -> None:
    """Where values may repeat, acknowledged offsets make no order of writes either."""
    writes = trace(
        txn(10, 0, (0, 9), send(0, 0, 1), send(1, 1, 3)), txn(20, 1, (0, 9), send(0, 1, 2), send(1, 0, 4))
    )
    assert "G0" in cycles_of_trace(writes).found
    assert cycles_of_trace(evolve(writes, unique_values=False)).found == {}


def test_a_log_with_high_offsets_hides_no_writer_of_another() -> None:
    """A position in the second log meets the writer there, though the first log's records stand far above
    it."""
    skew = trace(
        txn(10, 0, (0, 9), poll(1, start=0), send(2, 0, 1)),
        txn(20, 1, (0, 9), poll(2, start=0), send(1, 3, 2)),
        txn(30, 2, (0, 9), send(0, 60, 5)),
    )
    assert cycles_of_trace(skew).found["G2-item"] == 1
