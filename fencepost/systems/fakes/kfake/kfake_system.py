"""kfake as a system: franz-go's fake of Kafka, with one log for all of its brokers.

Owns the translation of verbs. Must not know how it is built (program.py). There is no replication in it: a
broker that is killed leaves the cluster, others lead its partitions in a new epoch, and nothing may be lost.
Its controller is one broker for ever: topics could not be made any more if that one left.
"""

import threading

from attrs import define, field

from fencepost.systems.fakes.kfake.program import VERSION, built
from fencepost.systems.one_process import OneProcess
from fencepost.systems.system import Inside

CONTROLLER = 2
"""Of the brokers that kfake begins with, the last one; main.go removes the first."""


@define(eq=False, kw_only=True, repr=False)
class Kfake(OneProcess):
    """systems.system.System over kfake."""

    # Brokers that have left the cluster.
    _gone: set[int] = field(factory=set, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def __repr__(self) -> str:
        return f"<kfake with {self.size} brokers>"

    def command(self) -> list[str]:
        """The program, built if need be. Raises EnvironmentError_."""
        return [str(built()), str(self.size)]

    def kill(self, broker: int) -> None:
        """It leaves the cluster. Nothing happens if it has left. Raises UnsupportedError for the
        controller."""
        if broker == CONTROLLER:
            raise self.cannot(seen="the controller, which kfake never replaces")
        with self._lock:
            if broker not in self._gone:
                self.do("remove", broker)
                self._gone.add(broker)

    def restart(self, broker: int) -> None:
        """It is back. Nothing happens if it is there."""
        with self._lock:
            if broker in self._gone:
                self.do("add", broker, self.addresses[broker][1])
                self._gone.discard(broker)

    def runs(self, broker: int) -> bool:
        """Whether it is in the cluster."""
        return broker not in self._gone

    def inside(self) -> Inside:
        """What it consists of."""
        return Inside(
            software=f"franz-go's kfake {VERSION}",
            real_processes=False,
            real_files=False,
            can=frozenset({"kill"}),
        )
