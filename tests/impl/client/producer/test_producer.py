"""The producer: what goes into a batch, when it leaves, how often it is tried, and what becomes of each
append."""

import pytest
from attrs import evolve
from impl_producer_desk import MILLISECOND, T0, ProducerDesk

from fencepost.impl.client.attempt import FINAL_ERRORS
from fencepost.impl.client.producer.producer import MAX_ATTEMPTS
from fencepost.impl.client.producer_requests import IDENTITY, METADATA
from fencepost.impl.core.core_interface import StopRequested
from fencepost.impl.log.batch.record_batch import read_header
from fencepost.impl.messages import broker_api as kafka
from fencepost.traces.kafka_names.outcomes import NOTHING_HAPPENED, ErrorCode
from fencepost.traces.operations import Outcome
from fencepost.traces.plan import ClientOptions

SEQUENCE_ERRORS = {
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.UNKNOWN_PRODUCER_ID,
    ErrorCode.INVALID_PRODUCER_EPOCH,
}
ERRORS = [error for error in ErrorCode if error is not ErrorCode.NONE]
SLOW = ClientOptions(delivery_timeout_ms=900_000, request_timeout_ms=1_000)


# ---- batches


def test_appends_of_one_partition_share_a_batch_while_it_lingers():
    """Rule (P2, linger.ms): appends that come meanwhile go into the same batch, in order; each is a row of
    its own with its own offset and sequence."""
    desk = ProducerDesk(linger_ms=20, idempotent=True)
    desk.append()
    desk.append(b"a", b"b")
    desk.now += 5 * MILLISECOND
    desk.append()
    assert desk.open == []
    assert desk.fire() == ("produce_linger", "t", 0)
    desk.answer_id()
    assert desk.values() == [1000, 2000, 2001, 3000] and desk.now == 20 * MILLISECOND
    desk.answer(base_offset=40)
    assert [(row.op_id, row.offset, row.sequence, row.producer_id) for row in desk.done] == [
        (1, 40, 0, 7),
        (2, 41, 1, 7),
        (3, 43, 3, 7),
    ]
    assert [record.offset for record in desk.done[1].records] == [41, 42]
    assert desk.producer.idle and desk.timers == {}


def test_a_full_batch_does_not_linger():
    """Rule (batch.size): what is full leaves at once; so does what an append does not fit into, which begins
    the next one."""
    desk = ProducerDesk(linger_ms=1_000, batch_bytes=61 + 3 * 25)
    desk.append()
    desk.append()
    assert desk.open == []
    desk.append()
    assert desk.values() == [1000, 2000, 3000]
    desk.append()
    desk.append(b"x" * 60)
    assert desk.values(1) == [4000]


def test_an_append_larger_than_a_batch_goes_alone():
    """Rule: batch.size bounds sharing, not records."""
    desk = ProducerDesk(batch_bytes=80, linger_ms=50)
    desk.append(b"x" * 500)
    assert len(desk.open) == 1


def test_nothing_joins_a_batch_that_was_sent_before():
    """Rule: a retry carries the same records under the same number."""
    desk = ProducerDesk(idempotent=True)
    desk.producer.accumulator.line(T0).introduced = True
    desk.append()
    desk.answer_id()
    desk.answer(ErrorCode.NOT_ENOUGH_REPLICAS)
    desk.append()
    desk.fire_all("produce_retry")
    desk.answer_metadata()
    assert [desk.values(0), desk.values(1)] == [[1000], [2000]]


def test_batches_of_different_acks_do_not_mix():
    """Rule: acks belong to the request."""
    desk = ProducerDesk(linger_ms=10, batch_bytes=10_000)
    desk.append(acks=1)
    desk.append(acks=-1)
    desk.fire_all("produce_linger")
    assert [request.acks for request in desk.open] == [1, -1]


