"""The sequential specification of one partition's log, as a client may see it.

Owns: what append, poll and list_offsets answer when they happen one after another. Must not know replicas,
epochs, time or concurrency: a judge supplies the order. A model is pure functions on immutable values
(Porcupine's shape: init, step, describe). Source: docs/spec/log-check.md's claim that offsets hand us the
order; Kafka assigns the base offset, so that append *answers* with it.
"""

from attrs import frozen

LogState = tuple[int, ...]
"""The log: value ids, their offset is their index."""


@frozen
class Append:
    """Append one batch. The answer is the base offset."""

    values: tuple[int, ...]


@frozen
class Poll:
    """Read from `offset`. The answer is a `Page`."""

    offset: int


@frozen
class ListOffsets:
    """Ask for the end. The answer is the offset that the next record will get."""


@frozen
class Page:
    """What a poll returned. values: contiguous from the offset asked for. end_offset: the end claimed, or
    None if the read is weak."""

    values: tuple[int, ...]
    end_offset: int | None = None


Input = Append | Poll | ListOffsets
Output = int | Page


def init() -> LogState:
    """An empty log."""
    return ()


def step(state: LogState, input: Input, output: Output) -> LogState | None:
    """The log after `input` was answered with `output`; None if no log may answer so.

    A poll may return less than there is, never something else; its claimed end is exact.
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
    """One clause for a person."""
    match input:
        case Append(values):
            return f"append {list(values)} at offset {output}"
        case ListOffsets():
            return f"list offsets: the end is {output}"
        case Poll(offset):
            assert isinstance(output, Page), output
            end = "" if output.end_offset is None else f", end {output.end_offset}"
            return f"poll from {offset}: {list(output.values)}{end}"
