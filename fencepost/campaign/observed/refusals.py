"""What a producer does with a numbered batch that a log refused for its sequence or its epoch (KIP-360).

Owns the rule in its plainest form: a batch of which an earlier attempt may be in the log ends there, unless
it only overtook one that is still to come; one that was surely not written is sent again. It only reads. Must
not know requests that were not answered.
"""

from collections.abc import Iterator
from typing import Any

from attrs import define

from fencepost.campaign.observed.justified import Reason
from fencepost.traces.outcomes import ErrorCode

NONE = -1
"""No sequence, and no correlation id."""
OF_SEQUENCES = frozenset(
    {
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    }
)


@define(eq=False)
class Refusals:
    """The last refusal that a producer is about to handle."""

    # Its line and batch; None if it was looked at.
    refused: tuple[Any, Any] | None = None
    # Whether the batch must end.
    ends: bool = False
    error: ErrorCode = ErrorCode.NONE
    # When the answer came, in nanoseconds.
    at: int = NONE

    def learn(self, producer: Any, answer: Any, now: int) -> None:
        """An answer came that is handled next.

        Args:
            producer: in the state before it handles the answer.
            answer: to a Produce request.
            now: virtual nanoseconds.
        """
        batch = producer.requests.get(answer.correlation_id)
        if batch is None or batch.sequence == NONE or answer.error not in OF_SEQUENCES:
            return
        line = producer.accumulator.line(batch.partition)
        place = batch.producer_epoch, batch.sequence
        others = [one for one in (*line.in_flight, *line.waiting) if one.sequence != NONE]
        first = all(place <= (one.producer_epoch, one.sequence) for one in others)
        out_of_order = answer.error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        overtook = out_of_order and not first and not line.unresolved
        self.refused, self.ends = (line, batch), batch.unknown and not overtook
        self.error, self.at = answer.error, now

    def refuted(self, now: int) -> Iterator[Reason]:
        """What is wrong with what the producer did.

        Args:
            now: virtual nanoseconds; later than the answer, a batch may have ended for another reason.

        Yields:
            of what, expected, seen.
        """
        if self.refused is None:
            return
        line, batch = self.refused
        self.refused = None
        ended = batch not in line.in_flight and batch not in line.waiting
        of = f"batch of {line.key} that is refused with {self.error}"
        if self.ends and not ended:
            yield of, "its end: an earlier attempt may be in the log", "it is sent again"
        elif ended and not self.ends and now == self.at:
            yield of, "to be sent again: it is not in the log, or only overtook another", "its end"
