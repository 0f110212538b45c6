"""Histories of your own: operations recorded around any client, and held against a sequential model.

    from fencepost.history import History, assert_linearizable

    history = History()
    with history.operation("write", argument=7):
        client.set("x", 7)
    with history.operation("read") as read:
        read.result = client.get("x")
    assert_linearizable(history, "register")

Recorder, decorators and judgement have a file each; none of them knows pytest (docs/how-to/pytest.md shows
both under it).
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
