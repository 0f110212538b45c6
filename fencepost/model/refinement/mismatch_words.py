"""Mismatches that several guards share, in words.

Owns the sentences. Must not decide when they apply.
"""

from fencepost.model.refinement.refinement_state import Mismatch
from fencepost.traces.events import Event


def ends_in_words(ends: dict[int, int]) -> str:
    return ", ".join(
        f"broker {member}: {'nothing yet' if end < 0 else end}" for member, end in sorted(ends.items())
    )


def above_end(position: int, action: str, event: Event, end: int) -> Mismatch:
    """The mismatch of an event beyond the log end.

    Args:
        position: the position of the event.
        action: the action that it would have to be.
        event: the event.
        end: the log end.

    Returns:
        the mismatch.
    """
    return Mismatch(
        position=position,
        action=action,
        expected=f"a high watermark at or below the log end {end}",
        seen=f"broker {event.node} has {event.high_watermark}",
        offset=event.high_watermark,
    )


def ends_elsewhere(position: int, action: str, node: int, expected: int, seen: int) -> Mismatch | None:
    """The mismatch of a log that ends at another offset.

    Args:
        position: the position of the event.
        action: the action that it would have to be.
        node: the broker.
        expected: the log end by the model.
        seen: the log end in the event.

    Returns:
        the mismatch; None if both are equal.
    """
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
    """The mismatch of a log that begins at an illegal offset.

    Args:
        position: the position of the event.
        event: the event.
        known: the known log start.
        shown: the highest high watermark that a leader showed.

    Returns:
        the mismatch.
    """
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
    """The mismatch of a broker that does not lead.

    Args:
        position: the position of the event.
        action: the action that it would have to be.
        node: the broker.
        epoch: the leader epoch.
        offset: the log offset in question, or -1.

    Returns:
        the mismatch.
    """
    return Mismatch(
        position=position,
        action=action,
        expected=f"broker {node} to lead in epoch {epoch}",
        seen="it does not, in this incarnation",
        offset=offset,
    )


def not_following(position: int, action: str, event: Event) -> Mismatch:
    """The mismatch of a broker that does not follow.

    Args:
        position: the position of the event.
        action: the action that it would have to be.
        event: the event.

    Returns:
        the mismatch.
    """
    return Mismatch(
        position=position,
        action=action,
        expected=f"broker {event.node} to follow a leader that took over",
        seen="it does not, in this incarnation",
        offset=event.offset,
    )


def not_in_epoch(position: int, action: str, event: Event, known: int | None) -> Mismatch:
    """The mismatch of an event in another leader epoch.

    Args:
        position: the position of the event.
        action: the action that it would have to be.
        event: the event.
        known: the leader epoch by the model; None if there is none.

    Returns:
        the mismatch.
    """
    return Mismatch(
        position=position,
        action=action,
        expected=f"leader epoch {known}"
        if known is not None
        else f"no role, as broker {event.node} has just started",
        seen=f"leader epoch {event.leader_epoch}",
    )
