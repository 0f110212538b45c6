"""What a translation of an API is: a generator that turns one of Kafka's requests into requests of the core,
and their answers into one response.

Owns the form of a handler and what it may know. Must not know connections or any API. A handler yields
requests of the core, all at once, and is sent their answers in the same order; it may yield again. What it
returns is the response; None means that there is none.
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from attrs import define, field
from kio.schema.errors import ErrorCode as WireError

from fencepost.impl.messages.broker_api import MetadataRequest, Request
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.outcomes import ErrorCode
from fencepost.wire.codec import RequestHeader, response_type
from fencepost.wire.limits import Limits
from fencepost.wire.sasl import Authentication

Handling = Generator[Sequence[Request], list[Any], Any]
NO_THROTTLE = timedelta(0)
"""No quota of ours delays an answer."""
MILLISECOND = timedelta(milliseconds=1)
NANOSECONDS_PER_MS = 1_000_000

_WIRE_ERRORS: dict[ErrorCode, WireError] = {
    code: WireError[code.value.lower()] for code in ErrorCode if code is not ErrorCode.NETWORK_EXCEPTION
}
"""The wire's errors by name. Only clients use NETWORK_EXCEPTION."""


class CloseConnection(Exception):  # noqa: N818  (a way to end a request, as StopIteration is)
    """Raised by a handler: Kafka closes the connection instead of answering. The text is the reason, for the
    log."""


@define(eq=False, kw_only=True)
class BrokerView:
    """What a connection knows about its broker in addition to the core's messages."""

    # Its id.
    node: int
    # The advertised host and port of each broker of the cluster, whether it lives or not; the core says which
    # do.
    addresses: Callable[[], Mapping[int, tuple[str, int]]]
    cluster_id: str = "fencepost"
    # Whether the cluster has a topic __transaction_state, or may create it.
    transactions: bool = False
    # Whether each broker is in a rack of its own, and consumers of that rack read from it (KIP-392).
    racks: bool = False
    # The feature transaction.version (KIP-890).
    transaction_version: int = 1


@define(eq=False, kw_only=True)
class Call:
    """The context of one request in progress."""

    header: RequestHeader
    broker: BrokerView
    limits: Limits
    # The next correlation id of this connection.
    numbers: Callable[[], int]
    authentication: Authentication
    # The table of versions.py, for the answer that lists it.
    apis: Mapping[int, Any]
    client_host: str = ""
    # How long the request itself lets its answer wait; set by its handler before it yields.
    patience_ms: int = field(default=0, init=False)

    def rack(self, node: int) -> str | None:
        """The rack of a broker, if brokers have any."""
        return f"r{node}" if self.broker.racks else None

    @property
    def version(self) -> int:
        """Version of the request."""
        return self.header.version

    @property
    def client_id(self) -> str:
        """As the client calls itself; empty if it does not."""
        return self.header.client_id or ""

    def next_id(self) -> int:
        """A correlation id for a request of the core."""
        return self.numbers()

    def make(self, name: str, /, **values: Any) -> Any:
        """kio's class of this name in the response of this API and version. Values that this version has no
        field for are left out."""
        kind, names = response_type(self.header.api_key, self.header.version, name)
        return kind(**{key: value for key, value in values.items() if key in names})


def held_elsewhere(
    call: Call, found: Iterable[tuple[TopicPartition, ErrorCode]]
) -> Generator[Sequence[Request], list[Any], frozenset[TopicPartition]]:
    """The partitions that are in this broker's metadata and not in its core: another broker has them, and
    Kafka answers NOT_LEADER_OR_FOLLOWER. call: the request's context; found: partitions with the core's
    error."""
    unknown = {key for key, error in found if error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    if not unknown:
        return frozenset()
    names = tuple(sorted({key.topic for key in unknown}))
    (metadata,) = yield [MetadataRequest(correlation_id=call.next_id(), topics=names)]
    return frozenset(each.partition for each in metadata.partitions if each.partition in unknown)


def error_code(error: ErrorCode) -> WireError:
    """kio's name of an error of the core."""
    return _WIRE_ERRORS[error]


def milliseconds(value: timedelta) -> int:
    """A time of kio as a number; may be negative."""
    return value // MILLISECOND


def grouped(keys: Iterable[tuple[str, Any]]) -> dict[str, list[Any]]:
    """(topic, of one partition) as topic -> its partitions, in the order in which they come: what most
    responses look like."""
    topics: dict[str, list[Any]] = {}
    for topic, value in keys:
        topics.setdefault(topic, []).append(value)
    return topics
