"""Elle's list-append histories become logs; the cycles that the check `transactions` names are those that
Elle names (Adya; Kingsbury and Alvaro, "Elle", VLDB 2020). All histories are by hand."""

import pytest

from fencepost.checkers.transactions import cycles_of_trace, judge_trace
from fencepost.traces.errors import TraceError
from fencepost.traces.importers import import_text


def history(*transactions, sequential=False):
    """EDN: each transaction by its own process, all at the same time or one after another."""
    entry = "{{:type :{}, :f :txn, :process {}, :value [{}]}}"
    invoked = [entry.format("invoke", number, asked) for number, (asked, _) in enumerate(transactions)]
    done = [entry.format("ok", number, answered) for number, (_, answered) in enumerate(transactions)]
    rows = [row for pair in zip(invoked, done, strict=True) for row in pair] if sequential else invoked + done
    return import_text("\n".join(rows), where="h.edn")


def both(*parts):
    """What was asked and what was answered: reads are asked without a value."""
    asked = [part if ":append" in part else f"{' '.join(part.split()[:2])} nil]" for part in parts]
    return " ".join(asked), " ".join(parts)


READS_EACH_OTHER = (both("[:append 0 1]", "[:r 1 [1]]"), both("[:append 1 1]", "[:r 0 [1]]"))
WRITES = (
    both("[:append 0 1]", "[:append 1 1]"),
    both("[:append 0 2]", "[:append 1 2]"),
    both("[:r 0 [1 2]]", "[:r 1 [2 1]]"),
)
SKEWED = (both("[:append 0 1]", "[:append 1 1]"), both("[:r 0 [1]]", "[:r 1 nil]"), both("[:r 1 [1]]"))
WRITE_SKEW = (
    both("[:r 0 nil]", "[:append 1 1]"), both("[:r 1 nil]", "[:append 0 1]"), both("[:r 0 [1]]", "[:r 1 [1]]")
)  # fmt: skip


@pytest.mark.parametrize(
    ("transactions", "names", "illegal"),
    [
        (READS_EACH_OTHER, {"G1c"}, {"circular_reads"}),
        (WRITES, {"G0"}, set()),
        (SKEWED, {"G-single"}, set()),
        (WRITE_SKEW, {"G2-item"}, set()),
        ((both("[:append 0 1]"), both("[:r 0 [1]]")), set(), set()),
    ],
)
def test_cycles_have_elles_names(transactions, names, illegal):
    """Rule (Adya): a cycle of reads, of writes, with one anti-dependency, with more. Only circular reads are
    a violation in Kafka."""
    trace = history(*transactions)
    assert {
        name for name in cycles_of_trace(trace).found if "-process" not in name and "-realtime" not in name
    } == names
    assert {finding.anomaly for finding in judge_trace(trace).findings} == illegal


def test_a_read_of_the_future():
    """Rule (Elle, G1c-realtime): a transaction that ended read what a later one wrote."""
    trace = history(both("[:r 0 [1]]"), both("[:append 0 1]"), sequential=True)
    (found,) = judge_trace(trace).findings
    assert found.anomaly == "circular_reads_in_real_time"
    assert "ended before" in found.seen and "read what" in found.seen


def test_the_rows():
    """Rule: an element at index i of a list is the record at offset i; where an append went is not known."""
    trace = history(("[:append :x 7] [:r 3 nil]", "[:append :x 7] [:r 3 [5 6]]"))
    rows = [
        (
            row.function.value,
            row.topic,
            row.partition,
            row.offset,
            [(each.offset, each.value) for each in row.records],
        )
        for row in trace.operations
    ]
    assert rows == [
        ("txn", None, None, None, []),
        ("append", "x", 0, None, [(-1, 7)]),
        ("poll", "jepsen", 3, 0, [(0, 5), (1, 6)]),
    ]
    assert trace.profile == "imported-elle-append"


@pytest.mark.parametrize(
    ("asked", "answered", "reason"),
    [
        ("[:append 0 1]", "[:append 0 2]", "the value 1 that was appended"),
        ("[:append 0 1]", "[:append 1 1]", "as micro-operation"),
        ("[:append 0 1] [:w 0 1]", "[:append 0 1] [:w 0 1]", "as micro-operation"),
        ("[:append 0 1] [:r 0 nil]", "[:append 0 1] [:r 0 4]", "a list of values"),
        ("[:append 0 1] [:r 0 nil]", "[:append 0 1] [:r 0 [:a]]", "64-bit integer"),
        ("[:append 0 1] 5", "[:append 0 1] 5", "as micro-operation"),
    ],
)
def test_what_is_not_understood_is_refused(asked, answered, reason):
    """Bad input gets one sentence with file and line."""
    with pytest.raises(TraceError, match=reason) as refused:
        history((asked, answered))
    assert "h.edn:2" in str(refused.value)


def test_entries_without_a_function():
    """Rule (Elle): every entry is a transaction, so `:f` may be missing, or nil, as in Elle's own samples."""
    entries = [
        f"{{:index {at}, :type :{kind}, {function} :process 3, :value [[:append 2 9] [:r 1 {read}]]}}"
        for at, (kind, function, read) in enumerate((("invoke", "", "nil"), ("ok", ":f nil,", "[4]")))
    ]
    trace = import_text("\n".join(entries), where="h.edn")
    assert [row.function.value for row in trace.operations] == ["txn", "append", "poll"]
    assert [record.value for record in trace.operations[2].records] == [4]
    assert trace.profile == "imported-elle-append"


def test_other_functions_are_refused():
    """Rule: a list-append history has transactions only."""
    with pytest.raises(TraceError, match="a function out of txn"):
        import_text(
            "{:type :invoke, :f :poll, :process 0, :value [[:append 0 1]]}",
            where="h.edn",
            format="elle-append",
        )