def test_a_flush_sends_what_lingers():
    """Rule: an end of the input does not wait."""
    desk = ProducerDesk(linger_ms=60_000)
    desk.append()
    desk.step(StopRequested())
    assert len(desk.open) == 1


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_batches_are_compressed_as_told(codec):
    """Rule (compression.type): the batch says its codec, and holds the same records."""
    desk = ProducerDesk(compression=codec)
    desk.append(b"1" * 200)
    assert read_header(desk.open[0].records).codec == codec and desk.values() == [1000]


# ---- in flight


def test_at_most_so_many_batches_are_in_flight_to_a_broker():
    """Rule (max.in.flight.requests.per.connection): the next one leaves when one was answered; other brokers
    are not concerned."""
    desk = ProducerDesk(max_in_flight=2, batch_bytes=1)
    for _ in range(4):
        desk.append()
    desk.append(partition=1)
    assert [request.partition.partition for request in desk.open] == [0, 0, 1]
    desk.answer(base_offset=0)
    assert len(desk.open) == 3


def test_answers_may_come_in_any_order():
    """Rule: each answer decides its own batch."""
    desk = ProducerDesk(batch_bytes=1)
    for _ in range(3):
        desk.append()
    for which, offset in ((2, 2), (0, 0), (0, 1)):
        desk.answer(base_offset=offset, which=which)
    assert [(row.op_id, row.offset) for row in desk.done] == [(3, 2), (1, 0), (2, 1)]


# ---- outcomes


def test_acks_0_is_ok_when_it_is_sent():
    """Rule: nobody answers it, and no offset is claimed."""
    desk = ProducerDesk(max_in_flight=1, batch_bytes=1)
    for _ in range(3):
        desk.append(acks=0)
    assert [(row.outcome, row.offset) for row in desk.done] == [(Outcome.OK, None)] * 3
    assert desk.producer.idle and desk.timers == {}


def meeting(error: ErrorCode, *, base_offset: int = -1, idempotent: bool = False) -> ProducerDesk:
    """A desk whose every produce request meets this error until its append is decided."""
    desk = ProducerDesk(idempotent=idempotent, client=ClientOptions(delivery_timeout_ms=3_000))
    desk.append()
    if idempotent:
        desk.answer_id()
    for _ in range(10 * MAX_ATTEMPTS):
        if desk.done:
            return desk
        if desk.open:
            desk.answer(error, base_offset)
        elif isinstance(desk.sent[-1][1], kafka.MetadataRequest) and METADATA in desk.producer.asking.asked:
            desk.answer_metadata()
        else:
            desk.fire()
    raise AssertionError("the append never ends")


@pytest.mark.parametrize("error", ERRORS)
def test_every_error_is_fail_or_unknown_by_the_table(error):
    """Rule (docs/reference/traces.md): what proves that nothing was written is retried to the end and then
    fail, anything else is unknown at once."""
    desk = meeting(error)
    (row,) = desk.done
    assert row.outcome is (Outcome.FAIL if error in NOTHING_HAPPENED else Outcome.UNKNOWN)
    assert row.error == error.value and row.offset is None and row.attempts >= 1
    assert desk.producer.idle and desk.timers == {}


@pytest.mark.parametrize("error", ERRORS)
def test_an_error_beside_an_offset_is_unknown(error):
    """Rule: the leader wrote before it refused."""
    assert meeting(error, base_offset=3).done[0].outcome is Outcome.UNKNOWN


@pytest.mark.parametrize("idempotent", [False, True])
@pytest.mark.parametrize("error", sorted(FINAL_ERRORS))
def test_what_the_same_bytes_would_meet_again_is_not_retried(error, idempotent):
    """Rule: a batch that the leader will never append fails with its first answer, as in Kafka."""
    (row,) = meeting(error, idempotent=idempotent).done
    assert (row.outcome, row.error, row.attempts) == (Outcome.FAIL, error.value, 1)


