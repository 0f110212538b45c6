"""The lab's counterparts of a broker: a test that plays the controller, and a client by hand. Part of
impl_lab.Lab."""

from collections.abc import Callable
from typing import Any, Self

from impl_driver import CLIENT, MILLISECOND, SCRIPT, T0

from fencepost.impl.core.core_interface import MessageArrived
from fencepost.impl.log.values import batch_of
from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Create, SetData
from fencepost.impl.zookeeper.znodes import LeaderAndIsr


class Counterparts:
    """Requests that a test sends itself, and the answers to them."""

    # ---- the script as controller

    def led(self, leader: int, epoch: int, *isr: tuple[int, ...], **more: Any) -> Self:
        """The same lab, in which a leader leads."""
        self.lead(leader, epoch, *isr, **more)
        return self

    def lead(
        self,
        leader: int,
        epoch: int,
        isr: tuple[int, ...] = (1, 2, 3),
        *,
        to: tuple[int, ...] | None = None,
        replicas: tuple[int, ...] = (1, 2, 3),
        live: tuple[int, ...] = (1, 2, 3),
        controller_epoch: int = 1,
        key: TopicPartition = T0,
    ) -> kafka.LeaderAndIsrRequest:
        """Write the partition's state and tell these brokers (those that are up): UpdateMetadata, then
        LeaderAndIsr. Returns the last request."""
        state = LeaderAndIsr(leader=leader, leader_epoch=epoch, controller_epoch=controller_epoch, isr=isr)
        path, data = znodes.state_path(key), znodes.encode_state(state)
        if self.tree.node(path) is None:
            self.admin(Create(znodes.topic_path(key.topic), znodes.encode_topic({key.partition: replicas})))
            for parent in znodes.partition_paths(key)[:2]:
                self.admin(Create(parent))
            self.admin(Create(path, data))
        else:
            self.admin(SetData(path, data))
        told = kafka.PartitionState(
            partition=key,
            controller_epoch=controller_epoch,
            leader=leader,
            leader_epoch=epoch,
            isr=isr,
            zk_version=self.state(key).zk_version,
            replicas=replicas,
        )
        request = None
        for node in to if to is not None else [node for node in self.drivers if self.drivers[node].core]:
            for kind in (kafka.UpdateMetadataRequest, kafka.LeaderAndIsrRequest):
                request = self.control(kind, node, (told,), controller_epoch=controller_epoch, live=live)
        assert request is None or isinstance(request, kafka.LeaderAndIsrRequest)
        return request

    def control(
        self,
        kind: Callable[..., Any],
        node: int,
        partitions: tuple[Any, ...],
        *,
        controller_epoch: int = 1,
        broker_epoch: int | None = None,
        live: tuple[int, ...] = (1, 2, 3),
        correlation_id: int | None = None,
    ) -> Any:
        """Send one control request at once; returns it."""
        self._correlation_id += 1
        members: dict[str, Any] = {
            "correlation_id": self._correlation_id if correlation_id is None else correlation_id,
            "controller_id": SCRIPT,
            "controller_epoch": controller_epoch,
            "broker_epoch": self.core(node).broker_context.broker_epoch
            if broker_epoch is None
            else broker_epoch,
            "partitions": partitions,
        }
        if kind is not kafka.StopReplicaRequest:
            members["live_brokers"] = live
        request = kind(**members)
        self.step(node, MessageArrived(SCRIPT, request))
        return request

    # ---- a client by hand

    def ask(self, node: int, request: Any) -> Any:
        """Send a client's request; returns the answer if it came in the same step, else None."""
        before = len(self.answers)
        self.step(node, MessageArrived(CLIENT, request))
        return self._answer_to(request, before)

    def number(self) -> int:
        """A fresh correlation id."""
        self._correlation_id += 1
        return -self._correlation_id

    def rest(self, milliseconds: int = 200) -> Self:
        """Everything arrives."""
        return self.settle().advance(milliseconds, settle=True)

    def come_to_rest(self, milliseconds: int = 12_000) -> Self:
        """The same, for as long as time-outs of fetches and ISRs take."""
        return self.rest(milliseconds)

    def send(self, node: int, request: Any) -> "Asked":
        """Send a request; its answer may come later."""
        return Asked(self, node, request)

    def _answer_to(self, request: Any, begin: int = 0) -> Any:
        for mail in self.answers[begin:]:
            if mail.target == CLIENT and mail.message.correlation_id == request.correlation_id:
                return mail.message
        return None

    def produce(self, node: int, *values: int, acks: int = 1, timeout_ms: int = 5_000) -> Any:
        """Append a batch as a client; returns the answer if there is one already."""
        return self.ask(
            node,
            kafka.ProduceRequest(
                correlation_id=values[0],
                partition=T0,
                acks=acks,
                records=batch_of(values),
                timeout=timeout_ms * MILLISECOND,
            ),
        )

    def replicate(self, node: int, *values: int, **more: Any) -> None:
        """`produce`, and let everything arrive."""
        self.produce(node, *values, **more)
        self.settle()

    def produced(self, value: int) -> Any:
        """The answer to `produce` of a batch that begins with this value; None if it has not come."""
        answers = [
            mail.message
            for mail in self.answers
            if isinstance(mail.message, kafka.ProduceResponse) and mail.message.correlation_id == value
        ]
        assert len(answers) <= 1, answers
        return answers[0] if answers else None

    def fetch(
        self, node: int, offset: int, *, epoch: int = -1, replica: int = -1, max_wait_ms: int = 0
    ) -> Any:
        """Fetch one partition; returns its part of the answer."""
        self._correlation_id += 1
        request = kafka.FetchRequest(
            correlation_id=-self._correlation_id,
            replica_id=replica,
            max_wait=max_wait_ms * MILLISECOND,
            max_bytes=1_000_000,
            partitions=(kafka.FetchPartition(partition=T0, offset=offset, leader_epoch=epoch),),
        )
        answer = self.ask(node, request)
        return answer.partitions[0] if answer else None

    def list_offsets(self, node: int, epoch: int = -1) -> Any:
        """ListOffsets as a client."""
        self._correlation_id += 1
        return self.ask(
            node,
            kafka.ListOffsetsRequest(correlation_id=-self._correlation_id, partition=T0, leader_epoch=epoch),
        )


class Asked:
    """A client's request, and its answer if it has come."""

    def __init__(self, lab: Any, node: int, request: Any) -> None:
        self.lab, self.request, self.begin = lab, request, len(lab.answers)
        lab.ask(node, request)

    @property
    def answers(self) -> list[Any]:
        """All that came: one at most, or something is wrong."""
        number = self.request.correlation_id
        return [
            mail.message for mail in self.lab.answers[self.begin :] if mail.message.correlation_id == number
        ]

    @property
    def answer(self) -> Any:
        """None if it has not come."""
        assert len(self.answers) <= 1, self.answers
        return self.answers[0] if self.answers else None
