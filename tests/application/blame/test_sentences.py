"""Each sentence of blame says what the record shows: what crossed the wire, what was answered, what the tap
saw, what the log has."""

import json

import pytest

from fencepost.application.blame.join import Kind, Side, join
from fencepost.application.blame.lines import Line, Type
from fencepost.application.blame.producer_join import NO_OFFSET, OTHER_ORDER
from fencepost.cli import run
from fencepost.traces.errors import ExitCode
from fencepost.traces.jsonlines import read_lines
from fencepost.traces.parts import RECORDING, part_name

HEAD = {"type": "trace", "trace_id": 0, "plan": "", "seed": 0, "software_version": "x"}
RETRYING = {**HEAD, "claims": {"duplicates": True}}
REFUSED = "NOT_LEADER_OR_FOLLOWER"


def append(
    number, outcome, offset=-1, *, acks=-1, ids=True, attempts=1, by="", time=0, answered=True, error="",
    plain=False, node=-1,
):  # fmt: skip
    """The rows of an append of one record, whose value is its number, and of its request."""
    time = time or 10 * number
    row = {
        "type": "operation", "op_id": number, "process": 1, "function": "append", "invoke_time": time,
        "outcome": outcome, "topic": "t", "partition": 0, "acks": acks, "attempts": attempts,
        "producer_id": 5, "producer_epoch": 0, "sequence": number, "node": node,
        "runs": [{"topic": "t", "partition": 0, "offset": offset, "values": [number]}],
    }  # fmt: skip
    if plain:
        row = {name: value for name, value in row.items() if not name.startswith(("producer", "sequence"))}
    row |= {"completion_time": time + 1} if outcome != "unknown" else {}
    row |= {"offset": offset} if offset >= 0 else {}
    row |= {"error": REFUSED} if outcome == "fail" else {}
    said = {"connection": 1, "correlation": number, "operations": [number]}
    said |= {"error": error or REFUSED} if outcome == "fail" or error else {}
    said |= {"by": by} if by else {}
    said |= {} if answered else {"says": "the client did not get an answer"}
    made = [
        row,
        {"type": "event", "time": time, "name": "request", "cause": "produce", "detail": json.dumps(said)},
    ]
    if ids:
        detail = json.dumps({"op_id": number, "ids": [f"p-{number}"]})
        made.append({"type": "event", "time": time, "name": "mark", "cause": "tapped", "detail": detail})
    return made


def poll(number, *shown, process=9, position=0):
    """The rows of a read of (offset, value)."""
    end = 1 + max((offset for offset, _ in shown), default=-1)
    runs = [{"topic": "t", "partition": 0, "offset": offset, "values": [value]} for offset, value in shown]
    row = {
        "type": "operation", "op_id": number, "process": process, "function": "poll",
        "invoke_time": 10 * number, "completion_time": 10 * number + 1, "outcome": "ok", "topic": "t",
        "partition": 0, "offset": position, "end_offset": end,
        "runs": runs,
    }  # fmt: skip
    return [row]


END = {
    "type": "operation", "op_id": 8, "process": 9, "function": "list_offsets", "invoke_time": 80,
    "completion_time": 81, "outcome": "ok", "topic": "t", "partition": 0,
}  # fmt: skip
UNREAD = [{"type": "event", "time": 1, "name": "mark", "cause": "unread_batch", "detail": "{}"}]


def sent(number):
    return Line(type=Type.SENT, time=number, actor="p", id=f"p-{number}", topic="t", place=f"tap:{number}")


def acknowledged(number, offset=None):
    return Line(
        type=Type.ACKNOWLEDGED, time=50, actor="p", id=f"p-{number}", topic="t", partition=0, offset=offset,
        place=f"tap:a{number}",
    )  # fmt: skip


def failed(number):
    return Line(type=Type.FAILED, time=50, actor="p", id=f"p-{number}", error="x", place=f"tap:f{number}")


def delivered(offset):
    return Line(
        type=Type.DELIVERED, time=60, actor="c", topic="t", partition=0, offset=offset, place=f"tap:d{offset}"
    )


CLOSED = Line(type=Type.CLOSED, time=99, actor="p", place="tap:closed")
GOOD = append(1, "ok", 0)
"""Another send of the same producer."""