@pytest.mark.parametrize("error", [error for error in ERRORS if error not in FINAL_ERRORS])
def test_an_idempotent_producer_retries_everything_until_its_time_is_up(error):
    """Rule: a retry is no duplicate, so that unknown attempts are retried too; what they leave at the end is
    unknown."""
    desk = meeting(error, idempotent=True)
    (row,) = desk.done
    assert row.outcome is (Outcome.FAIL if error in NOTHING_HAPPENED else Outcome.UNKNOWN)
    assert row.attempts > 2 and desk.now >= 2_900 * MILLISECOND
    epochs = row.producer_epoch
    assert epochs is None or (epochs > 0) == (error in SEQUENCE_ERRORS)


def test_a_lost_answer_is_unknown_without_idempotence():
    """Rule: a request that nobody answers in request.timeout.ms may have been carried out."""
    desk = ProducerDesk()
    desk.append()
    desk.fire_all("produce_request")
    assert (desk.done[0].outcome, desk.done[0].error) == (Outcome.UNKNOWN, "NETWORK_EXCEPTION")


def test_told_to_it_retries_without_idempotence_and_may_write_twice():
    """Rule (at least once): the second attempt is another batch to the log."""
    desk = ProducerDesk(client=evolve(SLOW, retry_unknown=True))
    desk.append()
    desk.fire_all("produce_request")
    desk.fire_all("produce_retry")
    desk.answer_metadata()
    desk.answer(which=1, base_offset=9)
    assert (desk.done[0].outcome, desk.done[0].offset, desk.done[0].attempts) == (Outcome.OK, 9, 2)


def test_the_delivery_timeout_ends_what_waits_as_fail_and_what_is_in_flight_as_unknown():
    """Rule (delivery.timeout.ms): it counts from the append; a batch that was never sent cannot be in the
    log."""
    client = ClientOptions(delivery_timeout_ms=500, request_timeout_ms=5_000)
    desk = ProducerDesk(client=client, max_in_flight=1, batch_bytes=1)
    desk.append()
    desk.append()
    desk.fire_all("produce_delivery")
    assert [(row.op_id, row.outcome) for row in desk.done] == [(1, Outcome.UNKNOWN), (2, Outcome.FAIL)]
    assert desk.producer.idle and desk.now == 500 * MILLISECOND


def test_late_and_repeated_answers_are_ignored():
    """Rule: only an answer to the attempt in flight counts, once."""
    desk = ProducerDesk(idempotent=True, client=SLOW)
    desk.append()
    desk.answer_id()
    first = desk.open[0]
    desk.fire_all("produce_request")
    desk.fire_all("produce_retry")
    desk.answer_metadata()
    desk.answer(base_offset=5)  # of the first attempt
    assert desk.done == [] and first.correlation_id != desk.open[0].correlation_id
    desk.answer(base_offset=5)
    assert [row.offset for row in desk.done] == [5]


def test_attempts_are_bounded():
    """Rule: a batch sends fewer than MAX_ATTEMPTS requests, so that correlation ids of batches never meet."""
    desk = ProducerDesk(client=ClientOptions(delivery_timeout_ms=1_000_000, retry_backoff_ms=1))
    desk.append()
    while not desk.done:
        if desk.open:
            desk.answer(ErrorCode.NOT_ENOUGH_REPLICAS)
        elif METADATA in desk.producer.asking.asked:
            desk.answer_metadata()
        else:
            desk.fire()
    assert desk.done[0].attempts == MAX_ATTEMPTS - 1 and desk.done[0].outcome is Outcome.FAIL


# ---- metadata


