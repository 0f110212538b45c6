"""Values [key value] of jepsen.independent: a history is split by key where its shape says so, and never by
half."""

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

KEYED = """{:type :invoke, :f :write, :value [3 10], :process 0}
{:type :ok, :f :write, :value [3 10], :process 0}
{:type :invoke, :f :write, :value [4 20], :process 1}
{:type :info, :f :write, :value nil, :process 1, :error :timeout}
{:type :invoke, :f :read, :value [3 nil], :process 2}
{:type :ok, :f :read, :value [3 10], :process 2}
{:type :invoke, :f :cas, :value [4 [20 21]], :process 3}
{:type :ok, :f :cas, :value [4 [20 21]], :process 3}
"""


def rows(text: str, **conventions):
    """Key, function, argument and result of each operation, and what was said."""
    said: list[str] = []
    trace = import_text(text, where="h", conventions=Conventions(**conventions), tell=said.append)
    return [(o.key, o.function.value, o.argument, o.result) for o in trace.operations], said


def test_pairs_of_key_and_value_are_split_and_said() -> None:
    """Rule: reads of [key nil] and cas of [key [old new]] say that values are keyed; an unknown operation
    without its value has the key of its invocation."""
    found, said = rows(KEYED)
    assert found == [
        ("3", "write", "10", None),
        ("4", "write", "20", None),
        ("3", "read", None, "10"),
        ("4", "cas", "[20,21]", "true"),
    ]
    assert said == [
        "h: values are taken as [key value] of jepsen.independent: 2 keys, each a history of its own "
        "(--not-keyed takes them as they are)"
    ]
    assert rows(KEYED.replace(":f :cas", ":f :write"), keyed=False)[0][0] == (None, "write", "[3,10]", None)


@pytest.mark.parametrize("tag", ["#clojure.lang.MapEntry", "#jepsen.independent.Tuple", "#jepsen/tuple "])
def test_tags_of_pairs_are_pairs(tag: str) -> None:
    """Rule: Clojure's MapEntry and tuples with a tag are pairs, and say that they are, also where
    nothing else does."""
    text = KEYED.replace(":value [", f":value {tag}[")
    assert rows(text)[0] == rows(KEYED)[0]
    writes = "\n".join(text.splitlines()[:2])
    assert rows(writes)[0] == [("3", "write", "10", None)]
    assert rows(writes, keyed=False)[0] == [(None, "write", "[3,10]", None)]


NOT_PAIRS = [
    "{:type :invoke :f :cas :value [1 2] :process 0} {:type :ok :f :cas :value [1 2] :process 0}",
    "{:type :invoke :f :write :value 5 :process 0} {:type :invoke :f :cas :value [5 6] :process 1}",
    "{:type :invoke :f :add :value 5 :process 0} {:type :invoke :f :read :value nil :process 1} "
    "{:type :ok :f :read :value [5 6] :process 1}",
    "{:type :invoke :f :write :value [5 6] :process 0} {:type :invoke :f :read :value nil :process 1} "
    "{:type :ok :f :read :value [5 6] :process 1}",
    '{:type :invoke :f :put :key "a" :value [5 6] :process 0}',
    "{:type :invoke :f :cas :value [0 1 5] :process 0}",
]


@pytest.mark.parametrize("text", NOT_PAIRS)
def test_other_lists_are_no_pairs(text: str) -> None:
    """Rule: the [old new] of a cas, lists of elements and values that are pairs throughout stay as they
    are."""
    found, said = rows(text)
    assert found == rows(text, keyed=False)[0]
    assert not any("independent: " in sentence for sentence in said)


HALVES = [
    (KEYED + "{:type :invoke, :f :write, :value 5, :process 5}", 9, "5"),
    (KEYED + "{:type :invoke, :f :read, :value nil, :process 5}", 9, "nothing"),
    (KEYED.replace("[3 10], :process 2", "10, :process 2"), 6, "10"),
    (KEYED.replace("[4 [20 21]]", "[20 21]"), 7, r"\[20, 21\]"),
    (
        "{:type :invoke :f :write :value [5 6] :process 0}\n{:type :invoke :f :write :value 6 :process 1}",
        2,
        "6",
    ),
    (
        "{:type :invoke :f :write :value [5 6] :process 0}\n{:type :invoke :f :read :value nil :process 1}\n"
        "{:type :ok :f :read :value 6 :process 1}",
        3,
        "6",
    ),
]


