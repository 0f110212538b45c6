"""A producer against a log and a network that lose, delay, overtake and forget: nothing is written twice,
nothing out of order, every append is decided.

The log is the broker's own producer state over a list; the rest is drawn from a seed. The same histories find
each planted fault of the producer's side.
"""

import random

import pytest
from impl_producer_desk import MILLISECOND, ProducerDesk

from fencepost.bugs.producer.numbers import (
    NumbersAgainOutOfOrder,
    NumbersHalvesAlike,
    SendsAgainUnderANewEpoch,
)
from fencepost.impl.client.producer.sequences import Sequences
from fencepost.impl.core.core_interface import MessageArrived
from fencepost.impl.log.batch.record_batch import read_header, read_records, with_leader_fields
from fencepost.impl.log.producer.producer_state import (
    REMEMBERED_BATCHES,
    InvalidProducerEpochError,
    OutOfOrderSequenceError,
    ProducerState,
)
from fencepost.impl.log.values import value_of
from fencepost.impl.messages import broker_api as kafka
from fencepost.traces.kafka_names.outcomes import ErrorCode
from fencepost.traces.operations import Outcome
from fencepost.traces.plan import ClientOptions

SEEDS = range(60)
MOST_STEPS = 4_000
LIMITS = (80, 100, 1 << 20)
"""max.message.bytes, which moves in every other history: a batch of one record, of two, of any number."""


class Log:
    """One partition of a leader: values in order, and what it remembers of its producers."""

    def __init__(self) -> None:
        self.values: list[int] = []
        self.state = ProducerState()
        self.largest = 1 << 20

    def append(self, request: kafka.ProduceRequest) -> tuple[ErrorCode, int]:
        """What a leader answers: the error, and where the batch stands (-1: nowhere)."""
        if len(request.records) > self.largest:
            return ErrorCode.MESSAGE_TOO_LARGE, -1
        data = with_leader_fields(request.records, base_offset=len(self.values), leader_epoch=0)
        header = read_header(data)
        try:
            known = self.state.check(header)
        except OutOfOrderSequenceError:
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        except InvalidProducerEpochError:
            return ErrorCode.INVALID_PRODUCER_EPOCH, -1
        if known is not None:
            return ErrorCode.NONE, known.first_offset
        self.state.update(header)
        self.values += [value_of(record) for record in read_records(data, header)]
        return ErrorCode.NONE, header.base_offset

    def restart(self) -> None:
        """As after reading a snapshot: of each producer the last batch only."""
        assert REMEMBERED_BATCHES > 1
        for producer in self.state.producers.values():
            producer.batches = producer.batches[-1:]


