"""Numbers of an idempotent producer: order in flight, what a lost batch means for those behind it, and that
nothing is written twice."""

import pytest
from impl_producer_desk import MILLISECOND, T0, ProducerDesk

from fencepost.impl.client.producer.accumulator import Line, ProducerBatch
from fencepost.impl.client.producer.producer import LATE_SEND_REFUSED, REMEMBERED
from fencepost.impl.client.producer.sequences import LARGEST_EPOCH, Sequences
from fencepost.impl.client.producer_requests import METADATA
from fencepost.impl.core.core_interface import Produce
from fencepost.traces.kafka_names.outcomes import ErrorCode
from fencepost.traces.operations import Outcome
from fencepost.traces.plan import ClientOptions

PATIENT = ClientOptions(delivery_timeout_ms=600_000, request_timeout_ms=1_000, retry_backoff_ms=50)
OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def desk_with(batches: int, client: ClientOptions = PATIENT, **options) -> ProducerDesk:
    """A producer with an id that the log knows, and so many batches of one record in flight to t-0."""
    desk = ProducerDesk(idempotent=True, batch_bytes=1, client=client, **options)
    desk.producer.accumulator.line(T0).introduced = True
    for _ in range(batches):
        desk.append()
    desk.answer_id()
    return desk


def go_on(desk: ProducerDesk) -> None:
    """Let the back-off pass, and answer metadata."""
    desk.fire_all("produce_retry")
    if METADATA in desk.producer.asking.asked:
        desk.answer_metadata()


def test_nothing_is_sent_before_there_is_an_id():
    """Rule: a batch without a number cannot be told from its retry."""
    desk = ProducerDesk(idempotent=True)
    desk.append()
    assert desk.open == []
    desk.answer_id(41)
    assert desk.numbers() == (41, 0, 0)


def test_numbers_count_records_in_each_partition():
    """Rule (KIP-98): the next batch begins where the last one ended; each partition counts for itself."""
    desk = ProducerDesk(idempotent=True, batch_bytes=1)
    desk.append(b"a", b"b")
    desk.append()
    desk.append(partition=1)
    desk.answer_id()
    assert [desk.numbers(which) for which in range(2)] == [(7, 0, 0), (7, 0, 0)]
    desk.answer(base_offset=0)
    assert desk.numbers() == (7, 0, 2)


def test_acks_other_than_all_carry_no_number():
    """Rule: idempotence is promised with acks=all only."""
    desk = ProducerDesk(idempotent=True)
    desk.append(acks=1)
    assert desk.numbers() == (-1, -1, -1)


def test_a_retry_keeps_its_number_and_its_place():
    """Rule: the log recognises a retry by (producer id, epoch, sequence)."""
    desk = desk_with(2)
    desk.answer(ErrorCode.REQUEST_TIMED_OUT, base_offset=0)
    desk.answer(OUT_OF_ORDER)
    assert desk.open == [] and desk.done == []
    go_on(desk)
    assert (desk.numbers(0), desk.values(0), len(desk.open)) == ((7, 0, 0), [1000], 1)


