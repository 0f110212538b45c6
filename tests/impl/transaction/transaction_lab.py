"""Two brokers, one partition of everything, and producers by hand: each request is a call, its answer a
value."""

from typing import Any, Self

from impl_lab import CLIENT, Lab

from fencepost.impl.broker.broker import Broker
from fencepost.impl.log.batch.record_batch import Record, encode_batch
from fencepost.impl.messages import broker_api, group_api
from fencepost.impl.messages import transaction_api as kafka
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.impl.transaction.transaction import Transaction
from fencepost.traces.kafka_names.internal_topics import OFFSETS_TOPIC, STATE_TOPIC
from fencepost.traces.plan import GroupOptions, TopicOptions, TransactionOptions

STATE, OFFSETS, OUT = (
    TopicPartition(STATE_TOPIC, 0),
    TopicPartition(OFFSETS_TOPIC, 0),
    TopicPartition("out", 0),
)
BROKERS = (1, 2)
TIMEOUT_MS = 5_000


class TransactionLab(Lab):
    """Broker 1 leads everything in epoch 0; broker 2 follows."""

    def __init__(self, *, transactions: dict[str, Any] | None = None, **options: Any) -> None:
        options = {"replica_fetch_wait_max_ms": 50} | options
        super().__init__(
            2,
            topic=TopicOptions(name="out", replication_factor=2),
            groups=GroupOptions(offsets_topic_partitions=1, initial_rebalance_delay_ms=0),
            transactions=TransactionOptions(
                **({"state_topic_partitions": 1, "abort_check_ms": 100} | (transactions or {}))
            ),
            **options,
        )
        for key in (OUT, OFFSETS, STATE):
            self.elect(1, 0, key=key)
        self.rest()

    def elect(self, leader: int, epoch: int, key: TopicPartition = STATE) -> Self:
        """Another leader, of which both brokers hear."""
        self.lead(leader, epoch, isr=BROKERS, replicas=BROKERS, live=BROKERS, key=key)
        return self

    def rest(self, milliseconds: int = 300) -> Self:
        """Everything arrives."""
        return super().rest(milliseconds)

    def known(self, node: int = 1, name: str = "a") -> Transaction:
        """What a coordinator has in memory."""
        core = self.core(node)
        assert isinstance(core, Broker)
        return core.transactions.coordinator.table.transactions[name]

    def send(self, node: int, request: Any) -> Any:
        """Send a request, let everything arrive, and return its answer (None: there is none yet)."""
        begin = len(self.answers)
        self.ask(node, request)
        self.rest()
        return self._answer_to(request, begin)

    # ---- requests

    def init(self, node: int = 1, name: str = "a", producer: tuple[int, int] = (-1, -1)) -> Any:
        """InitProducerId."""
        return self.send(
            node,
            kafka.InitProducerIdRequest(
                correlation_id=self.number(),
                transactional_id=name,
                transaction_timeout_ms=TIMEOUT_MS,
                producer_id=producer[0],
                producer_epoch=producer[1],
            ),
        )

    def add(self, producer: Any, *keys: TopicPartition, node: int = 1, verify_only: bool = False) -> Any:
        """AddPartitionsToTxn. producer: an answer to `init`."""
        request = kafka.AddPartitionsToTxnRequest(
            correlation_id=self.number(),
            transactional_id="a",
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            partitions=keys or (OUT,),
            verify_only=verify_only,
        )
        return self.send(node, request).error

    def end(self, producer: Any, *, commit: bool = True, node: int = 1, version: int = 1) -> Any:
        """EndTxn."""
        return self.send(
            node,
            kafka.EndTxnRequest(
                correlation_id=self.number(),
                transactional_id="a",
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                commit=commit,
                version=version,
            ),
        )

    def produce(
        self, producer: Any, value: int, sequence: int = 0, *, node: int = 1, adds: bool = False
    ) -> Any:
        """One transactional record."""
        return self.send(node, self.batch(producer, value, sequence, adds=adds))

    def batch(self, producer: Any, value: int, sequence: int = 0, *, adds: bool = False) -> Any:
        """The request of `produce`."""
        data = encode_batch(
            [Record(0, 1_000, None, b"%d" % value)],
            base_offset=0,
            leader_epoch=-1,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            base_sequence=sequence,
            transactional=True,
        )
        return broker_api.ProduceRequest(
            correlation_id=self.number(),
            partition=OUT,
            acks=-1,
            records=data,
            timeout=10**9,
            transactional_id="a",
            adds_partition=adds,
        )

    def commit_offset(self, producer: Any, offset: int, **member: Any) -> Any:
        """AddOffsetsToTxn, then TxnOffsetCommit of out-0 in the group g."""
        names = {
            "transactional_id": "a",
            "producer_id": producer.producer_id,
            "producer_epoch": producer.producer_epoch,
            "group_id": "g",
        }
        added = self.send(1, kafka.AddOffsetsToTxnRequest(correlation_id=self.number(), **names))
        if added.error.value != "NONE":
            return added.error
        offsets = (group_api.CommittedOffset(partition=OUT, offset=offset),)
        request = kafka.TxnOffsetCommitRequest(
            correlation_id=self.number(), offsets=offsets, **names, **member
        )
        return self.send(1, request).error

    def committed(self, node: int = 1, *, stable: bool = True) -> Any:
        """The offset of the group g, or the error."""
        request = group_api.OffsetFetchRequest(
            correlation_id=self.number(), group_id="g", partitions=(OUT,), require_stable=stable
        )
        answer = self.send(node, request)
        return answer.error if answer.error.value != "NONE" else answer.offsets[0].offset

    def read(self, node: int = 1) -> Any:
        """What a reader of committed records is answered from offset 0 on."""
        wanted = broker_api.FetchPartition(partition=OUT, offset=0)
        request = broker_api.FetchRequest(
            correlation_id=self.number(),
            replica_id=-1,
            max_wait=0,
            max_bytes=1 << 20,
            partitions=(wanted,),
            read_committed=True,
        )
        return self.send(node, request).partitions[0]


__all__ = ["CLIENT", "OFFSETS", "OUT", "STATE", "TransactionLab"]
