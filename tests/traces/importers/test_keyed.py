"""Values [key value] of jepsen.independent: a history is split by key where its shape says so, and never by
half."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.checkers.linearizability import judge_trace
from fencepost.checkers.models import model_named
from fencepost.checkers.verdict import Decision
from fencepost.traces.errors import TraceError
from fencepost.traces.importers import Conventions, import_text

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
