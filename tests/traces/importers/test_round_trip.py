"""Every reader: a history written in its format and read again has the verdict that it had. What says nothing
changes no verdict: the order of lines that have times, further fields, names of processes and keys."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from attrs import evolve, frozen
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fencepost.checkers.judges import judge
from fencepost.checkers.linearizability.linearizability_judge import judge_counted
from fencepost.checkers.models import model_named
from fencepost.checkers.verdict import Decision, combine
from fencepost.traces.importers import import_text
from fencepost.traces.jsonlines import lines_of, read_traces
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.trace import Trace

FEW = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
MODEL = model_named("cas-register")
TYPES = {"ok": Outcome.OK, "fail": Outcome.FAIL, "info": Outcome.UNKNOWN}


@frozen
class Entry:
    """One line of a foreign history. The value is as in JSON."""

    time: int
    process: int
    type: str
    f: str
    value: Any


def edn(value: Any) -> str:
    """A JSON value as EDN."""
    if value is None:
        return "nil"
    if isinstance(value, list):
        return f"[{' '.join(map(edn, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} {edn(of)}" for name, of in value.items()) + "}"
    return (
        str(value).lower()
        if isinstance(value, bool)
        else f":{value}"
        if isinstance(value, str)
        else str(value)
    )


def as_edn(entries: list[Entry], more: str = "") -> str:
    """Maps, one a line."""
    entry = "{{:type :{}, :f :{}, :value {}, :process {}, :time {}{}}}"
    return "\n".join(
        entry.format(one.type, one.f, edn(one.value), one.process, one.time, more) for one in entries
    )


def as_json(entries: list[Entry], more: dict[str, Any] | None = None) -> str:
    """An array of objects."""
    fields = ("type", "f", "value", "process", "time")
    return json.dumps([{name: getattr(one, name) for name in fields} | (more or {}) for one in entries])


def as_text(prefix: str) -> Callable[[list[Entry]], str]:
    """Lines with tabs, with what a log writes before each."""
    return lambda entries: "".join(
        f"{prefix}{e.process}\t:{e.type}\t:{e.f}\t{edn(e.value)}\n" for e in entries
    )


WRITERS: dict[str, Callable[[list[Entry]], str]] = {
    "edn": as_edn,
    "json": as_json,
    "jepsen-history": as_text(""),
    "jepsen-log": as_text("2024-01-02 03:04:05,678{GMT}\tINFO\t[jepsen worker 0] jepsen.util: "),
    "etcd-log": as_text("INFO  jepsen.util - "),
}


@st.composite
def registers(draw: st.DrawFn) -> list[Entry]:
    """A history of a register: three clients at once, each in one operation at a time. A client whose
    operation has an unknown outcome goes on under another number, as in Jepsen."""
    value = st.integers(0, 2)
    entries: list[Entry] = []
    under_way: dict[int, Entry] = {}
    names = {0: 0, 1: 1, 2: 2}
    for time in range(draw(st.integers(2, 14))):
        client = draw(st.integers(0, 2))
        begun = under_way.pop(client, None)
        if begun is None:
            f = draw(st.sampled_from(["read", "write", "cas"]))
            asked = {"read": None, "write": draw(value), "cas": [draw(value), draw(value)]}[f]
            under_way[client] = Entry(10 * time, names[client], "invoke", f, asked)
            entries.append(under_way[client])
            continue
        kind = draw(st.sampled_from(["ok", "ok", "ok", "fail", "info"]))
        answer = draw(value) if begun.f == "read" and kind == "ok" else begun.value
        entries.append(evolve(begun, time=10 * time, type=kind, value=answer))
        names[client] += 3 if kind == "info" else 0
    return entries


def operations_of(entries: list[Entry]) -> tuple[Operation, ...]:
    """What the entries mean, with no reader in between."""
    found: dict[int, Operation] = {}
    done: list[Operation] = []
    for entry in entries:
        if entry.type == "invoke":
            found[entry.process] = Operation(
                op_id=len(done) + len(found) + 100 * entry.time, process=entry.process,
                function=Function(entry.f), invoke_time=entry.time, outcome=Outcome.UNKNOWN,
                argument=None if entry.value is None else msgspec.json.encode(entry.value).decode(),
            )  # fmt: skip
            continue
        begun, outcome = found.pop(entry.process), TYPES[entry.type]
        result = {"read": entry.value, "cas": True}.get(entry.f) if outcome is Outcome.OK else None
        known = None if outcome is Outcome.UNKNOWN else entry.time
        text = None if result is None else json.dumps(result)
        done.append(evolve(begun, outcome=outcome, completion_time=known, result=text))
    return (*done, *found.values())


def decided(trace: Trace) -> Decision:
    """What the register's model says."""
    return judge_counted(trace, MODEL).verdict.decision


