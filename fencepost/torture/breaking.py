"""Faults of requests at the brokers' listeners, for a scenario.

Owns which request is hit. Must not know clients. It is the small interface that the engine of proxy/faults
fills, too: something that is a hook (wire/hook.py) and says what it did.
"""

from collections import Counter
from typing import Any

from attrs import define, field

from fencepost.torture.scenario import APIS, RequestFault
from fencepost.wire.codec import RequestHeader
from fencepost.wire.hook import PASS, Cut, Delay, Verdict


@define(eq=False)
class Breaking:
    """Hits the nth request of each kind. Called in the loop's thread only."""

    faults: tuple[RequestFault, ...]
    armed: bool = True
    """False after the heal."""
    done: list[str] = field(factory=list)
    """What was hit, in words."""
    _counts: "Counter[int]" = field(factory=Counter)
    _pending: dict[tuple[int, int], RequestFault] = field(factory=dict)
    """By connection and correlation id: a fault of an answer that is to come."""

    def on_request(self, source: int, header: RequestHeader, body: Any) -> Verdict:
        """Count it, and cut it off if its turn has come."""
        if not self.armed:
            return PASS
        self._counts[header.api_key] += 1
        for fault in self.faults:
            if APIS[fault.api] == header.api_key and fault.nth == self._counts[header.api_key]:
                self.done.append(str(fault))
                if fault.verb == "cut":
                    return Cut()
                self._pending[source, header.correlation_id] = fault
        return PASS

    def on_answer(self, source: int, header: RequestHeader, body: Any, answer: Any) -> Verdict:
        """Lose or delay it."""
        fault = self._pending.pop((source, header.correlation_id), None)
        if fault is None:
            return PASS
        return Cut() if fault.verb == "lose" else Delay(fault.delay_ms)
