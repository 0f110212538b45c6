"""STORED: the files of a replica agree with its batches, and replicas agree with each other.

Owns what an audit of copied directories means for a trace: the campaign that made the copies recorded a mark
for each thing that was wrong. Must not know files: audit/ reads them.
"""

from collections.abc import Callable, Mapping

import msgspec
from attrs import define

from fencepost.checkers.invariants.findings import Findings
from fencepost.traces.anomalies import BY_NAME
from fencepost.traces.decoding import from_json
from fencepost.traces.events import AUDIT_FOUND, Event, Name


class _Detail(msgspec.Struct, frozen=True):
    anomaly: str
    expected: str
    seen: str


@define
class Stored:
    """The state of the invariant."""

    findings: Findings

    def handlers(self) -> Mapping[Name, Callable[[int, Event], None]]:
        """What audits found."""
        return {Name.MARK: self._mark}

    def _mark(self, position: int, event: Event) -> None:
        if event.cause != AUDIT_FOUND:
            return
        try:
            detail = from_json(event.detail, _Detail)
        except msgspec.DecodeError:  # a trace may come from any tool
            return
        if detail.anomaly in BY_NAME:
            self.findings.add(
                detail.anomaly,
                expected=detail.expected,
                seen=detail.seen,
                topic=event.topic,
                partition=event.partition,
                offset=event.offset,
                events=(position,),
            )
