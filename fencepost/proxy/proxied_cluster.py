"""What the proxy knows of the cluster: where each broker is, at which address clients are sent to it, and
what topics are called.

Owns one local address for each (broker, listener), given on first sight and kept. Must not know sockets:
`bind` makes a local address.
"""

from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

from attrs import define, field, frozen

from fencepost.traces.errors import EnvironmentError_

MOST_ADDRESSES = 1_000
"""Addresses of brokers, each with a listener of ours: a broker that answers with garbage must not take every
port."""
MOST_TOPICS = 200_000
"""Names of topic ids: as many topics as Kafka's documentation calls too many partitions for one cluster."""
Address = tuple[str, int]


@frozen
class Upstream:
    """A listener of a broker, as the broker calls it."""

    # -1 until a broker has said who is there.
    node: int
    host: str
    port: int


@define(eq=False)
class Cluster:
    """bind(upstream) opens a local listener for a broker's and returns its address."""

    bind: Callable[[Upstream], Address]
    # The local address of each broker's listener, in the order of first sight.
    local: dict[Upstream, Address] = field(factory=dict)
    # Who is at an address, as brokers said last.
    nodes: dict[Address, int] = field(factory=dict)
    # The names of topic ids.
    topics: dict[UUID, str] = field(factory=dict)

    def assign(self, node: int, host: str, port: int) -> Address:
        """The address that clients are given for a listener of a broker.

        Args:
            node: the broker's number.
            host: of the listener.
            port: of the listener.

        Raises:
            EnvironmentError_: if there is no room for another.
        """
        upstream = Upstream(node, host, port)
        self.nodes[host, port] = node
        known = self.local.get(upstream)
        if known is None:
            if len(self.local) >= MOST_ADDRESSES:
                raise EnvironmentError_(
                    expected=f"at most {MOST_ADDRESSES} listeners of brokers",
                    seen=f"another one, {host}:{port} of broker {node}",
                    where="an answer of a broker",
                )
            known = self.local[upstream] = self.bind(upstream)
        return known

    def node_at(self, host: str, port: int) -> int:
        """The broker at an address; -1 if no answer has named it.

        Args:
            host: of the listener.
            port: of the listener.
        """
        return self.nodes.get((host, port), -1)

    def learn_topics(self, named: Iterable[Any]) -> None:
        """Remember the names of topics that an answer lists with their ids (Metadata 10 and later,
        CreateTopics 7)."""
        for topic in named:
            topic_id, name = getattr(topic, "topic_id", None), topic.name
            if topic_id is not None and name and (topic_id in self.topics or len(self.topics) < MOST_TOPICS):
                self.topics[topic_id] = name

    def name_of(self, topic: Any) -> str:
        """The name of a topic in a request or an answer, which names it or its id; `id:UUID` for an id that
        nobody has said anything of."""
        name: str | None = getattr(topic, "topic", None) or getattr(topic, "name", None)
        if name:
            return name
        topic_id = getattr(topic, "topic_id", None)
        return self.topics.get(topic_id, f"id:{topic_id}") if topic_id is not None else ""
