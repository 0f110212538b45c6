"""What the rows of a transaction say when it ends badly."""

from types import SimpleNamespace

import pytest

from fencepost.impl.client.consumer.fetch import ConsumedRecord
from fencepost.impl.client.consumer.requests import ConsumerDesk, ConsumerIdentity
from fencepost.impl.client.leader_metadata import ClientMetadata
from fencepost.impl.client.producer.producer import LATE_SEND_REFUSED
from fencepost.impl.client.transaction.errors import AbortableError, FatalError
from fencepost.impl.client.transaction.transactional_producer import KEPT_BACK, TransactionalProducer
from fencepost.impl.client.transaction.transform import TransformLoop
from fencepost.impl.core.core_interface import RecordEvent, Send
from fencepost.impl.log.batch.record_batch import Record, read_header
from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.messages import transaction_api
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.events import Name
from fencepost.traces.kafka_names.outcomes import ErrorCode
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.plan import MILLION, ConsumerOptions, TransformOptions

ANSWERS = {
    kafka.ProduceRequest: kafka.ProduceResponse,
    transaction_api.EndTxnRequest: transaction_api.EndTxnResponse,
}


class Desk:
    """Takes rows down. rows: the outcome of each, by function."""

    now = 0

    def __init__(self):
        self.rows = {}

    def next_operation(self):
        """Of the next row."""
        return 7

    def partitions(self, topics):
        """Of the output."""
        return dict.fromkeys(topics, 1)

    def begin(self, function, **columns):
        """A row."""
        columns.pop("group", None)
        return Operation(
            op_id=7, process=0, function=function, invoke_time=0, outcome=Outcome.UNKNOWN, **columns
        )

    def heard(self, row):
        """Of no interest."""

    def end(self, row, outcome, error=None):
        """What became of it."""
        self.rows[row.function] = outcome


class Ended:
    """A producer whose transaction was ended by somebody else: its EndTxn is refused. after: the verb that
    hears of it."""

    producer_id, producer_epoch, sequences = 1, 0, {}

    def __init__(self, after):
        self.after = after

    def _verb(self, name, answer=None):
        yield
        if name == self.after:
            raise FatalError(ErrorCode.INVALID_TXN_STATE, name)
        return answer

    def send(self, key, records):
        """Produce."""
        return self._verb("send", SimpleNamespace(base_offset=0, leader_epoch=0, log_start_offset=0))

    def send_offsets(self, group, offsets):
        """TxnOffsetCommit."""
        return self._verb("send_offsets", SimpleNamespace(coordinator_epoch=0))

    def decide(self, *, commit):
        """EndTxn."""
        return self._verb("decide")

    def run(self, verb, outcome):
        """At once."""
        try:
            for _ in verb:
                pass
        except FatalError as error:
            outcome(None, error)


@pytest.mark.parametrize(
    ("after", "aborts_ppm", "outcome"),
    [
        ("decide", 0, Outcome.UNKNOWN),
        ("decide", MILLION, Outcome.FAIL),
        ("send_offsets", 0, Outcome.FAIL),
        ("send", 0, Outcome.FAIL),
    ],
)
def test_what_nobody_asked_to_commit_has_failed(after, aborts_ppm, outcome):
    """Rule (KIP-98): only an EndTxn that commits makes records visible. Before one was sent they may never
    be, also if the broker says that there is no transaction to abort; that is how the late EndTxn of an
    earlier one shows (KAFKA-17754). Once it was sent, nobody knows."""
    desk = Desk()
    consumer = SimpleNamespace(
        desk=desk,
        identity=SimpleNamespace(group="g", instance_id=None, session=0),
        coordinator=SimpleNamespace(held=1, member_id="m", known_as="m"),
        close=lambda: None,
        sleep=lambda milliseconds: None,
    )
    loop = TransformLoop("id", TransformOptions(output="out", aborts_ppm=aborts_ppm), 1, Ended(after))
    source = ConsumedRecord(TopicPartition("t", 0), Record(0, 0, None, b"1"), 0)
    loop.polled(consumer, [source])
    assert desk.rows[Function.TXN] is desk.rows[Function.APPEND] is outcome


@pytest.mark.parametrize("kept_back", [False, True])
@pytest.mark.parametrize(("error", "marks"), [(ErrorCode.NONE, 0), (ErrorCode.INVALID_PRODUCER_EPOCH, 1)])
def test_a_batch_is_sent_on_purpose_when_its_transaction_has_ended(error, marks, kept_back):
    """Rule (KIP-890): the last batch goes to its leader once more; one that was kept back goes now, for the
    first time, and the producer has another epoch. A refusal is taken down, and nothing waits for it."""
    key, metadata, ended = TopicPartition("t", 0), ClientMetadata((1,)), []
    led = kafka.PartitionMetadata(partition=key, leader=3, leader_epoch=0)
    metadata.update(kafka.MetadataResponse(correlation_id=0, partitions=(led,), live_brokers=(3,)))
    desk = ConsumerDesk(ConsumerIdentity(process=0, group="g", topics=()), ConsumerOptions(), metadata)
    producer = TransactionalProducer(
        desk=desk, transactional_id="id", version=2, coordinator=1, producer_id=7, producer_epoch=0
    )
    producer.late_sends, producer.batches = True, KEPT_BACK - 1 if kept_back else 0

    def answered(**answer):
        """The request that was sent last, which is answered."""
        send = next(one for one in reversed(desk.outbox) if isinstance(one, Send))
        desk.answered(ANSWERS[type(send.message)](correlation_id=send.message.correlation_id, **answer))
        return send

    producer.run(producer.send(key, [Record(0, 0, None, b"1")]), lambda *end: ended.append(end))
    if not kept_back:
        answered(error=ErrorCode.NONE, base_offset=0)
    assert [type(why) for _, why in ended] == [AbortableError if kept_back else type(None)]
    producer.run(producer.end(commit=not kept_back), lambda *end: ended.append(end))
    answered(error=ErrorCode.NONE, producer_id=7, producer_epoch=1)
    assert ended[1:] == [(None, None)]
    late = answered(error=error)
    header = read_header(late.message.records)
    assert (late.target, header.producer_epoch, header.base_sequence) == (3, 0, 0)
    events = [one for one in desk.outbox if isinstance(one, RecordEvent)]
    assert events == [RecordEvent(Name.MARK, {"cause": LATE_SEND_REFUSED})] * marks


def test_other_options_hold_for_the_producer_that_is_there():
    """Rule: who settles gives no batch up and keeps none back from now on."""
    producer = SimpleNamespace(attempts=1, late_sends=True)
    loop = TransformLoop("id", TransformOptions(attempts=1, late_sends=True), 1, producer)
    loop.go_on_with(TransformOptions(attempts=20))
    assert (producer.attempts, producer.late_sends) == (20, False)
