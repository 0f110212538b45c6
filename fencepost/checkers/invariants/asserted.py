"""SERVICE: what a test asserts of its service holds.

Owns how a finding of an assertion is kept in its trace, as a mark, and read again: no judge knows what a test
asserts, so that nothing else would say of a kept trace why it was kept. Must not know any assertion.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from attrs import define

from fencepost.checkers.invariants.findings import Findings
from fencepost.checkers.verdict import Finding
from fencepost.traces.anomalies import ASSERTION_FAILED
from fencepost.traces.decoding import from_json
from fencepost.traces.events import ASSERTED, Event, Name


class _Detail(msgspec.Struct, frozen=True):
    check: str
    expected: str
    seen: str
    operations: tuple[int, ...] = ()
    places: tuple[tuple[str, int, int], ...] = ()


def mark_of(time: int, finding: Finding) -> Event:
    """A finding of an assertion, as its trace keeps it.

    Args:
        time: in nanoseconds of the trace.
        finding: of the assertion.

    Returns:
        the event.
    """
    detail = _Detail(**{name: getattr(finding, name) for name in _Detail.__struct_fields__})
    return Event(
        time=time,
        name=Name.MARK,
        cause=ASSERTED,
        topic=finding.topic,
        partition=finding.partition,
        offset=finding.offset,
        detail=msgspec.json.encode(detail).decode(),
    )


@define
class Asserted:
    """The state of the invariant."""

    findings: Findings

    def handlers(self) -> Mapping[Name, Callable[[int, Event], None]]:
        """What assertions found."""
        return {Name.MARK: self._mark}

    def _mark(self, position: int, event: Event) -> None:
        if event.cause != ASSERTED:
            return
        try:
            detail = from_json(event.detail, _Detail)
        except msgspec.DecodeError:  # a trace may come from any tool
            return
        facts: dict[str, Any] = {name: getattr(detail, name) for name in _Detail.__struct_fields__}
        finding = Finding(
            anomaly=ASSERTION_FAILED,
            topic=event.topic,
            partition=event.partition,
            offset=event.offset,
            # its operations convict; a mark does where it has none
            events=() if detail.operations else (position,),
            **facts,
        )
        # each of them, also several of one partition
        self.findings.found[event.detail, event.topic, event.partition] = finding
