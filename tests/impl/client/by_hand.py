"""A client's core by hand: what it sends, its timers and its rows."""

from typing import Any

from fencepost.impl.core.core_interface import CancelTimer, Complete, Send, SetTimer
from fencepost.traces.operations import Operation


class ByHand:
    """Of one core. sent: (target, message). timers: when each is due, by key. rows: operations that have
    ended."""

    def __init__(self, core: Any) -> None:
        self.core, self.now = core, 0
        self.sent: list[tuple[int, Any]] = []
        self.timers: dict[Any, int] = {}
        self.rows: list[Operation] = []

    def step(self, input: Any) -> None:
        """Give it an input."""
        for effect in self.core.step(input, self.now):
            if isinstance(effect, Send):
                self.sent.append((effect.target, effect.message))
            elif isinstance(effect, SetTimer):
                self.timers[effect.key] = effect.at
            elif isinstance(effect, CancelTimer):
                self.timers.pop(effect.key, None)
            else:
                assert isinstance(effect, Complete), effect
                self.rows.append(effect.operation)
