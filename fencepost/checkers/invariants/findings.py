"""The findings of one trace: the first of each anomaly and partition.

Owns the bound on their number. Must not know any invariant.
"""

from attrs import define, field

from fencepost.checkers.verdict import Finding

CHECK = "invariants"


@define
class Findings:
    """check: the check that they belong to. found: by (anomaly, topic, partition), in the order of
    discovery."""

    check: str = CHECK
    found: dict[tuple[str, str | None, int], Finding] = field(factory=dict)

    def add(
        self,
        anomaly: str,
        *,
        expected: str,
        seen: str,
        topic: str | None = None,
        partition: int = -1,
        offset: int = -1,
        events: tuple[int, ...] = (),
        operations: tuple[int, ...] = (),
        uncertainty_ns: int = -1,
    ) -> None:
        """Add a finding, unless this anomaly was already found in this partition.

        Args:
            anomaly: its name.
            expected, seen: one clause each.
            topic: the topic; None if it is about none.
            partition: the partition; -1 if it is about none.
            offset: the offset; -1 if it is about none.
            events: positions of the events that prove it.
            operations: op ids that prove it.
            uncertainty_ns: the clock uncertainty that would explain it (-1: none).
        """
        key = anomaly, topic, partition
        if key not in self.found:
            self.found[key] = Finding(
                anomaly=anomaly,
                check=self.check,
                expected=expected,
                seen=seen,
                topic=topic,
                partition=partition,
                offset=offset,
                events=events,
                operations=operations,
                uncertainty_ns=uncertainty_ns,
            )
