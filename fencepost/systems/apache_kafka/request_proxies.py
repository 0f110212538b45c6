"""Faults of single requests in front of any cluster: each broker's clients come in through a proxy that reads
what passes.

Owns the proxy, its thread, and which faults are armed under which name. Must not know brokers' processes, or
what a fault does (proxy/faults). Behind it may be byte proxies, which cut and delay connections as a whole.
"""

from collections.abc import Mapping

from attrs import define, field

from fencepost.proxy.faults import FaultHook, RequestFault, RequestFaults, Struck
from fencepost.proxy.proxied_cluster import Address
from fencepost.proxy.server.listener import Proxy, trace_time
from fencepost.systems.loop_thread import LoopThread


@define(eq=False)
class RequestProxies:
    """systems.system.Requests. Calls may come from any thread."""

    # Where clients reach each broker, as the brokers say themselves.
    brokers: Mapping[int, Address]
    # Where they reach each broker through us.
    local: Mapping[int, Address] = field(factory=dict, init=False)
    _engine: RequestFaults = field(init=False)
    _proxy: Proxy = field(init=False)
    _struck: list[Struck] = field(factory=list, init=False)
    _armed: dict[str, int] = field(factory=dict, init=False)
    _thread: LoopThread = field(factory=lambda: LoopThread("requests"), init=False)

    def __attrs_post_init__(self) -> None:
        self._engine = RequestFaults(record=self._struck.append)
        self._proxy = Proxy(
            upstream=next(iter(self.brokers.values())),
            hook_for=lambda node: FaultHook(self._engine, node, trace_time),
            pass_unknown=True,
        )

    @classmethod
    def open(cls, brokers: Mapping[int, Address]) -> "RequestProxies":
        """Listen for each broker. Raises EnvironmentError_ where that is impossible; nothing is left then."""
        made = cls(brokers)
        made._thread.start()
        try:
            made.local = {
                broker: made._thread.call(made._proxy.cluster.assign, broker, *address)
                for broker, address in brokers.items()
            }
        except BaseException:
            made.close()
            raise
        return made

    def break_requests(self, name: str, fault: RequestFault) -> None:
        """From now on the fault may strike. name: of the fault. Raises PlanError for one that no correct
        broker does and that does not say so."""
        self._armed[name] = self._thread.call(lambda: self._engine.arm(fault, trace_time()))

    def heal_requests(self, name: str) -> None:
        """The fault of this name strikes no more; what is held still arrives. Nothing happens if there is
        none."""
        if (number := self._armed.pop(name, None)) is not None:
            self._thread.call(self._engine.end, number)

    def hits(self) -> tuple[Struck, ...]:
        """What was hit since the last call; times are nanoseconds of the wall clock."""

        def taken() -> tuple[Struck, ...]:
            found = tuple(self._struck)
            self._struck.clear()
            return found

        return self._thread.call(taken)

    def close(self) -> None:
        """End every connection and the thread. Closing again does nothing."""
        if self._thread.running:
            self._thread.run(self._proxy.close())
            self._thread.close()
