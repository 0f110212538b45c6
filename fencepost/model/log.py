"""The sequential specification of one partition's log, as a client may see it.

Owns the results of append, poll and list_offsets when they happen one after another. Must not know replicas,
epochs, time or concurrency: a checker supplies the order. A model is pure functions on immutable values
(Porcupine's shape: init, step, describe). Source: docs/spec/log-check.md, which says that offsets give the
order. Kafka assigns the base offset, so append *returns* it.
"""

from attrs import frozen

LogState = tuple[int, ...]
"""The log: value ids; the index is the offset."""


@frozen
class Append:
    """Append one batch. The result is the base offset."""

    values: tuple[int, ...]


@frozen
class Poll:
    """Read from `offset`. The result is a `Page`."""

    offset: int


@frozen
class ListOffsets:
    """Ask for the end. The result is the offset of the next record."""


@frozen
class Page:
    """The result of a poll."""

    # Contiguous from the requested offset.
    values: tuple[int, ...]
    # The claimed end, or None if the read is weak.
    end_offset: int | None = None


Input = Append | Poll | ListOffsets
Output = int | Page


def init() -> LogState:
    """An empty log."""
    return ()


def step(state: LogState, input: Input, output: Output) -> LogState | None:
    """The log after `input` returned `output` in `state`; None if no log may return that.

    A poll may return fewer records than there are, never others; its claimed end is exact.
    """
    match input:
        case Append(values):
            return state + values if output == len(state) and values else None
        case ListOffsets():
            return state if output == len(state) else None
        case Poll(offset):
            return state if isinstance(output, Page) and _may_return(state, offset, output) else None


def _may_return(state: LogState, offset: int, page: Page) -> bool:
    """Whether a poll from `offset` may return `page`."""
    if page.end_offset is not None and page.end_offset != len(state):
        return False
    return not page.values or (offset >= 0 and state[offset : offset + len(page.values)] == page.values)


def describe(input: Input, output: Output) -> str:
    """An operation as one clause for people.

    Args:
        input: the call.
        output: its result.

    Returns:
        the text.
    """
    match input:
        case Append(values):
            return f"append {list(values)} at offset {output}"
        case ListOffsets():
            return f"list offsets: the end is {output}"
        case Poll(offset):
            assert isinstance(output, Page), output
            end = "" if output.end_offset is None else f", end {output.end_offset}"
            return f"poll from {offset}: {list(output.values)}{end}"
