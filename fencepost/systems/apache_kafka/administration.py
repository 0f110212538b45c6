"""What an operator does to a real cluster: topics, configurations, reassignment, elections, rolling restart
and upgrade.

Owns the requests and who gets them: the controller, asked again while it moves. Must not know why a fault
wants them. Requests go through our own wire client, so that no tool of Kafka's is needed. Each call returns
Kafka's name of the error, NONE if it was done: what a campaign asks for may be refused, which is no failure.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from attrs import define, field, frozen

from fencepost.impl.messages.broker_api import PartitionMetadata
from fencepost.impl.runtime.addresses import parse_address
from fencepost.systems.apache_kafka.cluster import START_S, ApacheKafka
from fencepost.systems.apache_kafka.jars import Release
from fencepost.systems.system import System
from fencepost.traces.errors import EnvironmentError_
from fencepost.wire.client import Access, Address, Link, look_around
from fencepost.wire.dialogue import Dialogue
from fencepost.wire.frames import ProtocolError

CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS = 19, 20, 37
ELECT_LEADERS, INCREMENTAL_ALTER_CONFIGS, ALTER_REASSIGNMENTS = 43, 44, 45
PREFERRED, UNCLEAN = 0, 1
"""ElectionType."""
TOPIC, BROKER = 2, 4
"""ConfigResource.Type."""
SET, DELETE = 0, 1
"""AlterConfigOp.OpType."""
NONE = "NONE"
MOVED = ("NOT_CONTROLLER", "NOT_LEADER_OR_FOLLOWER", "COORDINATOR_NOT_AVAILABLE", "BROKER_NOT_AVAILABLE")
"""Answers of a broker that is not the controller now."""
REQUEST_S = 15
"""How long the controller may take. A cluster of three answered within a second; faults make it slow."""
PATIENCE_S = 60.0
"""How long a controller is looked for: many elections, on a crowded machine."""
RETRY_S = 0.2
DOWN_S = 60.0
"""How long a broker may take to stop; controlled shutdown gives up after three attempts by itself."""
Make = Callable[[Dialogue], Any]
Value = TypeVar("Value")


@frozen(kw_only=True)
class TopicOptions:
    """A new topic."""

    name: str
    partitions: int = 1
    replication_factor: int = 3
    # Replicas by partition, which then say how many there are of both.
    assignment: tuple[tuple[int, ...], ...] = ()
    settings: Mapping[str, str] = field(factory=dict)


@define(eq=False)
class Administration:
    """The admin client of one cluster."""

    # HOST:PORT, separated by commas.
    bootstrap: str
    access: Access = field(factory=Access)
    patience_s: float = PATIENCE_S
    request_s: int = REQUEST_S

    # ---- topics

    def create_topic(self, topic: TopicOptions) -> str:
        """CreateTopics."""

        def make(to: Dialogue) -> Any:
            key = CREATE_TOPICS
            wanted = to.make(
                key,
                "CreatableTopic",
                name=topic.name,
                num_partitions=-1 if topic.assignment else topic.partitions,
                replication_factor=-1 if topic.assignment else topic.replication_factor,
                assignments=tuple(
                    to.make(key, "CreatableReplicaAssignment", partition_index=number, broker_ids=replicas)
                    for number, replicas in enumerate(topic.assignment)
                ),
                configs=tuple(
                    to.make(key, "CreatableTopicConfig", name=name, value=value)
                    for name, value in sorted(topic.settings.items())
                ),
            )
            return to.make(
                key, "CreateTopicsRequest", topics=(wanted,), timeout=self._timeout, validate_only=False
            )

        return self._ask(make, lambda answer: answer.topics[0].error_code)

    def delete_topic(self, name: str) -> str:
        """DeleteTopics."""
        return self._ask(
            lambda to: to.make(
                DELETE_TOPICS, "DeleteTopicsRequest", topic_names=(name,), timeout=self._timeout
            ),
            lambda answer: answer.responses[0].error_code,
        )

    def create_partitions(self, name: str, count: int) -> str:
        """CreatePartitions, up to this count."""

        def make(to: Dialogue) -> Any:
            topic = to.make(
                CREATE_PARTITIONS, "CreatePartitionsTopic", name=name, count=count, assignments=None
            )
            return to.make(
                CREATE_PARTITIONS,
                "CreatePartitionsRequest",
                topics=(topic,),
                timeout=self._timeout,
                validate_only=False,
            )

        return self._ask(make, lambda answer: answer.results[0].error_code)

    def alter_topic_config(self, name: str, changes: Mapping[str, str | None]) -> str:
        """IncrementalAlterConfigs of a topic. changes: None removes an override."""
        return self._alter_config(TOPIC, name, changes)

    def alter_broker_config(self, broker: int | None, changes: Mapping[str, str | None]) -> str:
        """IncrementalAlterConfigs of one broker, or (None) the cluster's default. changes: None removes an
        override."""
        return self._alter_config(BROKER, "" if broker is None else str(broker), changes, broker)

    def _alter_config(
        self, kind: int, name: str, changes: Mapping[str, str | None], broker: int | None = None
    ) -> str:
        def make(to: Dialogue) -> Any:
            key = INCREMENTAL_ALTER_CONFIGS
            configs = tuple(
                to.make(
                    key,
                    "AlterableConfig",
                    name=setting,
                    config_operation=DELETE if value is None else SET,
                    value=value,
                )
                for setting, value in sorted(changes.items())
            )
            resource = to.make(
                key, "AlterConfigsResource", resource_type=kind, resource_name=name, configs=configs
            )
            return to.make(key, "IncrementalAlterConfigsRequest", resources=(resource,), validate_only=False)

        return self._ask(make, lambda answer: answer.responses[0].error_code, broker)

    # ---- replicas and leaders

    def reassign(self, topic: str, partition: int, replicas: Sequence[int] | None) -> str:
        """AlterPartitionReassignments. replicas: the target; None cancels the one in progress."""

        def make(to: Dialogue) -> Any:
            key = ALTER_REASSIGNMENTS
            part = to.make(
                key,
                "ReassignablePartition",
                partition_index=partition,
                replicas=None if replicas is None else tuple(replicas),
            )
            whole = to.make(key, "ReassignableTopic", name=topic, partitions=(part,))
            return to.make(
                key,
                "AlterPartitionReassignmentsRequest",
                timeout=self._timeout,
                allow_replication_factor_change=True,
                topics=(whole,),
            )

        def error(answer: Any) -> Any:
            if answer.error_code.name != "none" or not answer.responses:
                return answer.error_code
            return answer.responses[0].partitions[0].error_code

        return self._ask(make, error)

    def elect(self, topic: str, partition: int, *, unclean: bool = False) -> str:
        """ElectLeaders: the preferred replica, or (unclean) any live one if there is no leader. The answer to
        an election that changes nothing is ELECTION_NOT_NEEDED."""

        def make(to: Dialogue) -> Any:
            part = to.make(
                ELECT_LEADERS,
                "TopicPartitions",
                topic=topic,
                partitions=(partition,),
                partition_id=(partition,),
            )
            return to.make(
                ELECT_LEADERS,
                "ElectLeadersRequest",
                election_type=UNCLEAN if unclean else PREFERRED,
                topic_partitions=(part,),
                timeout=self._timeout,
            )

        def error(answer: Any) -> Any:
            top = getattr(answer, "error_code", None)
            if (top is not None and top.name != "none") or not answer.replica_election_results:
                return top
            return answer.replica_election_results[0].partition_result[0].error_code

        return self._ask(make, error)

    # ---- to look at

    def partitions(self) -> dict[tuple[str, int], PartitionMetadata]:
        """Leader, replicas and ISR of every partition, as the first broker with an answer has them. Raises
        EnvironmentError_ if none answers."""
        _, seen = asyncio.run(look_around(self._addresses, self.access))
        return {(each.partition.topic, each.partition.partition): each for each in seen.partitions}

    def wait_for(
        self, condition: Callable[[], Value | None], what: str, seconds: float = PATIENCE_S
    ) -> Value:
        """Ask again until something true comes; returns it. what: in words. Raises EnvironmentError_ when the
        time is over."""
        deadline, seen = time.monotonic() + seconds, "no"
        while True:
            try:
                found = condition()
                if found:
                    return found
            except EnvironmentError_ as error:
                seen = str(error)
            if time.monotonic() > deadline:
                raise EnvironmentError_(
                    expected=f"{what} within {seconds:g} s", seen=seen, where=self.bootstrap
                )
            time.sleep(RETRY_S)

    # ---- requests

    @property
    def _timeout(self) -> timedelta:
        return timedelta(seconds=self.request_s)

    @property
    def _addresses(self) -> tuple[Address, ...]:
        return tuple(parse_address(each) for each in self.bootstrap.split(","))

    def _ask(self, make: Make, error: Callable[[Any], Any], broker: int | None = None) -> str:
        """The name of the error that the controller (or one broker) answers with. Raises EnvironmentError_ if
        nobody answers while the patience lasts."""
        deadline = time.monotonic() + self.patience_s
        while True:
            try:
                answer = asyncio.run(self._ask_once(make, broker))
                name = str(error(answer).name).upper()
            except (OSError, ProtocolError, TimeoutError, EnvironmentError_) as problem:
                answer, name = None, str(problem) or type(problem).__name__
            if answer is not None and name not in MOVED:
                return name
            if time.monotonic() > deadline:
                raise EnvironmentError_(
                    expected=f"an answer of the controller within {self.patience_s:g} s",
                    seen=name,
                    where=self.bootstrap,
                )
            time.sleep(RETRY_S)

    async def _ask_once(self, make: Make, broker: int | None) -> Any:
        addresses, seen = await look_around(self._addresses, self.access)
        target = seen.controller_id if broker is None else broker
        if target not in addresses:
            raise EnvironmentError_(
                expected="a controller" if broker is None else f"broker {broker}",
                seen="none that is known",
                where=self.bootstrap,
            )
        link = Link(addresses[target], self.access)
        try:
            await link.open()
            async with asyncio.timeout(self.request_s + REQUEST_S):
                return await link.ask(make(link.dialogue))
        finally:
            await link.close()


# ---- brokers in turn


def rolling_restart(cluster: System, between: Callable[[int], None] | None = None) -> None:
    """Stop each broker in order, start it again, wait until the cluster is healthy.

    Args:
        cluster: healthy before.
        between: called with each broker while it is down.

    Raises:
        EnvironmentError_: if the cluster does not become healthy.
    """
    for broker in cluster.brokers:
        _restart(cluster, broker, between)


def rolling_upgrade(cluster: ApacheKafka, to: Release, between: Callable[[int], None] | None = None) -> None:
    """As `rolling_restart`, and each broker comes back in another version. What the brokers say to each other
    stays in the old one's language: with KRaft by the metadata version of the format step, with ZooKeeper if
    the cluster's settings have `inter.broker.protocol.version`.

    Args:
        cluster: healthy before.
        to: the next version.
        between: called with each broker while it is down.

    Raises:
        EnvironmentError_: if the cluster does not become healthy, or the jars cannot be had.
    """
    to.class_path()
    for broker in cluster.brokers:
        cluster.releases[broker] = to
        _restart(cluster, broker, between)


def _restart(cluster: System, broker: int, between: Callable[[int], None] | None) -> None:
    cluster.stop(broker)
    if not _within(DOWN_S, lambda: not cluster.runs(broker)):
        cluster.kill(broker)  # as an operator does with a broker that hangs in its shutdown
    if between is not None:
        between(broker)
    cluster.restart(broker)
    if not _within(START_S, cluster.healthy):
        raise EnvironmentError_(
            expected=f"a healthy cluster within {START_S:.0f} s of the start of broker {broker}",
            seen="one that is not" if cluster.runs(broker) else f"that broker {broker} has ended by itself",
            where=repr(cluster),
        )


def _within(seconds: float, condition: Callable[[], bool]) -> bool:
    """Whether it holds before the time is over."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(RETRY_S)
    return True