def test_retries_go_out_one_after_the_other():
    """Rule (KAFKA-5494): a batch that is sent again waits until those before it are decided."""
    desk = desk_with(3)
    for _ in range(3):
        desk.answer(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    go_on(desk)
    assert [desk.values(which) for which in range(len(desk.open))] == [[1000]]
    desk.answer(base_offset=0)
    assert [desk.values(which) for which in range(len(desk.open))] == [[2000]]
    desk.answer(base_offset=1)
    desk.answer(base_offset=2)
    assert [row.offset for row in desk.done] == [0, 1, 2]


def test_a_batch_that_overtook_is_only_sent_again():
    """Rule: OUT_OF_ORDER for a batch behind an undecided one says nothing is lost: same epoch, same
    number."""
    desk = desk_with(2)
    desk.answer(OUT_OF_ORDER, which=1)
    desk.answer(base_offset=0)
    go_on(desk)
    assert desk.numbers() == (7, 0, 1)
    desk.answer(base_offset=1)
    assert [row.outcome for row in desk.done] == [Outcome.OK, Outcome.OK]


def test_after_a_lost_batch_the_others_get_new_numbers_under_a_new_epoch():
    """Rule (KIP-360): the number of a batch that was given up may be missing, so that its epoch ends; order
    is kept."""
    client = ClientOptions(delivery_timeout_ms=5_000, request_timeout_ms=30_000, retry_backoff_ms=50)
    desk = desk_with(1, client=client)
    desk.now = 4_000 * MILLISECOND
    desk.append()
    desk.append()
    for _ in range(2):
        desk.answer(OUT_OF_ORDER, which=1)
    desk.fire_all("produce_retry")
    desk.now = 5_000 * MILLISECOND
    while not desk.done:
        assert desk.fire()[0] in ("produce_delivery", "produce_retry")
    assert desk.done[0].outcome is Outcome.UNKNOWN and desk.done[0].op_id == 1
    desk.open.pop(0)
    assert [(desk.numbers(), desk.values(), len(desk.open))] == [((7, 1, 0), [2000], 1)]
    desk.answer(base_offset=4)
    assert (desk.numbers(), desk.values()) == ((7, 1, 1), [3000])


def test_nothing_follows_the_first_batch_before_the_log_knows_the_producer():
    """Rule: a log takes any number as the first of an unknown producer; a second batch that arrived first
    would be taken, and the first refused."""
    desk = ProducerDesk(idempotent=True, batch_bytes=1, client=PATIENT)
    for _ in range(3):
        desk.append()
    desk.answer_id()
    assert [desk.values(which) for which in range(len(desk.open))] == [[1000]]
    desk.fire_all("produce_request")
    go_on(desk)
    assert [desk.values(which) for which in range(1, len(desk.open))] == [[1000]]
    desk.answer(base_offset=0, which=1)
    assert [desk.values(which) for which in range(1, len(desk.open))] == [[2000], [3000]]


def test_nothing_new_goes_out_while_a_lost_number_may_be_missing():
    """Rule: what came after the lost batch is decided first."""
    client = ClientOptions(delivery_timeout_ms=5_000, request_timeout_ms=30_000)
    desk = desk_with(1, client=client)
    desk.now = 2_000 * MILLISECOND
    desk.append()
    desk.now = 5_000 * MILLISECOND
    while not desk.done:
        desk.fire()
    desk.append()
    assert [desk.values(which) for which in range(len(desk.open))] == [[1000], [2000]]
    desk.answer(base_offset=1, which=1)
    assert (desk.numbers(), desk.values()) == ((7, 1, 0), [3000])


def test_a_first_batch_that_is_refused_begins_a_new_epoch():
    """Rule (KIP-360): a log that has forgotten the producer, or a head of the log that was deleted, is no end
    of it."""
    for error in (OUT_OF_ORDER, ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_EPOCH):
        desk = desk_with(1)
        desk.answer(error)
        go_on(desk)
        assert desk.numbers() == (7, 1, 0)
        desk.answer(base_offset=5)
        assert (desk.done[0].outcome, desk.done[0].producer_epoch) == (Outcome.OK, 1)


def test_what_may_be_written_is_never_sent_under_another_number():
    """Rule (stricter than Kafka): a batch of unknown fate that the log refuses now ends as unknown; under a
    new epoch it could be written twice."""
    desk = desk_with(1)
    desk.fire_all("produce_request")
    go_on(desk)
    desk.answer(OUT_OF_ORDER, which=1)
    assert [(row.outcome, row.error) for row in desk.done] == [(Outcome.UNKNOWN, OUT_OF_ORDER.value)]
    desk.append()
    assert desk.numbers() == (7, 1, 0)


def test_other_partitions_keep_their_epoch():
    """Rule: a log knows the epoch of its own batches only."""
    desk = ProducerDesk(idempotent=True, batch_bytes=1, client=PATIENT)
    desk.append()
    desk.append(partition=1)
    desk.answer_id()
    desk.answer(OUT_OF_ORDER)
    desk.answer(base_offset=0)
    go_on(desk)
    desk.append(partition=1)
    assert [desk.numbers(0), desk.numbers(1)] == [(7, 1, 0), (7, 0, 1)]


def test_used_up_epochs_ask_for_another_id():
    """Rule: epochs are 16-bit; after the last one comes another producer."""
    desk = desk_with(1)
    desk.producer.sequences.producer_epoch = LARGEST_EPOCH
    desk.answer(OUT_OF_ORDER)
    go_on(desk)
    assert desk.open == []
    desk.answer_id(8)
    assert desk.numbers() == (8, 0, 0)


def test_sequences_wrap():
    """Rule: after 2^31 - 1 comes 0, and order survives it."""
    line, sequences = Line(T0), Sequences(True, 1, 0)
    line.producer_id, line.producer_epoch, line.next_sequence = 1, 0, (1 << 31) - 1
    batches = [
        ProducerBatch(
            T0, -1, number, [Produce(op_id=number, topic="t", values=(b"",), value_ids=(number,))], 1
        )
        for number in range(3)
    ]
    for batch in batches:
        sequences.number(line, batch)
    assert [batch.sequence for batch in batches] == [(1 << 31) - 1, 0, 1]
    for batch in (batches[2], batches[0], batches[1]):
        line.put_back(batch)
    assert list(line.waiting) == batches


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_new_numbers_follow_the_order_of_sending(order):
    """Rule (KAFKA-8484): however the refusals arrived."""
    desk = desk_with(3)
    requests = {value: request for request in desk.open for value in [request.correlation_id // 256]}
    for which in order:
        desk.open.remove(requests[which + 1])
        desk.open.insert(0, requests[which + 1])
        desk.answer(ErrorCode.UNKNOWN_PRODUCER_ID)
    go_on(desk)
    for number in range(3):
        assert (desk.numbers(0)[2], desk.values(0)) == (number, [1000 * (number + 1)])
        desk.answer(base_offset=number)


@pytest.mark.parametrize(("leaders", "acknowledged"), [((1,), REMEMBERED), ((1, 1, 2), 3)])
def test_an_earlier_batch_is_sent_again_on_purpose(leaders, acknowledged):
    """Rule (KIP-98): a log remembers five batches. An older one is sent to it, or a younger one to the next
    leader, with the numbers and the records that it had; a refusal is taken down, and nothing follows."""
    desk = desk_with(1, late_sends=True)
    for nth in range(1, acknowledged):
        desk.answer(base_offset=nth)
        assert not desk.open
        desk.lead(leaders[min(nth, len(leaders) - 1)])
        desk.append()
    desk.answer(base_offset=acknowledged)
    assert (desk.sent[-1][0], desk.numbers(), desk.values()) == (leaders[-1], (7, 0, 0), [1000])
    rows = list(desk.done)
    desk.answer(OUT_OF_ORDER)
    assert [event.columns for event in desk.events] == [{"cause": LATE_SEND_REFUSED}]
    assert (desk.done, desk.producer.idle, desk.timers) == (rows, True, {})


def test_a_batch_that_is_too_large_goes_in_two_with_its_own_numbers():
    """Rule: its halves are sent one after the other, each with the numbers of its records; a record that does
    not fit alone fails."""
    desk = ProducerDesk(idempotent=True, client=PATIENT, linger_ms=5)
    desk.producer.accumulator.line(T0).introduced = True
    for _ in range(3):
        desk.append()
    desk.answer_id()
    desk.fire_all("produce_linger")
    assert desk.values() == [1000, 2000, 3000]
    desk.answer(ErrorCode.MESSAGE_TOO_LARGE)
    assert (desk.numbers(), desk.values(), len(desk.open)) == ((7, 0, 0), [1000, 2000], 1)
    desk.answer(base_offset=0)
    assert (desk.numbers(), desk.values()) == ((7, 0, 2), [3000])
    desk.answer(ErrorCode.MESSAGE_TOO_LARGE)
    assert [(row.outcome, row.offset) for row in desk.done] == [
        (Outcome.OK, 0),
        (Outcome.OK, 1),
        (Outcome.FAIL, None),
    ]


def test_a_batch_that_may_be_written_is_never_split():
    """Rule: the limit may have come down since; its halves would be there twice."""
    desk = ProducerDesk(idempotent=True, client=PATIENT, linger_ms=5)
    desk.producer.accumulator.line(T0).introduced = True
    desk.append()
    desk.append()
    desk.answer_id()
    desk.fire_all("produce_linger")
    desk.answer(ErrorCode.REQUEST_TIMED_OUT, base_offset=0)
    go_on(desk)
    desk.answer(ErrorCode.MESSAGE_TOO_LARGE)
    go_on(desk)
    assert desk.values() == [1000, 2000] and desk.done == []
