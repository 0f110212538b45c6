"""The claims of one response, compared with what was known at the invocation.

Owns the rules of a single read in the streaming form: claims of one moment agree, claims do not go back,
records are in order and within bounds. Must not know how records are remembered.
"""

from attrs import define

from fencepost.checkers.log.streaming.memory import Claimed, Sent, Slot
from fencepost.checkers.log.streaming.skips import StreamSkips
from fencepost.checkers.log.streaming.streaming_findings import StreamFindings
from fencepost.checkers.operation_columns import NONE
from fencepost.checkers.statements import ISOLATIONS, READ_COMMITTED
from fencepost.traces.operations import Operation
from fencepost.traces.trace import Claims


@define(kw_only=True)
class StreamReplies:
    """The rules of single reads."""

    claims: Claims
    # Ranges of offsets that may be lost; the other fields receive findings and skips.
    loss: list[tuple[int, int]]
    findings: StreamFindings
    skips: StreamSkips

    @property
    def timed(self) -> bool:
        """Whether real-time rules apply."""
        return self.claims.check != "content"

    def lossy(self, offset: int) -> bool:
        """Whether loss is allowed at this offset."""
        return bool(self.loss) and any(start <= offset < end for start, end in self.loss)

    def of_one_moment(self, read: Operation, claimed: Claimed) -> None:
        """Check that the claims of one response can be from one moment.

        Args:
            read: the operation.
            claimed: its claims about this partition.
        """
        if claimed.end is None:
            return
        start = claimed.log_start if self.claims.retention else None
        for claim, anomaly in ((start, "log_start_above_end"), (claimed.stable, "last_stable_above_end")):
            if claim is not None and claim > claimed.end:
                self.findings.add(anomaly, claim, (read,), f"at most the end {claimed.end}", f"{claim}")

    def not_below(
        self, sent: Sent, read: Operation, end: int | None, start: int | None, stable: int | None
    ) -> None:
        """Check that trusted claims are not below what was known when the read was invoked."""
        for claim, floor, anomaly, what in (
            (end, sent.acknowledged, "stale_read", "end"),
            (end, sent.shown, "high_watermark_regressed", "end"),
            (start, sent.log_start, "log_start_regressed", "log start"),
            (stable, sent.stable, "last_stable_offset_regressed", "last stable offset"),
        ):
            if claim is None or claim >= floor.end:  # nearly always
                continue
            if self.timed and floor.by is not None and not self.lossy(claim):
                expected = f"{what} {floor.end} or more"
                self.findings.timed(anomaly, claim, read, floor.by, expected, f"{what} {claim}")

    def above_log_start(self, sent: Sent, read: Operation, lowest: int) -> None:
        """Check, in the strong profile, that no record is below a known log start.

        Args:
            sent: the read, with what was known at its invocation.
            read: the completed read.
            lowest: the lowest offset that it returned.
        """
        floor = sent.log_start
        if lowest < floor.end and floor.by is not None and not self.lossy(lowest):
            expected = f"no record below the log start {floor.end}"
            self.findings.timed("read_below_log_start", lowest, read, floor.by, expected, f"offset {lowest}")

    def order(
        self,
        read: Operation,
        claimed: Claimed,
        trusted: tuple[int | None, int | None, int | None],
        slots: dict[int, Slot],
        sends: dict[int, Sent],
    ) -> None:
        """Step 1 within one read.

        trusted: claimed log start, end and last stable offset, if they are trusted. slots, sends: the records
        remembered so far.
        """
        start, end, stable = trusted
        begin = max(claimed.position, NONE if start is None else start)
        committed = read.isolation == ISOLATIONS[READ_COMMITTED]
        bounds = [claim for claim in (end, stable if committed else None) if claim is not None]
        stop = min(bounds, default=None)
        before = begin - 1 if claimed.position >= 0 else None
        for n, record in enumerate(claimed.records):
            offset = record.offset
            if n and before is not None and offset <= before:
                self.findings.add(
                    "unordered_read", offset, (read,), f"an offset above {before}", f"offset {offset}"
                )
            if offset < begin or (stop is not None and offset >= stop):
                what = f"offsets within [{max(begin, 0)}, {stop if stop is not None else 'any end'})"
                self.findings.add("read_outside_bounds", offset, (read,), what, f"offset {offset}")
            if before is not None and offset > before + 1:
                waits = n == 0 and start is None and self.claims.retention
                self.skips.passed(read, before + 1, offset, waits=waits, slots=slots, sends=sends)
            before = offset
