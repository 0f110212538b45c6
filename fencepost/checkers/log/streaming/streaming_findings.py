"""The findings of the streaming form, one per anomaly, with the uncertainty of clocks taken into account.

Owns how a certificate is written. Must not know the rules.
"""

from attrs import Factory, define

from fencepost.checkers.log.bounds import clearing
from fencepost.checkers.log.one_log import CHECK
from fencepost.checkers.operation_columns import NONE
from fencepost.checkers.verdict import Finding
from fencepost.traces.operations import Operation


@define(kw_only=True)
class StreamFindings:
    """The findings in one log so far: the first certificate of each anomaly."""

    topic: str
    partition: int
    uncertainty: int
    found: dict[str, Finding] = Factory(dict)

    def timed(
        self, anomaly: str, offset: int, late: Operation, early: Operation, expected: str, seen: str
    ) -> None:
        """Add a real-time finding, unless the claimed clock uncertainty explains it.

        Args:
            anomaly: its name.
            offset: the offset that it is about.
            late: the operation that was invoked later.
            early: the operation that completed earlier.
            expected, seen: one clause each.
        """
        assert early.completion_time is not None
        clears = NONE
        if late.clock_id != early.clock_id:
            clears = clearing(late.invoke_time, early.completion_time)
            if clears <= self.uncertainty:
                return
        self.add(anomaly, offset, (late, early), expected, seen, clears)

    def add(
        self,
        anomaly: str,
        offset: int,
        by: tuple[Operation, ...],
        expected: str,
        seen: str,
        uncertainty: int = NONE,
    ) -> None:
        """Add a finding, unless there is one of this anomaly already."""
        self.found.setdefault(anomaly, self.made(anomaly, offset, by, expected, seen, uncertainty))

    def made(
        self,
        anomaly: str,
        offset: int,
        by: tuple[Operation, ...],
        expected: str,
        seen: str,
        uncertainty: int = NONE,
    ) -> Finding:
        """A finding about this log.

        Args:
            anomaly: its name.
            offset: the offset that it is about.
            by: the operations of the proof.
            expected, seen: one clause each.
            uncertainty: the clock uncertainty in nanoseconds that would explain it (-1: none).

        Returns:
            the finding.
        """
        return Finding(
            anomaly=anomaly,
            check=CHECK,
            expected=expected,
            seen=seen,
            topic=self.topic,
            partition=self.partition,
            offset=offset,
            operations=tuple(dict.fromkeys(operation.op_id for operation in by)),
            uncertainty_ns=uncertainty,
        )
