"""What is recorded of a step that failed: the same on every machine, bounded, with the innermost frames."""

import json

import pytest

from fencepost.impl.core.core_interface import Halt, RecordEvent
from fencepost.impl.core.failures import (
    LONGEST_MESSAGE,
    MOST_FRAMES,
    StepFailedError,
    events_of_failure,
    implementation_error,
)
from fencepost.traces.events import Name


def failing(depth, error):
    """Raise it that deep."""
    if depth:
        failing(depth - 1, error)
    raise error


def raised(error, depth=0):
    """The same error with a stack."""
    with pytest.raises(type(error)) as caught:
        failing(depth, error)
    return caught.value


def test_the_event_says_type_message_input_and_innermost_frames():
    """Rule: at most MOST_FRAMES frames, the one that raised first, without any path of this machine."""
    event = implementation_error(raised(ValueError("too late"), depth=9), "TimerFired").at(5, 2)
    detail = json.loads(event.detail)
    assert (event.name, event.cause) == (Name.IMPLEMENTATION_ERROR, "ValueError")
    assert (event.time, event.node) == (5, 2)
    assert (detail["says"], detail["during"]) == ("too late", "TimerFired")
    assert len(detail["at"]) == MOST_FRAMES
    assert all(place.startswith("test_failures.py:") and place.endswith(" failing") for place in detail["at"])


def test_addresses_and_length_do_not_get_into_the_digest():
    """Rule: an object's address differs from run to run and is left out; a long message is cut."""
    says = json.loads(implementation_error(raised(KeyError(object())), "x").at(0, 0).detail)["says"]
    assert says == "<object object>"
    says = json.loads(implementation_error(raised(KeyError("y" * 5_000)), "x").at(0, 0).detail)["says"]
    assert len(says) == LONGEST_MESSAGE + 3


def test_what_the_step_had_recorded_comes_first():
    """Rule: the events of a failed step are kept in order, its other effects are not."""
    cause = raised(AssertionError("no"))
    failure = StepFailedError([RecordEvent(Name.HIGH_WATERMARK, {"high_watermark": 3}), Halt("never")])
    failure.__cause__ = cause
    found, events = events_of_failure(failure, "Started")
    assert found is cause
    assert [event.name for event in events] == [Name.HIGH_WATERMARK, Name.IMPLEMENTATION_ERROR]
