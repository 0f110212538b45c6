"""The interface between a sans-IO core and its driver: inputs and effects.

A driver does four things: pass inputs to `step`, release the effects in order, keep the timers, and carry out
what the effects request. Effects are released only after every file call of the step has returned, so data is
persistent before a message is sent. Times are integer nanoseconds of the host's own clock.
"""

from typing import Protocol

from msgspec import Struct

from fencepost.impl.messages.broker_api import Message
from fencepost.impl.zookeeper.interface import Reply, WatchEvent, ZooKeeperRequest
from fencepost.traces.events import Event, EventColumns, Name, make_event
from fencepost.traces.operations import Operation
from fencepost.traces.plan import PlannedOperation

TimerKey = tuple[str | int, ...]
"""The name of a timer within one core. Setting a timer again replaces its deadline."""


# ---- inputs


class Started(Struct, frozen=True, gc=False):
    """The process has started; its files are what the disk kept."""


class MessageArrived(Struct, frozen=True, gc=False):
    """A message from another host."""

    # Node id (brokers from 1, clients from 1000).
    source: int
    message: Message


class TimerFired(Struct, frozen=True, gc=False):
    """A timer reached its deadline; it was neither replaced nor cancelled."""

    key: TimerKey


class ZooKeeperReplied(Struct, frozen=True, gc=False):
    """The reply to the request with this id; replies come in the order of requests."""

    request_id: int
    reply: Reply


class ZooKeeperWatchFired(Struct, frozen=True, gc=False):
    """A one-shot watch fired. It is delivered before any reply that shows the change."""

    watch: WatchEvent


class ZooKeeperConnected(Struct, frozen=True, gc=False):
    """A session is usable."""

    session_id: int
    # It is not the previous session (all ephemeral nodes and watches of that one are gone).
    new: bool


class ZooKeeperDisconnected(Struct, frozen=True, gc=False):
    """The connection is lost; the session may still be alive. Before this, outstanding requests are answered
    with CONNECTION_LOSS."""


class ZooKeeperSessionExpired(Struct, frozen=True, gc=False):
    """The session has expired. The driver opens a new one; `ZooKeeperConnected(new=True)` follows."""


class StopRequested(Struct, frozen=True, gc=False):
    """The process is asked to stop (SIGTERM). A broker first asks the controller to move its leaders."""


class Invoke(Struct, frozen=True, gc=False):
    """For a client core: begin this operation (impl/client). The core must be idle."""

    operation: PlannedOperation


class Produce(Struct, frozen=True, kw_only=True, gc=False):
    """For a producer core: one call of the application's send. Its records stay together and in order."""

    # The id of the resulting operation.
    op_id: int
    # The topic.
    topic: str
    # The partition; -1 if the partitioner chooses.
    partition: int = -1
    # The key of the records; None if there is none.
    key: bytes | None = None
    # The values of the records; None for a tombstone.
    values: tuple[bytes | None, ...]
    # The value ids of the records in a trace; as many as `values`.
    value_ids: tuple[int, ...]
    # 0, 1 or -1 (all).
    acks: int = -1


Input = (
    Started
    | StopRequested
    | Invoke
    | Produce
    | MessageArrived
    | TimerFired
    | ZooKeeperReplied
    | ZooKeeperWatchFired
    | ZooKeeperConnected
    | ZooKeeperDisconnected
    | ZooKeeperSessionExpired
)


# ---- effects


class Send(Struct, frozen=True, gc=False):
    """Send a message to a node."""

    target: int
    message: Message
    # What caused it, as small integers. It keys the network's randomness for this message, so it must not
    # contain running numbers.
    cause: tuple[int, ...] = ()


class SetTimer(Struct, frozen=True, gc=False):
    """Fire `key` at host time `at`, or at once if that time has passed."""

    key: TimerKey
    at: int


class CancelTimer(Struct, frozen=True, gc=False):
    """Cancel the timer `key`; no effect if it is not set."""

    key: TimerKey


class AskZooKeeper(Struct, frozen=True, gc=False):
    """Send a request on the current session. ZooKeeper executes the requests of one session in order."""

    request_id: int
    request: ZooKeeperRequest


class RecordEvent(Struct, frozen=True, gc=False):
    """A trace event, without what only the world knows: when it was, and at which node."""

    name: Name
    columns: EventColumns
    # It tells what the step's file calls have made of the files, which stays true if the process dies before
    # the step's effects leave the host.
    on_disk: bool = False

    def at(self, time: int, node: int) -> Event:
        """The event, which happens now.

        Args:
            time: virtual nanoseconds.
            node: where.
        """
        return make_event(time=time, name=self.name, node=node, **self.columns)


class Begin(Struct, frozen=True, gc=False):
    """A client core begins an operation that nobody planned."""

    # As it will be if nothing more is heard; times are the world's to fill in. Of one that has begun: its
    # answer has come, and only its transaction decides what becomes of it; it is complete at this moment.
    operation: Operation


class Complete(Struct, frozen=True, gc=False):
    """A client core finished an operation. The world fills in its invocation and completion times."""

    operation: Operation


class Halt(Struct, frozen=True, gc=False):
    """The process ends itself."""

    # One sentence for the log.
    reason: str


Effect = Send | SetTimer | CancelTimer | AskZooKeeper | RecordEvent | Begin | Complete | Halt


class Core(Protocol):
    """A sans-IO core."""

    def step(self, input: Input, now: int) -> list[Effect]:
        """Apply one input.

        Args:
            input: the input.
            now: host time in nanoseconds; it never decreases.

        Returns:
            the effects, in the order in which they must be released.
        """
        ...
