"""Histories of your own clients: operations recorded around any client, and checked against a sequential
model.

    from fencepost.history import History, assert_linearizable

    history = History()
    with history.operation("write", argument=7):
        client.set("x", 7)
    with history.operation("read") as read:
        read.result = client.get("x")
    assert_linearizable(history, "register")

Recorder, decorators and judgement have a file each; none of them knows pytest (docs/how-to/pytest.md shows
how to use both with it).
"""

from fencepost.history.judgement import (
    NotLinearizableError,
    VacuousHistoryWarning,
    assert_linearizable,
    judged,
)
from fencepost.history.recorder import History, Recording

__all__ = [
    "History",
    "NotLinearizableError",
    "Recording",
    "VacuousHistoryWarning",
    "assert_linearizable",
    "judged",
]
