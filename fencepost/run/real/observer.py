"""What can be seen of a real cluster from outside: leader, leader epoch and ISR of each partition, and the
controller, asked again and again while a run lasts.

Owns the order of what was seen. Must not know where the claims of a run come from (claims.py). Brokers hear
of changes at different times. So a state counts only if its leader epoch is not below the known one, and one
broker is asked until it does not answer.

What was seen is a sample: states between two looks are missing. So it is recorded as marks, which no
invariant reads as the cluster's own record.
"""

import asyncio
import time
from collections.abc import Callable, Mapping

from attrs import define, field, frozen

from fencepost.impl.messages.broker_api import PartitionMetadata
from fencepost.record.observed_state import Key, ObservedState
from fencepost.run.real.broker_questions import Asking
from fencepost.traces.events import Event, Name

LOOK_S = 0.04
"""Between two looks: the ISR changes after two seconds of silence, and an election takes 50 ms."""
SEEN_STATE, SEEN_CONTROLLER = "partition_state_seen", "controller_seen"
"""The causes of these marks."""


@frozen(kw_only=True)
class SeenElection:
    """A change of leader that was seen."""

    key: Key
    leader: int
    leader_epoch: int
    # Whether the new leader was in the ISR that was seen last, no epoch between was missed, and the ISR did
    # not grow with it. An election from the eligible leader replicas (KIP-966) does not count as clean: the
    # metadata of a topic do not name them.
    clean: bool
    # Where the epoch began is not seen from outside.
    start_offset: int = -1


@define(eq=False, kw_only=True)
class Observer:
    """One task that asks."""

    asking: Asking
    brokers: tuple[int, ...]
    # The trace's name of each topic, by the cluster's.
    names: Mapping[str, str]
    # Nanoseconds of the trace.
    now: Callable[[], int]
    # Gets every change that was seen.
    record: Callable[[Event], None]
    # What was seen last: roles are resolved by it.
    state: ObservedState = field(factory=ObservedState)
    elections: list[SeenElection] = field(factory=list)
    live: tuple[int, ...] = ()
    _turn: int = 0
    _stopped: bool = False

    async def look_on(self) -> None:
        """Ask until `stop`, or until it is cancelled. A cancellation that meets a time-out is lost, so that
        it alone would not do."""
        while not self._stopped:
            await self.look()
            await asyncio.sleep(LOOK_S)

    def stop(self) -> None:
        """Let `look_on` return."""
        self._stopped = True

    async def look(self) -> bool:
        """Ask one broker; whether it answered. The next call asks another one, if it did not."""
        broker = self.brokers[self._turn % len(self.brokers)]
        view = await self.asking.view(broker, *self.names)
        if view is None:
            self._turn += 1
            return False
        self.live = view.live
        for seen in view.partitions:
            self._learn(seen)
        leader = await self.asking.quorum_leader(broker)
        self._controls(view.controller if leader == -1 else leader if leader is not None else -1)
        return True

    def _controls(self, broker: int) -> None:
        if broker < 0 or broker == self.state.controller:
            return
        self.state.controller = broker
        self.record(Event(time=self.now(), name=Name.MARK, node=broker, leader=broker, cause=SEEN_CONTROLLER))

    def _learn(self, seen: PartitionMetadata) -> None:
        key = (self.names[seen.partition.topic], seen.partition.partition)
        known = self.state.partition(key)
        if seen.leader_epoch < known.leader_epoch:
            return
        if (seen.leader, seen.leader_epoch, tuple(seen.isr)) == (known.leader, known.leader_epoch, known.isr):
            return
        if 0 <= known.leader_epoch < seen.leader_epoch and seen.leader >= 0:
            clean = (
                seen.leader in known.isr
                and set(seen.isr) <= set(known.isr)
                and seen.leader_epoch == known.leader_epoch + 1
            )
            self.elections.append(
                SeenElection(key=key, leader=seen.leader, leader_epoch=seen.leader_epoch, clean=clean)
            )
        if seen.leader < 0 and seen.leader_epoch == known.leader_epoch:
            return  # nobody leads for a moment: epoch and ISR of the last leader still count
        known.leader, known.leader_epoch, known.isr = seen.leader, seen.leader_epoch, tuple(seen.isr)
        for replica in seen.replicas:
            known.replica(replica)
        self.state.assignments[key] = tuple(seen.replicas)
        self.record(
            Event(
                time=self.now(),
                name=Name.MARK,
                topic=key[0],
                partition=key[1],
                leader=seen.leader,
                leader_epoch=seen.leader_epoch,
                isr=tuple(seen.isr),
                cause=SEEN_STATE,
            )
        )


def nanoseconds_since(first: int) -> Callable[[], int]:
    """A clock that begins at 0. first: its beginning, of time.monotonic_ns."""
    return lambda: time.monotonic_ns() - first
