"""What an operator does to a real cluster: topics, reassignment, elections.

Owns the requests and who gets them: the controller, asked again while it moves. Must not know why a fault
wants them. Requests go through our own wire client, so that no tool of Kafka's is needed. Each call returns
Kafka's name of the error, NONE if it was done: what a campaign asks for may be refused, which is no failure.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from attrs import define, field, frozen

from fencepost.impl.messages.broker_api import PartitionMetadata
from fencepost.impl.runtime.addresses import parse_address
from fencepost.traces.errors import EnvironmentError_
from fencepost.wire.client import Access, Address, Link, look_around
from fencepost.wire.frames import ProtocolError

CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS = 19, 20, 37
ELECT_LEADERS, ALTER_CONFIGS, ALTER_REASSIGNMENTS = 43, 44, 45
TOPIC, SET = 2, 0
"""ConfigResource.Type and AlterConfigOp.OpType."""
PREFERRED, UNCLEAN = 0, 1
"""ElectionType."""
NONE = "NONE"
MOVED = ("NOT_CONTROLLER", "NOT_LEADER_OR_FOLLOWER", "COORDINATOR_NOT_AVAILABLE", "BROKER_NOT_AVAILABLE")
"""Answers of a broker that is not the controller now."""
REQUEST_S = 15
"""How long the controller may take. A cluster of three answered within a second; faults make it slow."""
PATIENCE_S = 60.0
"""How long a controller is looked for: many elections, on a crowded machine."""
RETRY_S = 0.2
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

        wanted = {
            "name": topic.name,
            "num_partitions": -1 if topic.assignment else topic.partitions,
            "replication_factor": -1 if topic.assignment else topic.replication_factor,
            "assignments": [
                {"partition_index": number, "broker_ids": replicas}
                for number, replicas in enumerate(topic.assignment)
            ],
            "configs": [{"name": name, "value": value} for name, value in sorted(topic.settings.items())],
        }
        return self._ask(CREATE_TOPICS, lambda answer: answer.topics[0].error_code, topics=[wanted])

    def delete_topic(self, name: str) -> str:
        """DeleteTopics."""
        return self._ask(DELETE_TOPICS, lambda answer: answer.responses[0].error_code, topic_names=[name])

    def create_partitions(self, name: str, count: int) -> str:
        """CreatePartitions, up to this count."""

        topic = {"name": name, "count": count, "assignments": None}
        return self._ask(CREATE_PARTITIONS, lambda answer: answer.results[0].error_code, topics=[topic])

    def alter_topic(self, name: str, settings: Mapping[str, str]) -> str:
        """IncrementalAlterConfigs.

        Args:
            name: of the topic.
            settings: what is set, by name; others stay.
        """

        configs = [
            {"name": key, "config_operation": SET, "value": value} for key, value in sorted(settings.items())
        ]
        wanted = {"resource_type": TOPIC, "resource_name": name, "configs": configs}
        return self._ask(
            ALTER_CONFIGS,
            lambda answer: answer.responses[0].error_code,
            resources=[wanted],
            validate_only=False,
        )

    # ---- replicas and leaders

    def reassign(self, topic: str, partition: int, replicas: Sequence[int] | None) -> str:
        """AlterPartitionReassignments. replicas: the target; None cancels the one in progress."""

        def error(answer: Any) -> Any:
            if answer.error_code.name != "none" or not answer.responses:
                return answer.error_code
            return answer.responses[0].partitions[0].error_code

        part = {"partition_index": partition, "replicas": replicas}
        return self._ask(
            ALTER_REASSIGNMENTS,
            error,
            topics=[{"name": topic, "partitions": [part]}],
            allow_replication_factor_change=True,
        )

    def elect(self, topic: str, partition: int, *, unclean: bool = False) -> str:
        """ElectLeaders: the preferred replica, or (unclean) any live one if there is no leader. The answer to
        an election that changes nothing is ELECTION_NOT_NEEDED."""

        def error(answer: Any) -> Any:
            top = getattr(answer, "error_code", None)
            if (top is not None and top.name != "none") or not answer.replica_election_results:
                return top
            return answer.replica_election_results[0].partition_result[0].error_code

        return self._ask(
            ELECT_LEADERS,
            error,
            election_type=UNCLEAN if unclean else PREFERRED,
            topic_partitions=[{"topic": topic, "partitions": [partition], "partition_id": [partition]}],
        )

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
    def _addresses(self) -> tuple[Address, ...]:
        return tuple(parse_address(each) for each in self.bootstrap.split(","))

    def _ask(self, api_key: int, error: Callable[[Any], Any], **values: Any) -> str:
        """The name of the error that the controller answers with. Raises EnvironmentError_ if it does not
        answer while the patience lasts."""
        deadline = time.monotonic() + self.patience_s
        while True:
            try:
                answer = asyncio.run(self._ask_once(api_key, values))
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

    async def _ask_once(self, api_key: int, values: Mapping[str, Any]) -> Any:
        addresses, seen = await look_around(self._addresses, self.access)
        if seen.controller_id not in addresses:
            raise EnvironmentError_(expected="a controller", seen="none that is known", where=self.bootstrap)
        link = Link(addresses[seen.controller_id], self.access)
        try:
            await link.open()
            async with asyncio.timeout(self.request_s + REQUEST_S):
                body = link.dialogue.make(api_key, timeout=self.request_s * 1_000, **values)
                return await link.ask(body)
        finally:
            await link.close()