def test_a_refusal_asks_for_metadata_and_follows_the_leader():
    """Rule: errors refresh the metadata; the batch goes to the leader of then."""
    desk = ProducerDesk(client=SLOW)
    desk.append()
    desk.answer(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    desk.fire_all("produce_retry")
    desk.answer_metadata(3, 2, epoch=1)
    assert (desk.sent[-1][0], desk.open[0].partition) == (3, T0)


def test_without_a_leader_it_asks_one_broker_after_another():
    """Rule (LIVE): no broker with stale metadata traps a producer; between two questions it rests."""
    desk = ProducerDesk(known=False, client=SLOW)
    desk.append()
    asked = []
    for _ in range(6):
        asked.append(desk.sent[-1][0])
        desk.answer_metadata(-1)
        assert desk.fire() == ("produce_metadata",)
    assert asked == [1, 2, 3, 1, 2, 3] and desk.open == []
    desk.answer_metadata(2)
    assert desk.sent[-1][0] == 2 and len(desk.open) == 1


def test_an_unanswered_question_is_asked_again():
    """Rule (LIVE): metadata and producer ids that are lost on the way are asked for again, elsewhere."""
    desk = ProducerDesk(known=False, idempotent=True, client=SLOW)
    desk.append()
    first = len(desk.sent)
    for key in (desk.fire(), desk.fire()):
        assert key in (("produce_metadata",), ("produce_identity",))
    assert len(desk.sent) == first + 2
    assert len({target for target, _ in desk.sent}) > 1


def test_an_append_waits_for_its_topic_and_fails_if_it_never_comes():
    """Rule (max.block.ms): without metadata no partitioner can choose; what was never placed is fail."""
    desk = ProducerDesk(known=False, client=ClientOptions(delivery_timeout_ms=2_000))
    desk.append(partition=-1, key=b"k")
    desk.append(partition=-1, key=b"k")
    while not desk.done:
        desk.fire()
    assert [(row.outcome, row.error, row.partition) for row in desk.done][:1] == [
        (Outcome.FAIL, "UNKNOWN_TOPIC_OR_PARTITION", None)
    ]
    desk.append(partition=-1, key=b"k")
    desk.lead()
    while not desk.open:
        desk.fire()
        if METADATA in desk.producer.asking.asked:
            desk.answer_metadata()
    assert desk.values() == [3000]


def test_what_waits_for_its_topic_goes_before_what_comes_later():
    """Rule: metadata that somebody else of the same client asked for lets no later append overtake an earlier
    one."""
    desk = ProducerDesk(known=False, client=SLOW, linger_ms=5)
    desk.append(partition=-1, key=b"k")
    desk.lead()
    desk.append(partition=-1, key=b"k")
    desk.step(StopRequested())
    assert desk.values() == [1000, 2000] and not any(key[0] == "produce_placing" for key in desk.timers)


# ---- partitioners


def test_records_of_one_key_stay_in_order_in_one_partition():
    """Rule (P1): whatever else is sent between them."""
    desk = ProducerDesk(linger_ms=5, idempotent=True)
    keys = [b"k%d" % (number % 5) for number in range(60)]
    for key in keys:
        desk.append(partition=-1, key=key)
    while not desk.producer.idle:
        if IDENTITY in desk.producer.asking.asked:
            desk.answer_id()
        elif desk.open:
            desk.answer(base_offset=0)
        else:
            desk.fire()
    by_key: dict[str, list[tuple[int, int]]] = {}
    for row in sorted(desk.done, key=lambda row: row.op_id):
        by_key.setdefault(row.key, []).append((row.partition, row.sequence))
    for places in by_key.values():
        assert len({partition for partition, _ in places}) == 1
        assert [sequence for _, sequence in places] == sorted(sequence for _, sequence in places)


def test_sticky_makes_fewer_batches_than_round_robin():
    """Rule (KIP-480): without keys a lingering producer fills one batch after another."""

    def batches(partitioner: str) -> int:
        desk = ProducerDesk(partitioner=partitioner, linger_ms=5)
        desk.lead(1, 1, 1, 2, 2, 2)
        for _ in range(6):
            desk.append(partition=-1)
        desk.fire_all("produce_linger")
        return len(desk.open)

    assert (batches("sticky"), batches("round_robin")) == (1, 6)
