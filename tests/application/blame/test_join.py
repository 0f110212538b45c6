"""The rules of the join on a wire of one record, without sockets."""

import json

import pytest

from fencepost.application.blame.join import Kind, join
from fencepost.application.blame.lines import Line, Type
from fencepost.traces.jsonlines import read_lines

WIRE = [
    {"type": "trace", "trace_id": 0, "plan": "", "seed": 0, "software_version": "x"},
    {
        "type": "operation",
        "op_id": 1,
        "process": 1,
        "function": "append",
        "invoke_time": 1,
        "outcome": "ok",
        "completion_time": 2,
        "topic": "t",
        "partition": 0,
        "acks": -1,
        "offset": 0,
        "runs": [{"topic": "t", "partition": 0, "offset": 0, "values": [9]}],
    },
    {"type": "event", "time": 1, "name": "mark", "cause": "tapped", "detail": '{"op_id":1,"ids":["p-0"]}'},
]


def line(kind, number, **more):
    place = {"topic": "t"} if kind == "sent" else {}
    return Line(
        type=Type(kind), time=number, actor="p", id=f"p-{number}", place=f"tap:{number}", **place | more
    )


@pytest.mark.parametrize("vanished", range(4))
@pytest.mark.parametrize("nameless", range(3))
def test_a_failure_without_a_name_explains_one_send_that_never_crossed(vanished, nameless):
    """Rule: of sends that never crossed the wire and have no answer, as many may have failed as there are
    failures that name none; only the others are a loss."""
    (trace,) = read_lines(map(json.dumps, WIRE), where="wire")
    acknowledged = Line(
        type=Type.ACKNOWLEDGED, time=2, actor="p", id="?", topic="t", partition=0, offset=0, place="tap:a"
    )
    sent = [line("sent", number) for number in range(1 + vanished)]
    failed = [Line(type=Type.FAILED, time=3, actor="p", id="?", place="tap:f")] * nameless
    joined = join(trace, [*sent, acknowledged, *failed, line("closed", 99)])
    losses = [one for one in joined.blames if one.kind is Kind.LOSS]
    assert len(losses) == len(joined.blames) == max(0, vanished - nameless)
    assert joined.counts.get("failed sends not matched", 0) == nameless
    assert joined.counts["sends matched"] == joined.counts["acknowledgements matched"] == 1
    assert "acknowledged, and no callback was called" not in joined.counts
