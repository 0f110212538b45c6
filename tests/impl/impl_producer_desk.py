"""A producer by hand: what it sent, its timers, what it completed; and a log that answers as a broker's
does."""

from typing import Any

from attrs import evolve

from fencepost.impl.client.leader_metadata import ClientMetadata
from fencepost.impl.client.partitioners import make_partitioner
from fencepost.impl.client.producer.producer import make_producer
from fencepost.impl.client.producer.sequences import Sequences
from fencepost.impl.core import core_interface
from fencepost.impl.log.batch.record_batch import read_header, read_records
from fencepost.impl.log.values import value_of
from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.traces.kafka_names.outcomes import ErrorCode
from fencepost.traces.operations import Operation
from fencepost.traces.plan import ClientOptions, ProducerOptions

MILLISECOND = 1_000_000
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class ProducerDesk:
    """now: host time. open: produce requests that nobody answered, oldest first."""

    def __init__(
        self,
        *,
        partitioner: str = "key_hash",
        known: bool = True,
        sequences: type[Sequences] = Sequences,
        client: ClientOptions | None = None,
        **options: Any,
    ) -> None:
        options = {"pipelined": True} | options
        self.options = evolve(client or ClientOptions(), producer=ProducerOptions(**options))
        self.metadata = ClientMetadata((1, 2, 3))
        self.producer = make_producer(
            0, self.options, self.metadata, make_partitioner(partitioner), sequences
        )
        self.now = 0
        self.sent: list[tuple[int, Any]] = []
        self.open: list[kafka.ProduceRequest] = []
        self.timers: dict[Any, int] = {}
        self.done: list[Operation] = []
        self.events: list[core_interface.RecordEvent] = []
        self.ids = 0
        if known:
            self.lead()

    def lead(self, *leaders: int, epoch: int = 0) -> None:
        """Who leads the partitions of t, from 0 on, as the metadata says."""
        self.metadata.update(self._metadata(0, leaders or (1, 2), epoch))

    @staticmethod
    def _metadata(correlation_id: int, leaders: tuple[int, ...], epoch: int) -> kafka.MetadataResponse:
        entries = tuple(
            kafka.PartitionMetadata(partition=TopicPartition("t", number), leader=leader, leader_epoch=epoch)
            for number, leader in enumerate(leaders)
        )
        return kafka.MetadataResponse(
            correlation_id=correlation_id, partitions=entries, live_brokers=(1, 2, 3)
        )

    def step(self, input: Any) -> None:
        for effect in self.producer.step(input, self.now):
            if isinstance(effect, core_interface.Send):
                self.sent.append((effect.target, effect.message))
                if isinstance(effect.message, kafka.ProduceRequest):
                    self.open.append(effect.message)
            elif isinstance(effect, core_interface.SetTimer):
                self.timers[effect.key] = effect.at
            elif isinstance(effect, core_interface.CancelTimer):
                self.timers.pop(effect.key, None)
            elif isinstance(effect, core_interface.RecordEvent):
                self.events.append(effect)
            else:
                assert isinstance(effect, core_interface.Complete), effect
                self.done.append(effect.operation)

    def append(self, *values: bytes, partition: int = 0, key: bytes | None = None, acks: int = -1) -> int:
        """Send records; returns the op id."""
        self.ids += 1
        ids = tuple(self.ids * 1000 + index for index in range(len(values) or 1))
        self.step(
            core_interface.Produce(
                op_id=self.ids,
                topic="t",
                partition=partition,
                key=key,
                values=values or (b"%d" % ids[0],),
                value_ids=ids,
                acks=acks,
            )
        )
        return self.ids

    # ---- time

    def fire(self) -> Any:
        """Let time pass until the next timer; returns its key."""
        key = min(self.timers, key=lambda timer: (self.timers[timer], timer))
        self.now = max(self.now, self.timers.pop(key))
        self.step(core_interface.TimerFired(key))
        return key

    def fire_all(self, kind: str) -> None:
        """Let time pass until no timer of this kind is left."""
        while any(key[0] == kind for key in self.timers):
            self.fire()

    # ---- answers

    def answer_metadata(self, *leaders: int, epoch: int = 0) -> None:
        """Answer the request that was sent last."""
        request = self.sent[-1][1]
        assert isinstance(request, kafka.MetadataRequest), request
        self._arrive(self._metadata(request.correlation_id, leaders or (1, 2), epoch))

    def answer_id(self, producer_id: int = 7) -> None:
        """Give it a producer id."""
        request = next(
            message for _, message in reversed(self.sent) if isinstance(message, kafka.InitProducerIdRequest)
        )
        self._arrive(
            kafka.InitProducerIdResponse(
                correlation_id=request.correlation_id,
                error=ErrorCode.NONE,
                producer_id=producer_id,
                producer_epoch=0,
            )
        )

    def answer(
        self, error: ErrorCode = ErrorCode.NONE, base_offset: int = -1, *, which: int = 0
    ) -> kafka.ProduceRequest:
        """Answer one of the open produce requests."""
        request = self.open.pop(which)
        self._arrive(
            kafka.ProduceResponse(
                correlation_id=request.correlation_id, error=error, base_offset=base_offset, leader_epoch=4
            )
        )
        return request

    def _arrive(self, message: Any) -> None:
        self.step(core_interface.MessageArrived(1, message))

    # ---- looking

    def numbers(self, which: int = -1) -> tuple[int, int, int]:
        """(producer id, epoch, sequence) of one of the open requests."""
        header = read_header(self.open[which].records)
        return header.producer_id, header.producer_epoch, header.base_sequence

    def values(self, which: int = -1) -> list[int]:
        """The value ids of one of the open requests."""
        data = self.open[which].records
        return [value_of(record) for record in read_records(data, read_header(data))]
