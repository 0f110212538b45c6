"""Which entry of a foreign history came first: its times say, where every entry has one."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.checkers.linearizability import judge_trace
from fencepost.checkers.log.log_judge import judge_trace as judge_log
from fencepost.checkers.models import model_named
from fencepost.checkers.verdict import Decision
from fencepost.traces.errors import TraceError
from fencepost.traces.importers import DEFAULT, Conventions, import_text

LATE = """{:type :invoke :f :write :process 0 :time 1000 :value 7}
{:type :ok :f :write :process 0 :time 9000 :value 7}
{:type :invoke :f :read :process 1 :time 2000 :value nil}
{:type :ok :f :read :process 1 :time 3000 :value 1}"""
"""Each client wrote both lines when it was done: the read was over before the write took effect."""
LATE_SENDS = """{:type :invoke, :f :send, :value [[:send 3 1]], :process 0, :time 10}
{:type :ok, :f :send, :value [[:send 3 [8 1]]], :process 0, :time 100}
{:type :invoke, :f :send, :value [[:send 3 2]], :process 2, :time 20}
{:type :ok, :f :send, :value [[:send 3 [7 2]]], :process 2, :time 50}"""
FILE = Conventions(order="file")


def decided(text: str, model: str = "register", conventions: Conventions = DEFAULT, **more) -> Decision:
    trace = import_text(text, where="h", conventions=conventions)
    return judge_trace(trace, model_named(model, more)).decision


def test_times_that_contradict_the_order_of_the_file_count() -> None:
    """Rule: entries that were written at completion are put in order by their times, and that is said;
    the order of the file counts on demand."""
    said: list[str] = []
    import_text(LATE, where="h", tell=said.append)
    assert said == [
        "h: the times of 2 entries contradict the order of the file: the times count (--order file takes "
        "the order of the file)"
    ]
    assert decided(LATE, initial=1) is Decision.OK
    assert decided(LATE, initial=1, conventions=FILE) is Decision.ILLEGAL


def test_times_of_the_kafka_workload_count() -> None:
    """Rule: so do those of Jepsen's Kafka workload: of two sends that overlap by their times, either may have
    the lower offset."""
    said: list[str] = []
    trace = import_text(LATE_SENDS, where="h", tell=said.append)
    assert [(o.invoke_time, o.completion_time) for o in trace.operations] == [(10, 100), (20, 50)]
    assert len(said) == 1 and "--order file" in said[0]
    by_file = import_text(LATE_SENDS, where="h", conventions=FILE)
    assert [(o.invoke_time, o.completion_time) for o in by_file.operations] == [(0, 1), (2, 3)]
    assert judge_log(trace, weak_is_ok=True).decision is Decision.OK
    assert judge_log(by_file, weak_is_ok=True).decision is Decision.ILLEGAL


def test_the_index_decides_between_equal_times() -> None:
    """Rule: Jepsen's :index is the order of a history; entries with equal times and without it are
    concurrent, and that is said."""
    text = """{:type :invoke :f :write :process 0 :time 5 :value 1 %s}
    {:type :ok :f :write :process 0 :time 5 :value 1 %s}
    {:type :invoke :f :read :process 1 :time 5 :value nil %s}
    {:type :ok :f :read :process 1 :time 5 :value nil %s}"""
    assert decided(text % tuple(f":index {at}" for at in range(4))) is Decision.ILLEGAL
    assert decided(text % tuple(f":index {at}" for at in (2, 3, 0, 1))) is Decision.OK
    said: list[str] = []
    import_text(text % ("", "", "", ""), where="h", tell=said.append)
    assert len(said) == 1 and "equal times" in said[0] and "--order file" in said[0]
    assert decided(text % ("", "", "", "")) is Decision.OK
    assert decided(text % ("", "", "", ""), conventions=FILE) is Decision.ILLEGAL


def test_what_cannot_be_ordered_or_paired_is_named() -> None:
    """Rule: times that contradict the file and are not complete decide nothing; a completion before its
    invocation has none. Both are refused with their line and the way out."""
    partial = LATE.replace(" :time 9000", "")
    with pytest.raises(TraceError, match=r"h:2: expected a time .*--order file"):
        import_text(partial.replace("3000", "300"), where="h")
    backwards = LATE.replace(":time 9000", ":time 900")
    with pytest.raises(TraceError, match=r"h:2: expected an invocation of process 0 first.*--order file"):
        import_text(backwards, where="h")
    assert decided(backwards, initial=1, conventions=FILE) is Decision.ILLEGAL


def test_a_few_times_that_agree_with_the_file_change_nothing() -> None:
    """Rule: without complete times the order of the file counts, silently where nothing contradicts it."""
    said: list[str] = []
    trace = import_text(
        LATE.replace(":time 9000", "").replace("2000", "20000").replace("3000", "30000"),
        where="h",
        tell=said.append,
    )
    assert said == [] and [o.invoke_time for o in trace.operations] == [0, 2]


@st.composite
def timed_histories(draw: st.DrawFn) -> list[str]:
    """Lines of a register's history in the order of their times; with times that may be equal."""
    lines, now = [], 0
    waiting: dict[int, tuple[str, int]] = {}
    for _ in range(draw(st.integers(2, 14))):
        now += draw(st.integers(0, 2))
        process = draw(st.integers(0, 3))
        if process in waiting:
            function, value = waiting.pop(process)
            kind = draw(st.sampled_from(["ok", "ok", "ok", "fail", "info"]))
            shown = draw(st.integers(0, 3)) if function == "read" else value
        else:
            function, value = draw(st.sampled_from(["read", "write"])), draw(st.integers(0, 3))
            waiting[process] = (function, value)
            kind, shown = "invoke", value if function == "write" else "nil"
        lines.append(f"{{:type :{kind} :f :{function} :process {process} :time {now} :value {shown}}}")
        now += process in waiting or draw(st.integers(0, 1))
    return lines


@settings(max_examples=60)
@given(timed_histories(), st.integers(0, 2**32))
def test_shuffling_lines_that_have_times_changes_no_verdict(lines: list[str], seed: int) -> None:
    """Property: complete times say all about the order."""
    shuffled = lines[:]
    random.Random(seed).shuffle(shuffled)
    assert decided("\n".join(shuffled), initial=0) is decided("\n".join(lines), initial=0)
