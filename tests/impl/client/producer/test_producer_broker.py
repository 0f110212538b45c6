"""What a broker does for idempotent producers: ids that nobody else has, sequence errors as answers,
duplicates acknowledged where they stand."""

from itertools import pairwise

from impl_lab import CLIENT, MILLISECOND, T0, Lab

from fencepost.impl.broker.parts import Parts
from fencepost.impl.broker.producer_ids import BLOCK_SIZE, ProducerIds
from fencepost.impl.core.core_interface import MessageArrived
from fencepost.impl.log.batch.record_batch import Record, encode_batch
from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.replication.log_manager import PRODUCER_EXPIRATION_MS
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Create, Data, GetData, SetData
from fencepost.traces.events import Name
from fencepost.traces.kafka_names.outcomes import ErrorCode

PRODUCER = 5


def batch(value: int, sequence: int, epoch: int = 0) -> bytes:
    """A produced batch of one record."""
    return encode_batch(
        [Record(0, 0, None, b"%d" % value)],
        base_offset=0,
        leader_epoch=-1,
        producer_id=PRODUCER,
        producer_epoch=epoch,
        base_sequence=sequence,
    )


class Producing(Lab):
    """A lab with a client that sends numbered batches."""

    correlation = 10_000

    def send(self, node: int, value: int, sequence: int, *, epoch: int = 0, acks: int = 1):
        """Its answer, None if it waits."""
        self.correlation += 1
        return self.ask(
            node,
            kafka.ProduceRequest(
                correlation_id=self.correlation,
                partition=T0,
                acks=acks,
                records=batch(value, sequence, epoch),
                timeout=5_000 * MILLISECOND,
            ),
        )

    def ids(self, node: int, count: int = 1) -> list[int]:
        """Ids that the broker gives."""
        given = []
        for _ in range(count):
            self.correlation += 1
            answer = self.ask(node, kafka.InitProducerIdRequest(correlation_id=self.correlation))
            assert (answer.error, answer.producer_epoch) == (ErrorCode.NONE, 0)
            given.append(answer.producer_id)
        return given

    def answers_of(self, kind: type) -> list:
        """What clients were told."""
        return [mail.message for mail in self.answers if isinstance(mail.message, kind)]


def led(*, epochs: int = 1) -> Producing:
    """Broker 1 leads t-0 alone in the ISR."""
    lab = Producing()
    for epoch in range(epochs):
        lab.lead(1, epoch, isr=(1,))
    return lab


# ---- duplicates and gaps


def test_a_duplicate_is_acknowledged_where_it_stands_and_nothing_is_written():
    """Rule (R10): a retry gets the offset and the epoch of the batch in the log; neither log nor trace shows
    it twice."""
    lab = led()
    assert lab.send(1, 11, 0).base_offset == 0
    assert lab.send(1, 12, 1).base_offset == 1
    lab.lead(1, 3, isr=(1,))
    again = lab.send(1, 11, 0)
    assert (again.error, again.base_offset, again.leader_epoch) == (ErrorCode.NONE, 0, 0)
    assert lab.send(1, 13, 2).leader_epoch == 3
    assert lab.values(1) == [11, 12, 13]
    assert [event.values for event in lab.recorded(Name.APPENDED, 1)] == [(11,), (12,), (13,)]


def test_a_duplicate_with_acks_all_waits_for_its_own_batch_only():
    """Rule: it is answered when the high watermark has passed the batch, not the end of the log."""
    lab = Producing()
    lab.lead(1, 0, isr=(1, 2, 3))
    lab.send(1, 11, 0)
    lab.advance(1_500, settle=True)
    assert lab.high_watermark(1) == 1
    lab.send(1, 12, 1)
    again = lab.send(1, 11, 0, acks=-1)
    assert again is not None and again.base_offset == 0
    assert lab.send(1, 12, 1, acks=-1) is None


def test_gaps_and_old_epochs_are_answers_and_leave_the_log_alone():
    """Rule: OUT_OF_ORDER_SEQUENCE_NUMBER for a gap, INVALID_PRODUCER_EPOCH for an earlier epoch, a new epoch
    begins at 0."""
    lab = led()
    lab.send(1, 11, 0)
    assert lab.send(1, 13, 2).error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert lab.send(1, 13, 4, epoch=1).error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert lab.send(1, 13, 0, epoch=1).base_offset == 1
    assert lab.send(1, 12, 1).error is ErrorCode.INVALID_PRODUCER_EPOCH
    assert lab.values(1) == [11, 13]


def test_the_new_leader_knows_what_the_old_one_wrote():
    """Rule (R10): the state is part of the log, so that a retry after a fail-over is no duplicate."""
    lab = Producing()
    lab.lead(1, 0, isr=(1, 2, 3))
    lab.send(1, 11, 0)
    lab.send(1, 12, 1)
    lab.advance(1_500, settle=True)
    lab.crash(1)
    lab.lead(2, 1, isr=(2, 3))
    assert lab.send(2, 12, 1).base_offset == 1 and lab.send(2, 13, 2).base_offset == 2
    assert lab.values(2) == [11, 12, 13]


