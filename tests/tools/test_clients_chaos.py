"""What was acknowledged under faults is held against the log: each rule has failed on a planted log."""

import pytest

from fencepost.torture.driver import Command
from fencepost.torture.truth import Entry
from tools.clients_chaos import judged


def entry(offset: int, value: int) -> Entry:
    """A record of the log."""
    return Entry(
        offset=offset,
        key=None,
        value=b"%d" % value,
        headers=(),
        timestamp_ms=0,
        leader_epoch=0,
        codec="none",
        producer_id=1,
        producer_epoch=0,
        sequence=offset,
    )


def appended(*offsets: int | None) -> list[Command]:
    """Record n of partition 0, acknowledged at the n-th offset; None: failed."""
    commands = []
    for number, offset in enumerate(offsets):
        command = Command(number=number, name="append", client="p", fields={}, sent_ns=0)
        command.answer = {"event": "done", "ok": offset is not None, "partition": 0, "offset": offset}
        if offset is None:
            command.answer["error"] = {"name": "TimedOut", "code": None, "text": ""}
        commands.append(command)
    return commands


def judge(commands: list[Command], *values: int, idempotent: bool = True):
    """The verdict on a log with these values."""
    log = {0: tuple(entry(offset, value) for offset, value in enumerate(values))}
    return judged("planted", idempotent, commands, log, 1, 1.0)


def test_a_log_with_all_that_was_acknowledged_is_right():
    """A failed record may be there or not."""
    assert not judge(appended(0, 1, None), 0, 1).wrong
    assert not judge(appended(0, 1, None), 0, 1, 2).wrong


@pytest.mark.parametrize(
    ("values", "what"),
    [((0,), "lost_count"), ((1, 0), "moved"), ((0, 1, 1), "duplicates"), ((1, 0), "reordered")],
)
def test_each_planted_fault_is_counted(values, what):
    """A lost, a moved, a doubled and a reordered record."""
    result = judge(appended(0, 1), *values)
    assert getattr(result, what) == (2 if what == "moved" else 1)
    assert result.wrong


def test_duplicates_without_idempotence_are_counted_and_allowed():
    """A producer that tries again may write twice."""
    result = judge(appended(0, 1), 0, 1, 1, idempotent=False)
    assert result.duplicates == 1
    assert not result.wrong


def test_a_command_without_an_answer_is_wrong():
    """A client that is stuck after the heal breaks its promise of an answer."""
    commands = appended(0, 1)
    commands[1].answer = None
    result = judge(commands, 0, 1)
    assert result.silent == 1
    assert result.wrong
