"""The interface between a sans-IO core and the world that drives it: what comes in, what goes out.

The four verbs of a driver: hand an input to `step`, release its effects in order, keep the timers, deliver
what the effects asked for. Effects are released only after every file call of the step has returned: persist
before send holds by construction. Times are integer nanoseconds of the host's own clock.
"""

from typing import Protocol

from msgspec import Struct

from fencepost.impl.messages.broker_api import Message
from fencepost.impl.zookeeper.interface import Reply, WatchEvent, ZooKeeperRequest
from fencepost.traces.events import Event
from fencepost.traces.operations import Operation
from fencepost.traces.plan import PlannedOperation

TimerKey = tuple[str | int, ...]
"""Names a timer within one core; setting a key again replaces its deadline."""


# ---- inputs


class Started(Struct, frozen=True, gc=False):
    """The process is up; its files are what the disk kept."""


class MessageArrived(Struct, frozen=True, gc=False):
    """A message from another host. source: a node id (brokers 1.., clients from 1000)."""

    source: int
    message: Message


class TimerFired(Struct, frozen=True, gc=False):
    """A timer that was set, reached its deadline and was neither replaced nor cancelled."""

    key: TimerKey


class ZooKeeperReplied(Struct, frozen=True, gc=False):
    """The answer to the request of this id; replies come in the order of requests."""

    request_id: int
    reply: Reply


class ZooKeeperWatchFired(Struct, frozen=True, gc=False):
    """A one-shot watch fired; delivered before any reply that shows the change."""

    watch: WatchEvent


class ZooKeeperConnected(Struct, frozen=True, gc=False):
    """A session is usable. new: it is another session than before (all ephemerals and watches of the old one
    are gone)."""

    session_id: int
    new: bool


class ZooKeeperDisconnected(Struct, frozen=True, gc=False):
    """The connection is lost, the session may live on. Outstanding requests are answered with CONNECTION_LOSS
    first."""


class ZooKeeperSessionExpired(Struct, frozen=True, gc=False):
    """The session is gone. The driver opens a new one by itself; `ZooKeeperConnected(new=True)` follows."""


class StopRequested(Struct, frozen=True, gc=False):
    """The process is asked to stop (SIGTERM); a broker first asks the controller to take its leaders away."""


class Invoke(Struct, frozen=True, gc=False):
    """For a client core: begin this operation (impl/client); the core must be idle."""

    operation: PlannedOperation


class Produce(Struct, frozen=True, kw_only=True, gc=False):
    """For a producer core: one call of the application's send; its records stay together, in order. op_id: of
    the operation that it becomes. partition: -1 if the partitioner chooses. values: None for a tombstone.
    value_ids: of the records, in a trace."""

    op_id: int
    topic: str
    partition: int = -1
    key: bytes | None = None
    values: tuple[bytes | None, ...]
    value_ids: tuple[int, ...]
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
    """Send a message to a node. cause: what made it be sent, as small integers: it keys the network's
    randomness for this message, so that it must not contain running numbers."""

    target: int
    message: Message
    cause: tuple[int, ...] = ()


class SetTimer(Struct, frozen=True, gc=False):
    """Fire `key` at host time `at` (or at once if that has passed)."""

    key: TimerKey
    at: int


class CancelTimer(Struct, frozen=True, gc=False):
    """Forget `key`; nothing happens if it is not set."""

    key: TimerKey


class AskZooKeeper(Struct, frozen=True, gc=False):
    """Send a request on the current session. Requests of one session are carried out in order."""

    request_id: int
    request: ZooKeeperRequest


class RecordEvent(Struct, frozen=True, gc=False):
    """A trace event; the driver stamps it with the world's time and the node's id. on_disk: it tells what the
    step's file calls have made of the files, which stays true if the process dies before the step's effects
    leave the host."""

    event: Event
    on_disk: bool = False


class Begin(Struct, frozen=True, gc=False):
    """A client core begins an operation that nobody planned. operation: as it will stand if nothing more is
    heard; times are the world's to fill in. Of one that has begun: its answer has come, and only its
    transaction decides what becomes of it; it is complete at this moment."""

    operation: Operation


class Complete(Struct, frozen=True, gc=False):
    """A client core finished an operation. Its invoke and completion times are the world's to fill in."""

    operation: Operation


class Halt(Struct, frozen=True, gc=False):
    """The process ends itself. reason: one sentence for the log."""

    reason: str


Effect = Send | SetTimer | CancelTimer | AskZooKeeper | RecordEvent | Begin | Complete | Halt


class Core(Protocol):
    """A sans-IO core."""

    def step(self, input: Input, now: int) -> list[Effect]:
        """Apply one input at host time `now` (nanoseconds) and return the effects in the order in which they
        must be released."""
        ...
