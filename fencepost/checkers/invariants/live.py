"""Progress: after the faults ended, every wait of the liveness phase ends.

Owns no_progress. The run decides what it waits for and for how long, and records each wait that did not end.
"""

from collections.abc import Callable, Mapping

from attrs import define

from fencepost.checkers.invariants.findings import Findings
from fencepost.record.stuck import reasons
from fencepost.traces.diagnosis import diagnosis_of
from fencepost.traces.events import Event, Name

NEVER = "it never came"
MOST_REASONS = 3
"""Of a finding in one sentence; its explanation has them all."""


@define
class Live:
    """The state of the rule."""

    findings: Findings
    # The position of the phase that began when the faults had ended; -1 before.
    healed: int = -1

    def handlers(self) -> Mapping[Name, Callable[[int, Event], None]]:
        """The phases, and the waits that did not end."""
        return {Name.PHASE: self._phase, Name.LIVENESS_FAILED: self._failed}

    def _phase(self, position: int, event: Event) -> None:
        if event.cause == "heal":
            self.healed = position

    def _failed(self, position: int, event: Event) -> None:
        self.findings.add(
            "no_progress",
            expected=f"{event.cause or 'progress'}, within the bound of the liveness phase, "
            + ("once the faults had ended" if self.healed >= 0 else "as nothing was broken yet"),
            seen=_seen(event.detail),
            topic=event.topic,
            partition=event.partition,
            events=(self.healed, position) if self.healed >= 0 else (position,),
        )


def _seen(detail: str) -> str:
    """What prevents progress, as far as the run looked."""
    diagnosis = diagnosis_of(detail)
    if diagnosis is None:
        return detail or NEVER
    return "; ".join([NEVER, *reasons(diagnosis)[:MOST_REASONS]])