@pytest.mark.parametrize(("text", "line", "seen"), HALVES)
def test_half_a_match_is_refused(text: str, line: int, seen: str) -> None:
    """Rule: if only some values are pairs, nothing is guessed: the operation that does not fit is named, and
    --not-keyed takes all values as they are."""
    with pytest.raises(TraceError, match=rf"h:{line}: expected .*\[key value\].* saw {seen};.*--not-keyed"):
        rows(text)
    assert rows(text, keyed=False)[1] == []


def test_keyed_demands_pairs() -> None:
    """Rule: --keyed splits what has the shape, also where the shape alone would not say so, and refuses the
    rest."""
    text = "{:type :invoke :f :write :value [[1 2] 6] :process 0}"
    assert rows(text)[0] == [(None, "write", "[[1,2],6]", None)]
    assert rows(text, keyed=True)[0] == [("[1,2]", "write", "6", None)]
    with pytest.raises(TraceError, match=r"h:1: expected .*key value"):
        rows(NOT_PAIRS[1], keyed=True)
    with pytest.raises(TraceError, match="--keyed"):
        rows("{:type :invoke :f :send :value [[:send 0 1]] :process 0}", keyed=True)


def test_keys_that_would_become_one_are_refused() -> None:
    """Rule: keys are texts in a trace; 3 and "3" stay two registers, or the history is refused."""
    with pytest.raises(TraceError, match="h:3: expected keys that differ as texts"):
        rows(KEYED.replace("[4 20]", '["3" 20]').replace("[4 [", '["3" ['))


@st.composite
def keyed_histories(draw: st.DrawFn) -> list[tuple[int, str, str, int, int | None]]:
    """Entries (process, type, function, key, value) of registers under keys."""
    entries: list[tuple[int, str, str, int, int | None]] = [(9, "invoke", "read", 0, None)]
    waiting: dict[int, tuple[str, int, int | None]] = {}
    for _ in range(draw(st.integers(2, 16))):
        process = draw(st.integers(0, 3))
        if process in waiting:
            function, key, value = waiting.pop(process)
            shown = draw(st.integers(0, 2)) if function == "read" else value
            entries.append((process, "ok", function, key, shown))
        else:
            function, key = draw(st.sampled_from(["read", "write"])), draw(st.integers(0, 2))
            waiting[process] = (function, key, None if function == "read" else draw(st.integers(0, 2)))
            entries.append((process, "invoke", *waiting[process]))
    return entries


def written(entries, processes, keys) -> str:
    return "\n".join(
        f"{{:process {processes(process)} :type :{kind} :f :{function} "
        f":value [{keys(key)} {'nil' if value is None else value}]}}"
        for process, kind, function, key, value in entries
    )


def decision(text: str) -> Decision:
    return judge_trace(import_text(text, where="h"), model_named("register", {"initial": 0})).decision


@settings(max_examples=60)
@given(keyed_histories())
def test_names_of_keys_and_processes_change_no_verdict(entries) -> None:
    """Property: a history has the verdict of its keys' histories, whatever keys and processes are called."""
    plain = decision(written(entries, str, str))
    assert plain is decision(written(entries, lambda p: f'"client {p}"', lambda k: f":key{k}"))
    assert plain is decision(written(entries, lambda p: 100 - p, lambda k: f'"{7 - k}"'))
    alone = []
    for key in (0, 1, 2):
        one = [entry for entry in entries if entry[3] == key]
        if any(kind == "ok" for _, kind, *_ in one):
            alone.append(decision(written([*one, (8, "invoke", "read", key, None)], str, str)))
    if alone:
        assert (plain is Decision.ILLEGAL) == (Decision.ILLEGAL in alone)


# Which entry of a foreign history came first: its times say, where every entry has one.


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