def meant(entries: list[Entry]) -> Decision:
    """The verdict of the history itself."""
    return decided(Trace(trace_id=0, plan="", seed=0, software_version="", operations=operations_of(entries)))


@pytest.mark.parametrize("format", WRITERS)
@FEW
@given(registers())
def test_a_history_in_each_notation_has_its_verdict(format: str, entries: list[Entry]) -> None:
    """Written in a format, and read by its name."""
    text = WRITERS[format](entries)
    assert decided(import_text(text, where="h", format=format)) == meant(entries)


@FEW
@given(registers(), st.randoms(use_true_random=False), st.permutations(range(40)))
def test_what_says_nothing_changes_no_verdict(entries: list[Entry], random: Any, names: list[int]) -> None:
    """Lines with times in any order, further fields, processes of other names."""
    wanted = meant(entries)
    shuffled = random.sample(entries, len(entries))
    assert decided(import_text(as_edn(shuffled), where="h")) == wanted
    assert decided(import_text(as_json(shuffled), where="h")) == wanted
    more = ', :index 7, :exception {:via [#object[a.B 0x1 "x"]]}, :node "n1"'
    assert decided(import_text(as_edn(entries, more), where="h")) == wanted
    assert decided(import_text(as_json(entries, {"index": 7, "node": {"a": [1]}}), where="h")) == wanted
    renamed = [evolve(one, process=names[one.process % 40] + 40 * (one.process // 40)) for one in entries]
    assert decided(import_text(as_edn(renamed), where="h")) == wanted
    called = [evolve(one, process=f"c{one.process}") for one in entries]  # type: ignore[arg-type]
    assert decided(import_text(as_json(called), where="h")) == wanted


@FEW
@given(registers(), registers(), st.permutations(range(5, 15)))
def test_names_of_keys_change_no_verdict(first: list[Entry], second: list[Entry], names: list[int]) -> None:
    """Two registers in one history of [key value], under any two keys; it is legal if both are."""
    both = [
        evolve(one, process=one.process + 100 * key, time=one.time + key, value=[names[key], one.value])
        for key, entries in enumerate((first, second))
        for one in entries
    ]
    both.sort(key=lambda one: one.time)
    legal = {meant(first), meant(second)} == {Decision.OK}
    trace = import_text(as_edn(both), where="h")
    assert (decided(trace) is Decision.OK) == legal and {one.key for one in trace.operations} == {
        str(names[0]),
        str(names[1]),
    }


@st.composite
def sends_and_polls(draw: st.DrawFn) -> list[Entry]:
    """A history of Jepsen's Kafka workload: sends, and polls from the beginning, some of them wrong."""
    entries: list[Entry] = [Entry(0, 9, "invoke", "assign", [0]), Entry(1, 9, "ok", "assign", [0])]
    log: list[int] = []
    at = 0
    for number in range(draw(st.integers(1, 6))):
        time = 10 + 10 * number
        if draw(st.booleans()):
            log.append(number)
            asked, answer, process, f = (
                [["send", 0, number]],
                [["send", 0, [len(log) - 1, number]]],
                number % 3,
                "send",
            )
        else:
            skipped = draw(st.integers(0, 4)) == 0
            pairs = [[offset, log[offset]] for offset in range(at + skipped, len(log))]
            at = len(log)
            asked, answer, process, f = [["poll"]], [["poll", {"0": pairs}]], 9, "poll"
        entries += [Entry(time, process, "invoke", f, asked), Entry(time + 5, process, "ok", f, answer)]
    return entries


def judged(trace: Trace) -> tuple[Decision, str | None]:
    """What the judges of a log say."""
    verdict = combine(judge(trace, ("log", "kafka")))
    return verdict.decision, verdict.anomaly


@FEW
@given(sends_and_polls(), st.permutations(range(10)), st.randoms(use_true_random=False))
def test_a_kafka_history_has_its_verdict(tmp_path_factory, entries, names, random) -> None:
    """As it is, as our own JSON lines, shuffled, with further fields, under other names of processes and of
    topics."""

    def read(some: list[Entry], more: str = "") -> Trace:
        return import_text(as_edn(some, more), where="h", format="jepsen-kafka")

    trace = read(entries)
    wanted = judged(trace)
    path = tmp_path_factory.mktemp("lines") / "h.jsonl"
    path.write_text("\n".join(lines_of(trace)))
    assert [judged(again) for again in read_traces(path)] == [wanted]
    assert judged(read(random.sample(entries, len(entries)))) == wanted
    assert judged(read(entries, ', :node "n1", :ext {:a 1}')) == wanted
    assert judged(read([evolve(one, process=names[one.process]) for one in entries])) == wanted
    text = as_edn(entries)
    for old, new in (("send 0 ", "send 7 "), ("{0 ", "{7 "), (":value [0]", ":value [7]")):
        text = text.replace(old, new)
    other = import_text(text, where="h")
    assert judged(other) == wanted


@FEW
@given(st.lists(st.booleans(), min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_the_verifiable_clients_have_their_verdict(shown: list[bool], random: Any) -> None:
    """A record that the consumer passed over is a finding, whatever else the lines say. Their order is that
    of the reads, so it counts: sorted by their milliseconds, the lines of two consumers would be mixed. That
    of the acknowledgements says nothing."""
    where = {"key": None, "topic": "t", "partition": 0}
    rows: list[dict[str, Any]] = [
        {"timestamp": 100 + n, "name": "producer_send_success", **where, "value": str(n), "offset": n}
        for n in range(len(shown))
    ]
    rows += [
        {"timestamp": 200 + n, "name": "record_data", **where, "value": str(n), "offset": n}
        for n, seen in enumerate(shown)
        if seen
    ]
    between = "".join("01"[seen] for seen in shown).strip("0")
    wanted = judged(import_text("\n".join(map(json.dumps, rows)), where="h"))
    assert (wanted[0] is Decision.ILLEGAL) == ("0" in between)
    sends = rows[: len(shown)]
    mixed = [*random.sample(sends, len(sends)), *rows[len(shown) :]]
    assert judged(import_text("\n".join(map(json.dumps, mixed)), where="h")) == wanted
    more = [{**row, "node": "n1", "topic": "other"} for row in rows]
    assert judged(import_text("\n".join(map(json.dumps, more)), where="h")) == wanted


@st.composite
def appends_and_lists(draw: st.DrawFn) -> list[Entry]:
    """A list-append history: each transaction appends to a list and reads another, some wrongly."""
    entries: list[Entry] = []
    lists: dict[int, list[int]] = {0: [], 1: []}
    for number in range(draw(st.integers(2, 7))):
        key, other = draw(st.sampled_from([(0, 1), (1, 0)]))
        lists[key].append(number)
        wrong = draw(st.sampled_from([False, False, False, True]))
        seen = lists[other][::-1] if wrong else [*lists[other]]
        asked = [["append", key, number], ["r", other, None]]
        answer = [["append", key, number], ["r", other, seen]]
        time, process = 10 * number, number % 3
        kind = draw(st.sampled_from(["ok", "ok", "ok", "info"]))
        entries += [
            Entry(time, process, "invoke", "txn", asked),
            Entry(time + 5, process, kind, "txn", answer if kind == "ok" else asked),
        ]
    # What nobody reads has no known place: a last reader sees all.
    asked, answer = (
        [["r", key, read] for key, read in pairs.items()] for pairs in ({0: None, 1: None}, lists)
    )
    return [*entries, Entry(900, 2, "invoke", "txn", asked), Entry(905, 2, "ok", "txn", answer)]


@FEW
@given(appends_and_lists(), st.permutations(range(3)), st.randoms(use_true_random=False))
def test_a_list_append_history_has_its_verdict(tmp_path_factory, entries, names, random) -> None:
    """In EDN and JSON, as our own JSON lines, shuffled, with further fields, under other names of processes
    and of keys."""
    checks = ("log", "kafka", "transactions")

    def said(text: str) -> tuple[Decision, str | None]:
        verdict = combine(judge(import_text(text, where="h", format="elle-append"), checks))
        return verdict.decision, verdict.anomaly

    text = as_edn(entries)
    wanted = said(text)
    path = tmp_path_factory.mktemp("lines") / "h.jsonl"
    path.write_text("\n".join(lines_of(import_text(text, where="h", format="elle-append"))))
    again = [combine(judge(trace, checks)) for trace in read_traces(path)]
    assert [(one.decision, one.anomaly) for one in again] == [wanted]
    assert said(as_json(entries)) == wanted
    assert said(as_edn(random.sample(entries, len(entries)))) == wanted
    assert said(as_edn(entries, ', :node "n1", :ext {:a 1}')) == wanted
    assert said(as_edn([evolve(one, process=names[one.process]) for one in entries])) == wanted
    assert said(text.replace(":append 1 ", ":append 8 ").replace(":r 1 ", ":r 8 ")) == wanted
