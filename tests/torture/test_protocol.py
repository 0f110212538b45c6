"""Lines of the drivers' protocol, their bounds, and what an error proves."""

import json
import re
from pathlib import Path

import pytest
from kio.schema.errors import ErrorCode as WireError

from fencepost.torture import protocol
from fencepost.traces.operations import Outcome

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "drivers.md").read_text()


def test_lines_come_whole_however_they_are_cut():
    """Bytes arrive in any pieces."""
    data = b'{"event":"done","id":1}\n{"event":"done","id":2}\n'
    for size in (1, 7, len(data)):
        lines = protocol.Lines()
        seen = [
            event for start in range(0, len(data), size) for event in lines.feed(data[start : start + size])
        ]
        assert [event["id"] for event in seen] == [1, 2]


@pytest.mark.parametrize(
    "line", [b"hello\n", b"[1]\n", b"{}\n", b'{"event":3}\n', b"\xff\n", b"[" * 5000 + b"\n"]
)
def test_what_is_no_event_is_one_sentence(line):
    """A library that prints to standard output breaks its driver, and that is said."""
    with pytest.raises(protocol.DriverError, match="expected one JSON object"):
        list(protocol.Lines().feed(line))


def test_a_line_without_an_end_is_refused():
    """Memory is bounded."""
    lines = protocol.Lines()
    with pytest.raises(protocol.DriverError, match="lines of at most"):
        for _ in range(protocol.MOST_LINE // 65536 + 1):
            list(lines.feed(b"x" * 65536))


@pytest.mark.parametrize(
    "change", [{"protocol": 2}, {"protocol": "1"}, {"commands": None}, {"event": "done"}]
)
def test_a_first_line_that_is_none(change):
    """Another protocol, or no list of commands, is no driver."""
    good = {"event": "ready", "protocol": 1, "driver": "d", "library": "l", "version": "1", "runtime": "r"}
    good |= {"commands": ["open"], "roles": []}
    assert protocol.ready_of(good).commands == ("open",)
    with pytest.raises(protocol.DriverError):
        protocol.ready_of({**good, **change})


def test_bytes_are_kept():
    """Null and empty are two things."""
    for value in (None, b"", b"\x00\xff"):
        assert protocol.decoded(protocol.encoded(value)) == value
    with pytest.raises(protocol.DriverError):
        protocol.decoded("not base64!")


@pytest.mark.parametrize(
    ("answer", "retries", "outcome"),
    [
        ({"event": "done", "ok": True}, 0, Outcome.OK),
        (None, 0, Outcome.UNKNOWN),
        ({"event": "refused"}, None, Outcome.FAIL),
        ({"event": "done", "ok": False, "error": {"code": 10}}, 0, Outcome.FAIL),
        ({"event": "done", "ok": False, "error": {"code": 10}}, 3, Outcome.UNKNOWN),
        ({"event": "done", "ok": False, "error": {"code": 10}}, None, Outcome.UNKNOWN),
        ({"event": "done", "ok": False, "error": {"code": 19}}, 0, Outcome.UNKNOWN),
        ({"event": "done", "ok": False, "error": {"code": 6}}, 0, Outcome.UNKNOWN),
        ({"event": "done", "ok": False, "error": {"code": None}}, 0, Outcome.UNKNOWN),
        ({"event": "done", "ok": False}, 0, Outcome.UNKNOWN),
    ],
)
def test_what_an_append_proves(answer, retries, outcome):
    """An error proves failure only if no attempt before it can have been written."""
    assert protocol.outcome_of_append(answer, retries=retries) is outcome


def test_no_error_that_asks_for_another_attempt_proves_a_failure():
    """An earlier attempt may have been written: librdkafka retries NOT_ENOUGH_REPLICAS with retries 0."""
    assert not any(WireError(code).retriable for code in protocol.PROVES_FAILURE)


def test_the_page_says_the_same():
    """Bounds, codes and examples of docs/reference/drivers.md are those of the code."""
    for number in (protocol.MOST_LINE, protocol.MOST_UNDER_WAY, protocol.MOST_VALUE):
        assert f"{number:,}" in PAGE
    rule = PAGE[PAGE.index("What an error proves") : PAGE.index("Your own driver\n")]
    assert {int(code) for code in re.findall(r"[A-Z] (\d+)", rule)} == protocol.PROVES_FAILURE
    for block in re.findall(r"```json\n(.*?)```", PAGE, re.S):
        for text in re.split(r"\n(?=\{)", block.strip()):
            assert json.loads(text)["event"]
