"""Request faults of a running proxy: those of the command line, and those from the control port.

Owns the verbs of the control port. Must not know how a fault is carried out.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import Any, Self

from attrs import define, field

from fencepost.checkers.judges import DEFAULT_CHECKS, judge
from fencepost.checkers.verdict import combine
from fencepost.proxy.faults import FaultHook, RequestFaults, Struck, events_of, parse
from fencepost.proxy.server.listener import Proxy, trace_time
from fencepost.proxy.server.recording_proxy import Record
from fencepost.traces.errors import FencepostError
from fencepost.traces.parts import read_recording

VERB_S = 30.0
"""Longest time for the proxy's event loop to do what a verb asks."""


@define(eq=False)
class Faults:
    """The request faults of a proxy."""

    proxy: Proxy
    record: Record | None
    engine: RequestFaults = field(init=False)
    _hits: int = field(default=0, init=False)

    @classmethod
    def of(cls, proxy: Proxy, record: Record | None, seed: int, texts: Iterable[str]) -> Self:
        """Armed faults. proxy: where they act; record: for their events, None for nowhere; seed: of their
        random decisions; texts: one fault each. Raises PlanError for a text that is not a fault."""
        made = cls(proxy, record)
        made.engine = RequestFaults(seed=seed, record=made._struck)
        for text in texts:
            made.engine.arm(parse(text), trace_time())
        proxy.hook_for = lambda node: FaultHook(faults=made.engine, broker=node, now=trace_time)
        return made

    def _struck(self, struck: Struck) -> None:
        self._hits += 1
        if self.record is not None and not self.record.stopped:
            self.record.events(events_of(struck, self._hits))

    # ---- the control port

    def verbs(self, loop: asyncio.AbstractEventLoop) -> Mapping[str, Callable[..., Any]]:
        """The functions of the control port by name; each may be called from any thread."""

        def inside(function: Callable[..., Any], *arguments: Any) -> Any:
            done: Future[Any] = Future()

            def work() -> None:
                try:
                    done.set_result(function(*arguments))
                except FencepostError as error:
                    done.set_exception(error)

            loop.call_soon_threadsafe(work)
            return done.result(VERB_S)

        def fault(text: str) -> dict[str, Any]:
            """Arm a fault of requests."""
            return {"fault": inside(lambda: self.engine.arm(parse(text), trace_time()))}

        def end(fault: int) -> dict[str, Any]:
            """Remove a fault by its number."""
            inside(self.engine.end, fault)
            return {}

        def heal() -> dict[str, Any]:
            """Remove all faults."""
            inside(self.engine.heal)
            return {}

        def state() -> dict[str, Any]:
            """The state of the proxy and its faults."""
            return dict(inside(self._state))

        def verdict() -> dict[str, Any]:
            """The judges' verdict on what was recorded so far."""
            return self._verdict(inside)

        return {"fault": fault, "end": end, "heal": heal, "state": state, "verdict": verdict}

    def _state(self) -> dict[str, Any]:
        state: dict[str, Any] = {
            "connections": len(self.proxy.connections),
            "brokers unreachable": self.proxy.upstreams.unreachable,
            "bytes": {"from clients": self.proxy.bytes_in, "from brokers": self.proxy.bytes_out},
            "brokers": [
                {"node": each.node, "upstream": f"{each.host}:{each.port}", "listen": f"{host}:{port}"}
                for each, (host, port) in self.proxy.cluster.local.items()
            ],
            "faults": [
                {"fault": number, "text": str(fault), "struck": struck}
                for number, fault, struck in self.engine.active()
            ],
        }
        if self.record is not None:
            recorder = self.record.recorder
            state["record"] = {
                "run": str(self.record.files.run),
                "stopped": self.record.stopped,
                "requests": recorder.requests,
                "records acknowledged": recorder.appends.acknowledged,
                "appends of unknown outcome": recorder.appends.unknown,
            }
        return state

    def _verdict(self, inside: Callable[..., Any]) -> dict[str, Any]:
        if self.record is None:
            raise FencepostError(expected="a record (--record)", seen="none", where="verdict")
        inside(self.record.files.flush)
        verdict = combine(judge(read_recording(self.record.files.run), DEFAULT_CHECKS))
        return {
            "decision": verdict.decision.value,
            "reason": verdict.reason,
            "findings": [
                {"anomaly": one.anomaly, "topic": one.topic, "partition": one.partition, "offset": one.offset,
                 "expected": one.expected, "seen": one.seen, "operations": list(one.operations)}
                for one in verdict.findings
            ],
        }  # fmt: skip
