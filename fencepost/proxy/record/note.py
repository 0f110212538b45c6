"""What is kept of a request until its answer."""

from attrs import define, field

from fencepost.proxy.record.appends import Append, Identity
from fencepost.proxy.record.reads import Asked


@define(eq=False)
class Note:
    """What is kept of a request until its answer. batches: of a produce; positions: of a fetch."""

    batches: list[tuple[str, int, Identity, list[Append]]] = field(factory=list)
    asked: Asked | None = None
    epoch: int = -1
    opened: bool = False
    """Whether its row begins before it is written: no low watermark may pass it."""
    rows: list[int] = field(factory=list)
    """Op ids of the rows that its answer made."""