def test_a_restarted_leader_knows_its_producers():
    """Rule (R10): the state survives a crash of the process."""
    lab = led()
    lab.send(1, 11, 0)
    lab.restart(1)
    lab.lead(1, 1, isr=(1,))
    assert lab.send(1, 11, 0).base_offset == 0
    assert lab.send(1, 13, 2).error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_silent_producer_is_forgotten_after_a_day():
    """Rule (producer.id.expiration.ms): what a log remembers of producers is bounded; one that comes back may
    go on anywhere."""
    lab = led()
    lab.send(1, 11, 0)
    lab.now += (PRODUCER_EXPIRATION_MS - 60_000) * MILLISECOND
    lab.core(1).broker_context.now = lab.now
    lab.core(1).log_manager.retain()
    assert PRODUCER in lab.partition(1).log.producers.producers
    lab.now += 120_000 * MILLISECOND
    lab.core(1).broker_context.now = lab.now
    lab.core(1).log_manager.retain()
    assert lab.send(1, 12, 7).base_offset == 1


# ---- ids


def stored(lab: Producing) -> znodes.ProducerIdBlock:
    """The block that was claimed last."""
    reply = lab.tree.apply(0, GetData(znodes.PRODUCER_IDS)).reply
    assert isinstance(reply, Data)
    return znodes.decode_producer_id_block(reply.data)


def test_brokers_hand_out_disjoint_blocks():
    """Rule (docs/spec/cluster.md Z): a block is claimed by one broker, 1,000 ids at a time, and the next one
    begins behind it."""
    lab = Producing()
    assert lab.ids(1, 3) == [0, 1, 2]
    assert stored(lab) == znodes.ProducerIdBlock(1, 0, BLOCK_SIZE - 1)
    assert lab.ids(2, 2) == [1000, 1001] and lab.ids(1) == [3]
    assert lab.ids(1, BLOCK_SIZE - 3)[-2:] == [999, 2000]
    raw = lab.tree.node(znodes.PRODUCER_IDS).data
    assert raw == b'{"version":1,"broker":1,"block_start":"2000","block_end":"2999"}'


def test_a_restarted_broker_never_gives_an_id_again():
    """Rule: what was left of a block is lost with the process."""
    lab = Producing()
    assert lab.ids(1) == [0]
    lab.restart(1)
    assert lab.ids(1) == [BLOCK_SIZE]


def race(parts: Parts) -> list[int]:
    """Two brokers claim at the same time; the second has read before the first wrote."""
    lab = Producing(parts=parts)
    lab.ids(3)
    for node in (1, 2):
        lab.hold_zookeeper(node)
        lab.step(node, MessageArrived(CLIENT, kafka.InitProducerIdRequest(correlation_id=node)))
    for node in (1, 2, 1, 2):
        lab.release_zookeeper(node, 1)
    for node in (1, 2):
        lab.release_zookeeper(node)
    return [answer.producer_id for answer in lab.answers_of(kafka.InitProducerIdResponse)][1:]


class ClaimsAnyway(ProducerIds):
    """Writes over whatever stands there."""

    def fenced_claim(self, mine, current):
        """Unconditional."""
        written = super().fenced_claim(mine, current)
        return SetData(written.path, written.data) if isinstance(current, Data) else written


def test_two_brokers_that_claim_at_once_get_different_blocks():
    """Rule (fenced_claim): the later write fails against the version that it read; without that both give the
    same ids."""
    assert sorted(race(Parts())) == [BLOCK_SIZE, 2 * BLOCK_SIZE]
    assert race(Parts(producer_ids=ClaimsAnyway)) == [BLOCK_SIZE, BLOCK_SIZE]


def test_a_claim_whose_reply_was_lost_is_recognised():
    """Rule: the block that stands there is mine if it says what I wrote; no ids are skipped, none is given
    twice."""
    lab = Producing()
    lab.ids(2)
    lab.drivers[1].replies_to_lose = 1
    assert lab.ids(1) == [BLOCK_SIZE] and stored(lab).start == BLOCK_SIZE


def test_the_first_claim_creates_the_node():
    """Rule: whoever comes second meets it there, also between its read and its write."""
    lab = Producing()
    lab.hold_zookeeper(1)
    lab.step(1, MessageArrived(CLIENT, kafka.InitProducerIdRequest(correlation_id=1)))
    lab.release_zookeeper(1, 1)
    block = znodes.encode_producer_id_block(znodes.ProducerIdBlock(9, 0, 41))
    lab.admin(Create(znodes.PRODUCER_IDS, block))
    lab.release_zookeeper(1)
    (answer,) = lab.answers_of(kafka.InitProducerIdResponse)
    assert answer.producer_id == 42


def test_ids_wait_for_zookeeper():
    """Rule: without a claimed block nothing is given; when ZooKeeper answers, every request gets its own."""
    lab = Producing()
    lab.hold_zookeeper(1)
    for correlation_id in range(1, 5):
        lab.step(1, MessageArrived(CLIENT, kafka.InitProducerIdRequest(correlation_id=correlation_id)))
    assert lab.answers_of(kafka.InitProducerIdResponse) == []
    lab.release_zookeeper(1)
    given = [answer.producer_id for answer in lab.answers_of(kafka.InitProducerIdResponse)]
    assert given == [0, 1, 2, 3] and all(one < two for one, two in pairwise(given))
