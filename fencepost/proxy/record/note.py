"""What is kept of a request until its answer."""

from attrs import define, field

from fencepost.proxy.record.appends import Append, Identity
from fencepost.proxy.record.reads import Asked


@define(eq=False)
class Note:
    """What is kept of a request until its answer."""

    # Of a produce; positions: of a fetch.
    batches: list[tuple[str, int, Identity, list[Append]]] = field(factory=list)
    asked: Asked | None = None
    epoch: int = -1
    # Whether its row begins before it is written: no low watermark may pass it.
    opened: bool = False
    # Op ids of the rows that its answer made.
    rows: list[int] = field(factory=list)