class World:
    """A desk, a log for each partition, and messages on their way."""

    def __init__(self, seed: int, sequences: type[Sequences]) -> None:
        self.draw = random.Random(seed)
        client = ClientOptions(
            request_timeout_ms=self.draw.choice([50, 400]),
            delivery_timeout_ms=self.draw.choice([600, 5_000]),
            retry_backoff_ms=20,
        )
        self.desk = ProducerDesk(
            idempotent=True,
            client=client,
            sequences=sequences,
            linger_ms=self.draw.choice([0, 10]),
            batch_bytes=self.draw.choice([1, 200]),
            max_in_flight=self.draw.choice([1, 5]),
        )
        self.logs = [Log(), Log()]
        self.limits = random.Random(seed + 1_000) if seed % 2 else None
        self.loss = self.draw.choice([0, 10, 30])
        self.under_way: list[tuple[int, object]] = []

    def run(self) -> None:
        """Forty appends, among everything else that happens, until all of them are decided."""
        appends = 40
        for _ in range(MOST_STEPS):
            if not appends and self.desk.producer.idle:
                return
            if self.limits is not None and self.limits.randrange(20) == 0:
                self.limits.choice(self.logs).largest = self.limits.choice(LIMITS)
            move = self.draw.randrange(10)
            if appends and move < 3:
                self.desk.append(partition=self.draw.randrange(2))
                appends -= 1
            elif move < 8:
                self.deliver()
            elif move == 8 and self.draw.randrange(6) == 0:
                self.draw.choice(self.logs).restart()
            elif self.desk.timers:
                self.desk.now += self.draw.randrange(5) * MILLISECOND
                self.desk.fire()
        raise AssertionError("the producer never comes to rest")

    def deliver(self) -> None:
        """Take what was sent, perhaps lose it; let one message arrive, any one."""
        sent, self.desk.sent = self.desk.sent, []
        self.desk.open.clear()
        self.under_way += [entry for entry in sent if self.draw.randrange(100) >= self.loss]
        if not self.under_way:
            return
        _, message = self.under_way.pop(self.draw.randrange(len(self.under_way)))
        if isinstance(message, kafka.ProduceRequest):
            self.answer(message)
        elif isinstance(message, kafka.MetadataRequest):
            leaders = tuple(kafka.PartitionMetadata(partition=key, leader=1, leader_epoch=0) for key in KEYS)
            told = kafka.MetadataResponse(
                correlation_id=message.correlation_id, partitions=leaders, live_brokers=(1,)
            )
            self.desk.step(MessageArrived(1, told))
        elif isinstance(message, kafka.InitProducerIdRequest):
            given = kafka.InitProducerIdResponse(
                correlation_id=message.correlation_id, error=ErrorCode.NONE, producer_id=5, producer_epoch=0
            )
            self.desk.step(MessageArrived(1, given))
        else:
            self.desk.step(MessageArrived(1, message))

    def answer(self, request: kafka.ProduceRequest) -> None:
        """The leader acts, or refuses at the door; its answer goes on its way, or is lost."""
        if self.draw.randrange(12) == 0:
            error, offset = ErrorCode.NOT_ENOUGH_REPLICAS, -1
        else:
            error, offset = self.logs[request.partition.partition].append(request)
        answer = kafka.ProduceResponse(
            correlation_id=request.correlation_id, error=error, base_offset=offset, leader_epoch=0
        )
        if self.draw.randrange(100) >= self.loss:
            self.under_way.append((1000, answer))

    def complaints(self) -> list[str]:
        """What no idempotent producer may do."""
        found, rows = [], {row.op_id: row for row in self.desk.done}
        if sorted(rows) != list(range(1, 41)) or len(self.desk.done) != 40:
            found.append("not every append was decided once")
        for number, log in enumerate(self.logs):
            ops = [value // 1000 for value in log.values]
            if len(set(ops)) != len(ops):
                found.append("written twice")
            if ops != sorted(ops):
                found.append("written out of order")
            for row in rows.values():
                if row.partition != number:
                    continue
                if row.outcome is Outcome.OK and ops[row.offset] != row.op_id:
                    found.append("acknowledged where another stands")
                if row.outcome is Outcome.FAIL and row.op_id in ops:
                    found.append("failed, and written")
        return found


KEYS = tuple(kafka.TopicPartition("t", number) for number in range(2))


def complaints_of(seed: int, sequences: type[Sequences] = Sequences) -> list[str]:
    """What is wrong with the history of this seed."""
    world = World(seed, sequences)
    world.run()
    return world.complaints()


def test_nothing_is_written_twice_or_out_of_order() -> None:
    """Rule (KIP-98, KIP-360): in every history each append is decided once, by what the log holds, in the
    order in which it was sent."""
    assert {seed: found for seed in SEEDS if (found := complaints_of(seed))} == {}


class GoesOnCounting(Sequences):
    """After a lost batch the next one takes its number."""

    def lost(self, line, batch):
        """The number is free again."""
        if batch.sequence >= 0 and not line.in_flight:
            line.next_sequence = batch.sequence


class SplitsWhatMayBeWritten(Sequences):
    """Whatever an earlier attempt came to."""

    def may_be_split(self, batch):
        """If there is anything to split."""
        return len(batch.appends) > 1


class SendsAtOnce(Sequences):
    """Does not wait until the log knows it."""

    def first_alone(self, line):
        """Always."""
        return True


@pytest.mark.parametrize(
    ("fault", "complaint"),
    [
        (SendsAtOnce, "written out of order"),
        (SendsAgainUnderANewEpoch, "written twice"),
        (NumbersAgainOutOfOrder, "written out of order"),
        (GoesOnCounting, "acknowledged where another stands"),
        (NumbersHalvesAlike, "acknowledged where another stands"),
        (SplitsWhatMayBeWritten, "written twice"),
    ],
)
def test_the_histories_find_a_planted_fault(fault, complaint) -> None:
    """Rule: what checks nothing proves nothing: each fault of the producer's side shows within these seeds,
    by its own complaint."""
    assert any(complaint in complaints_of(seed, fault) for seed in SEEDS)
