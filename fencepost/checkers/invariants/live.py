"""Progress: after the faults ended, every wait of the liveness phase ends.

Owns no_progress. The run decides what it waits for and for how long, and records each wait that did not end.
"""

from collections.abc import Callable, Mapping

from attrs import define

from fencepost.checkers.invariants.findings import Findings
from fencepost.traces.events import Event, Name


@define
class Live:
    """The state of the rule. healed: the position of the phase that began when the faults had ended; -1
    before."""

    findings: Findings
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
            expected=f"{event.cause or 'progress'}, within the bound of the liveness phase, once the faults "
            f"had ended",
            seen=event.detail or "it never came",
            topic=event.topic,
            partition=event.partition,
            events=(self.healed, position) if self.healed >= 0 else (position,),
        )
