"""What blame finds: the side, the kind, and the proof.

Owns the words. Must not know the rules.
"""

from enum import StrEnum

from attrs import frozen

from fencepost.application.blame.wire import Frame, Place


class Side(StrEnum):
    """Where something happened."""

    APPLICATION = "application"
    # Between the tap and the wire: a delivery report says what no broker did.
    CLIENT_LIBRARY = "client library"
    CLUSTER = "cluster"


class Kind(StrEnum):
    """What happened."""

    LOSS = "loss"
    DUPLICATE = "duplicate"
    REORDERING = "reordering"
    CONTENT = "content"


@frozen(kw_only=True)
class Blame:
    """One finding."""

    side: Side
    kind: Kind
    # Topic, partition and offset in words.
    place: str
    # What happened, in a clause.
    says: str
    # File and number of the taps' lines.
    lines: tuple[str, ...] = ()
    # Op ids of the trace.
    operations: tuple[int, ...] = ()
    # The request, if one was recorded.
    frame: Frame | None = None


def place_name(place: Place) -> str:
    """A place in words."""
    return f"{place[0]}-{place[1]} offset {place[2]}"