# The wire, the tap, and what is said: (side, kind, sentence), or what is counted instead.
LIBRARY, APPLICATION, CLUSTER = Side.CLIENT_LIBRARY, Side.APPLICATION, Side.CLUSTER
NOT_THERE = (
    "the client reported to the application that this is acknowledged, and no broker has acknowledged "
    "anything there"
)
CASES = {
    "refused, and reported without an offset": (
        [GOOD, append(2, "fail"), poll(3, (0, 1))],
        [sent(1), acknowledged(1, 0), sent(2), acknowledged(2), CLOSED],
        (LIBRARY, Kind.LOSS, f"{NO_OFFSET}, refused by the broker ({REFUSED}), in no log"),
    ),
    "refused by a fault": (
        [GOOD, append(2, "fail", by="fault"), poll(3, (0, 1))],
        [sent(2), acknowledged(2), CLOSED],
        (LIBRARY, Kind.LOSS, f"{NO_OFFSET}, refused by a fault in the broker's place ({REFUSED}), in no log"),
    ),
    "refused, and nobody read": (
        [GOOD, append(2, "fail")],
        [sent(2), acknowledged(2), CLOSED],
        (
            LIBRARY,
            Kind.LOSS,
            f"{NO_OFFSET}, refused by the broker ({REFUSED}), and nothing of the log was read",
        ),
    ),
    "never sent, and reported without an offset": (
        [GOOD],
        [sent(1), acknowledged(1, 0), sent(2), acknowledged(2), CLOSED],
        (LIBRARY, Kind.LOSS, f"{NO_OFFSET}, and no request carried it"),
    ),
    "without ids nothing is matched": (
        [append(1, "ok", 0, ids=False)],
        [sent(2), acknowledged(2), CLOSED],
        f"{NO_OFFSET}, not matched",
    ),
    "acks=0": (
        [GOOD, append(2, "ok", acks=0)],
        [sent(2), acknowledged(2), CLOSED],
        f"{NO_OFFSET}, as acks=0 has none",
    ),
    "a retry that is answered with a duplicate, and read": (
        [GOOD, append(2, "unknown", attempts=2, error="DUPLICATE_SEQUENCE_NUMBER"), poll(3, (0, 1), (1, 2))],
        [sent(2), acknowledged(2), CLOSED],
        f"{NO_OFFSET}, and written",
    ),
    "a retry that is answered with a duplicate": (
        [GOOD, append(2, "unknown", attempts=2, error="DUPLICATE_SEQUENCE_NUMBER")],
        [sent(2), acknowledged(2), CLOSED],
        f"{NO_OFFSET}, of unknown outcome",
    ),
    "acknowledged by the broker": (
        [GOOD, append(2, "ok", 1)],
        [sent(2), acknowledged(2), CLOSED],
        f"{NO_OFFSET}, and written",
    ),
    "a lost answer": (
        [GOOD, append(2, "unknown", answered=False), poll(3, (0, 1), (1, 2))],
        [sent(2), acknowledged(2, 1), CLOSED],
        "acknowledged, and the record does not show the answer",
    ),
    "a lost answer without ids": (
        [append(1, "ok", 0, ids=False), append(2, "unknown", ids=False, answered=False)],
        [sent(2), acknowledged(2, 1), CLOSED],
        "acknowledged, and the record does not show the answer",
    ),
    "a lost answer, and no callback": (
        [GOOD, append(2, "unknown", answered=False), poll(3, (0, 1), (1, 2))],
        [sent(2), CLOSED],
        "sends matched",
    ),
    "refused, and reported at an offset": (
        [GOOD, append(2, "fail")],
        [sent(2), acknowledged(2, 7), CLOSED],
        (LIBRARY, Kind.LOSS, f"{NOT_THERE}: it was refused by the broker ({REFUSED})"),
    ),
    "reported at another offset": (
        [GOOD, append(2, "ok", 1)],
        [sent(2), acknowledged(2, 7), CLOSED],
        (LIBRARY, Kind.LOSS, f"{NOT_THERE}: it is acknowledged at offset 1"),
    ),
    "never sent, and reported at an offset": (
        [GOOD],
        [sent(1), acknowledged(1, 0), sent(2), acknowledged(2, 7), CLOSED],
        (LIBRARY, Kind.LOSS, NOT_THERE),
    ),
    "refused, and reported so": (
        [GOOD, append(2, "fail"), poll(3, (0, 1))],
        [sent(2), failed(2), CLOSED],
        "failed sends matched",
    ),
    "never on the wire": (
        [GOOD],
        [sent(1), acknowledged(1, 0), sent(2), CLOSED],
        (
            APPLICATION,
            Kind.LOSS,
            "the application sent this, no callback was called, and it never crossed the wire",
        ),
    ),
    "perhaps on the wire": (
        [GOOD, UNREAD],
        [sent(1), acknowledged(1, 0), sent(2), CLOSED],
        "sends that the record may not have read",
    ),
    "crossed later": (
        [append(1, "ok", 0, time=20, plain=True), append(2, "ok", 1, time=20, plain=True)],
        [sent(2), sent(1)],
        (
            APPLICATION,
            Kind.REORDERING,
            "sent after a record that crossed the wire later and has a higher offset",
        ),
    ),
    "crossed again": (
        [append(1, "ok", 1, attempts=2, time=20, plain=True), append(2, "ok", 0, time=20, plain=True)],
        [sent(1), sent(2)],
        (
            APPLICATION,
            Kind.REORDERING,
            "sent after a record that crossed the wire before it, crossed again (2 attempts), and has a "
            "higher offset",
        ),
    ),
    "another order without a reason": (
        [append(1, "ok", 1, time=20, plain=True), append(2, "ok", 0, time=20, plain=True)],
        [sent(1), sent(2)],
        OTHER_ORDER,
    ),
    "delivered, and never sent by a broker": (
        [GOOD, poll(3, (0, 1))],
        [delivered(0), delivered(1)],
        (APPLICATION, Kind.CONTENT, "the application was handed a record that no broker has sent"),
    ),
    "delivered, and perhaps sent": (
        [GOOD, poll(3, (0, 1)), UNREAD],
        [delivered(0), delivered(1)],
        "deliveries that the record could not read",
    ),
    "skipped": (
        [GOOD, append(2, "ok", 1), append(3, "ok", 2), poll(4, (0, 1), (1, 2), (2, 3))],
        [delivered(0), delivered(2)],
        (
            APPLICATION,
            Kind.LOSS,
            "the broker has sent this record, and the application was handed a later one next",
        ),
    ),
    "sent to another reader only": (
        [
            GOOD,
            append(2, "unknown"),
            append(3, "ok", 2),
            poll(4, (0, 1), (1, 2), (2, 3), process=8),
            poll(5, (0, 1)),
            poll(6, (2, 3), position=2),
        ],
        [delivered(0), delivered(2)],
        "records that only another reader was sent",
    ),
    "an answer jumps over an acknowledged record": (
        [GOOD, append(2, "ok", 1), append(3, "ok", 2), poll(5, (0, 1), (2, 3))],
        [delivered(0), delivered(2)],
        (
            CLUSTER,
            Kind.LOSS,
            "skipped_offset: expected offset 1 before offset 2, saw operation 5 went from 1 to 2 past "
            "offset 1, which operation 2 proves to hold a record",
        ),
    ),
    "ListOffsets below an acknowledgement": (
        [append(1, "ok", 0, node=3), [{**END, "offset": 0, "node": 3}]],
        [],
        (
            CLUSTER,
            Kind.LOSS,
            "high_watermark_regressed: expected an end at or above 1: the acknowledgement of append 1 by "
            "broker 3 showed 1, 69 ns before, saw ListOffsets 8 by broker 3 showed 0",
        ),
    ),
    "one sequence number twice, in a record where other producers retry": (
        [[RETRYING], GOOD, append(2, "ok", 1), poll(5, (0, 1), (1, 2), (2, 1))],
        [],
        (CLUSTER, Kind.DUPLICATE, "the record of one sequence number is at offset 0 as well"),
    ),
    "sequences in another order": (
        [append(2, "ok", 1, time=20), append(3, "ok", 0, time=20)],
        [],
        (CLUSTER, Kind.REORDERING, "sequence 3 is before sequence 2, at 1"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_sentence_says_what_the_record_shows(case):
    """Rule: what contradicts the record is blamed in a true sentence; what the record leaves open is counted,
    and convicts no side."""
    wire, tap, expected = CASES[case]
    rows = [row for part in wire for row in part]
    rows = rows if rows[0]["type"] == "trace" else [HEAD, *rows]
    (trace,) = read_lines(map(json.dumps, rows), where="wire")
    joined = join(trace, tap)
    found = [(one.side, one.kind, one.says) for one in joined.blames]
    if isinstance(expected, tuple):
        assert found == [expected]
        assert all(one.lines or one.side is CLUSTER for one in joined.blames)
    else:
        assert found == []
        assert joined.counts[expected] > 0


@pytest.mark.parametrize("answered", [False, None])
def test_an_empty_record_is_no_success(tmp_path, capsys, answered):
    """Rule: where no request was answered nothing can be said: one sentence, and the exit code is not 0."""
    rows = [HEAD]
    if answered is False:
        detail = json.dumps({"connection": 1, "says": "the client did not get an answer"})
        rows += [{"type": "event", "time": 1, "name": "request", "cause": "api_versions", "detail": detail}]
    (tmp_path / RECORDING).write_text("{}")
    (tmp_path / part_name(1, whole=True)).write_text("".join(json.dumps(row) + "\n" for row in rows))
    tap = tmp_path / "app.tap"
    line = {
        "type": "acknowledged",
        "time": 2,
        "actor": "p",
        "id": "p-0",
        "topic": "t",
        "partition": 0,
        "offset": 1,
    }
    tap.write_text(json.dumps(line) + "\n")
    assert run(["proxy", "blame", str(tmp_path), str(tap)]) == ExitCode.UNDECIDED
    heard = capsys.readouterr()
    assert "expected requests with their answers" in " ".join((heard.out + heard.err).split())
