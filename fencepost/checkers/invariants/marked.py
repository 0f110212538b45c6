"""STORED: the files of a replica agree with its batches, and replicas agree with each other. SERVICE: what a
test asserts of its service holds.

Owns what only marks say of a run: what an audit found in copied directories, and which assertions did not
hold, for no judge knows what a test asserts. Must not know files (audit/), nor any assertion.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import msgspec
from attrs import define

from fencepost.checkers.invariants.findings import Findings
from fencepost.checkers.verdict import Finding
from fencepost.traces.anomalies import ASSERTION_FAILED, BY_NAME
from fencepost.traces.decoding import from_json
from fencepost.traces.events import ASSERTED, AUDIT_FOUND, Event, Name


class _Found(msgspec.Struct, frozen=True):
    anomaly: str
    expected: str
    seen: str


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
class Marked:
    """The state of both."""

    findings: Findings

    def handlers(self) -> Mapping[Name, Callable[[int, Event], None]]:
        """What audits and assertions found."""
        return {Name.MARK: self._mark}

    def _mark(self, position: int, event: Event) -> None:
        with suppress(msgspec.DecodeError):  # a trace may come from any tool
            if event.cause == AUDIT_FOUND:
                self._audited(position, event, from_json(event.detail, _Found))
            elif event.cause == ASSERTED:
                self._asserted(position, event, from_json(event.detail, _Detail))

    def _audited(self, position: int, event: Event, detail: _Found) -> None:
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

    def _asserted(self, position: int, event: Event, detail: _Detail) -> None:
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
