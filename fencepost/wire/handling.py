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

from fencepost.impl.messages.broker_api import MetadataRequest, Request
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.kafka_names.outcomes import ErrorCode
from fencepost.wire.codec import RequestHeader
from fencepost.wire.limits import Limits
from fencepost.wire.plain import MILLISECOND, filled
from fencepost.wire.sasl import Authentication
from fencepost.wire.schemas import response_schema

Handling = Generator[Sequence[Request], list[Any], Any]
NANOSECONDS_PER_MS = 1_000_000


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

    def of(self, kind: Any, request: Any, **values: Any) -> Any:
        """A request of the core.

        Args:
            kind: its class.
            request: kio's class.
            values: the fields that the core names, or means, otherwise than Kafka, and those that some
                version lacks; it has the others from the field of the same name.
        """
        for name in kind.__struct_fields__:
            if name not in values and hasattr(request, name):
                values[name] = getattr(request, name)
        return kind(correlation_id=self.next_id(), **values)

    def answer(self, **values: Any) -> Any:
        """The response of this API and version, as kio's class.

        Args:
            values: as of `plain.filled`. No quota of ours delays an answer: its time is never given.
        """
        return filled(response_schema(self.header.api_key, self.header.version), values)


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


def milliseconds(value: timedelta) -> int:
    """A time of kio as a number; may be negative."""
    return value // MILLISECOND
