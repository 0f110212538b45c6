"""Mismatches that several guards share, in words.

Owns sentences. Must not decide when they are said.
"""

from fencepost.model.refinement.state import Mismatch
from fencepost.traces.events import Event


def told(ends: dict[int, int]) -> str:
    return ", ".join(
        f"broker {member}: {'nothing yet' if end < 0 else end}" for member, end in sorted(ends.items())
    )


def above_end(position: int, action: str, event: Event, end: int) -> Mismatch:
    return Mismatch(
        position=position,
        action=action,
        expected=f"a high watermark at or below the log end {end}",
        seen=f"broker {event.node} has {event.high_watermark}",
        offset=event.high_watermark,
    )


def ends_elsewhere(position: int, action: str, node: int, expected: int, seen: int) -> Mismatch | None:
    if seen in (expected, -1):
        return None
    return Mismatch(
        position=position,
        action=action,
        expected=f"the log of broker {node} to end at {expected}, where its appends and truncations left it",
        seen=f"it ends at {seen}",
        offset=min(expected, seen),
    )


def begins_elsewhere(position: int, event: Event, known: int, shown: int) -> Mismatch:
    return Mismatch(
        position=position,
        action="restart",
        expected=(
            f"the log of broker {event.node} to begin at {known} or below, or where a step that a fault "
            f"interrupted moved its start to: "
            f"at most {min(shown, event.offset)}, as leaders had shown the high watermark {shown}"
        ),
        seen=f"it begins at {event.log_start_offset} and ends at {event.offset}",
        offset=event.log_start_offset,
    )


def not_leading(position: int, action: str, node: int, epoch: int, offset: int = -1) -> Mismatch:
    return Mismatch(
        position=position,
        action=action,
        expected=f"broker {node} to lead in epoch {epoch}",
        seen="it does not, in this incarnation",
        offset=offset,
    )


def not_following(position: int, action: str, event: Event) -> Mismatch:
    return Mismatch(
        position=position,
        action=action,
        expected=f"broker {event.node} to follow a leader that took over",
        seen="it does not, in this incarnation",
        offset=event.offset,
    )


def not_in_epoch(position: int, action: str, event: Event, known: int | None) -> Mismatch:
    return Mismatch(
        position=position,
        action=action,
        expected=f"leader epoch {known}"
        if known is not None
        else f"no role, as broker {event.node} has just started",
        seen=f"leader epoch {event.leader_epoch}",
    )
