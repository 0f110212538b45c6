"""Strict reading of JSON lines."""

from pathlib import Path

import attrs
import pytest

from fencepost.traces import jsonlines
from fencepost.traces.errors import TraceError
from fencepost.traces.importers import import_file
from fencepost.traces.operations import Outcome

TRACE = '{"type":"trace","trace_id":1,"plan":"","seed":1,"software_version":"v"}'
EVENT = '{"type":"event","time":0,"name":"phase"}'


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([EVENT], r"f:1: expected a trace's own line first, saw event"),
        ([TRACE, "[1]"], r"f:2: expected a JSON object, saw list"),
        ([TRACE, "{"], r"f:2: expected a JSON object"),
        ([TRACE, "", '{"time":0}'], r'f:3: expected a "type"'),
        ([TRACE, '{"type":["event"]}'], r'f:2: expected a "type"'),
        ([TRACE, EVENT.replace("phase", "phrase")], r"f:2: .*phrase"),
        ([TRACE, EVENT.replace("0", '"0"')], r"f:2: .*time"),
        ([TRACE, EVENT.replace("0", "true")], r"f:2: .*time"),
        ([TRACE, EVENT.replace("0", str(2**63))], r"f:2: expected 64-bit integers"),
        (
            [TRACE, '{"type":"event","time":1,"name":"became_leader","node":1}'],
            r"f:2: expected the topic of an event became_leader, saw none",
        ),
        ([TRACE, EVENT.replace("time", "tyme")], r"f:2: .*unknown field tyme"),
        ([TRACE, '{"type":"event","name":"phase"}'], r"f:2: .*time"),
        ([TRACE.replace("}", ',"operations":[]}')], r"f:1: .*unknown field operations"),
        ([TRACE.replace("}", ',"claims":{"lost":[]}}')], r"f:1: .*unknown field lost"),
        (
            [
                TRACE.replace(
                    "}",
                    ',"claims":{"loss":[{"topic":"t","partition":0,"start":0,"end":1,"reason":"","x":1}]}}',
                )
            ],
            r"f:1: .*unknown field x",
        ),
    ],
)
def test_each_mistake_is_named_with_its_line(lines: list[str], said: str) -> None:
    """An unreadable line is refused in one sentence with file and line."""
    with pytest.raises(TraceError, match=said) as caught:
        list(jsonlines.read_lines(lines, where="f"))
    assert "\n" not in str(caught.value)


def test_a_byte_order_mark_is_named(tmp_path: Path) -> None:
    """Rule: the invisible first character of a file saved by an editor is named, not called malformed; in
    front of a foreign history, too."""
    path = tmp_path / "f.jsonl"
    path.write_text(TRACE + "\n", encoding="utf-8-sig")
    with pytest.raises(TraceError, match=r"f\.jsonl:1: .*saw a byte order mark.*; save the file"):
        list(jsonlines.read_traces(path))
    path.write_text('{"type":"invoke"}', encoding="utf-8-sig")
    with pytest.raises(TraceError, match=r"saw a byte order mark .*; save the file as UTF-8"):
        import_file(path)


def test_an_event_of_an_unknown_name_costs_that_event() -> None:
    """Whoever asks to be told gets the trace without it, and its name; messages say `an event` and `an
    operation`."""
    told: list[str] = []
    lines = [TRACE, EVENT, *[EVENT.replace("phase", "broker_paused")] * 2, EVENT.replace("phase", "x" * 200)]
    (trace,) = jsonlines.read_lines(lines, where="f", tell=told.append)
    assert len(trace.events) == 1
    assert (
        told[0]
        == "f:3: 2 events of the unknown name 'broker_paused' left out, the rest of the trace is judged"
    )
    assert told[1].startswith("f:5: an event of the unknown name 'xxx")
    assert len(told[1]) < 200
    for kind in ("event", "operation"):
        with pytest.raises(TraceError, match=f"expected the fields of an {kind}, saw the unknown field odd"):
            list(jsonlines.read_lines([TRACE, f'{{"type":"{kind}","odd":1}}'], where="f"))
    many = [EVENT.replace("phase", f"odd_{n}") for n in range(150)]
    told.clear()
    list(jsonlines.read_lines([TRACE, *many], where="f", tell=told.append))
    assert len(told) == 101, "a hundred names, and all others together"


def test_a_missing_or_binary_file_is_one_sentence(tmp_path: Path) -> None:
    """A file that is not there, or not text, is the caller's mistake."""
    with pytest.raises(TraceError, match="No such file"):
        list(jsonlines.read_traces(tmp_path / "none"))
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TraceError, match="bytes:1"):
        list(jsonlines.read_traces(tmp_path / "bytes"))


def test_several_traces_follow_each_other(tmp_path: Path, make_trace) -> None:
    """One file holds several traces, each with its own rows, one line per row."""
    traces = [make_trace(1), make_trace(2, appends=0), make_trace(3)]
    assert jsonlines.write_traces(tmp_path / "f", traces) == 3
    assert list(jsonlines.read_traces(tmp_path / "f")) == traces
    rows = sum(1 + len(trace.operations) + len(trace.events) for trace in traces)
    assert len((tmp_path / "f").read_text().splitlines()) == rows


def test_a_cut_last_line_loses_that_line_only(tmp_path: Path, make_trace) -> None:
    """Rule: what stands before a cut line is read, without the digest of the whole; then the cut is told
    with its line."""
    one, two = make_trace(1), attrs.evolve(make_trace(2), events=(), digest="ab" * 16)
    path = tmp_path / "f"
    jsonlines.write_traces(path, [one, two])
    data = path.read_bytes()
    lines = data.count(b"\n")
    for cut in (1, 2, 40):
        path.write_bytes(data[: -1 - cut])
        found = jsonlines.read_traces(path)
        assert next(found) == one
        assert next(found) == attrs.evolve(two, operations=two.operations[:-1], digest="")
        with pytest.raises(TraceError, match=rf"f:{lines}: expected a whole last line, saw one that was cut"):
            next(found)
    path.write_bytes(data[:-1])  # only the line feed is missing
    assert list(jsonlines.read_traces(path)) == [one, two]
    path.write_bytes(data[:-2] + b"\n")  # damaged, not cut
    found = jsonlines.read_traces(path)
    assert next(found) == one
    with pytest.raises(TraceError, match=r"expected a JSON object"):
        next(found)


def test_the_whole_takes_the_place_of_its_invocation(make_trace) -> None:
    """Rule: an operation written when it was sent and again when it completed is one; two that completed
    stay two."""
    trace = make_trace(1)
    whole = trace.operations[0]
    sent = attrs.evolve(whole, outcome=Outcome.UNKNOWN, completion_time=None, offset=None)
    rest = trace.operations[1:]
    for given, read in (
        ((sent, *rest, whole), trace.operations),
        ((sent, *rest), (sent, *rest)),
        ((whole, *rest, whole), (whole, *rest, whole)),
        ((sent, attrs.evolve(whole, invoke_time=1)), (sent, attrs.evolve(whole, invoke_time=1))),
    ):
        (found,) = jsonlines.read_lines(jsonlines.lines_of(attrs.evolve(trace, operations=given)), where="f")
        assert found.operations == tuple(read)
    twice = attrs.evolve(trace, operations=(sent, whole), digest="ab" * 16)
    assert next(jsonlines.read_lines(jsonlines.lines_of(twice), where="f")).operations == (sent, whole)
