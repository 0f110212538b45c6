"""The client: what each answer makes of an operation, how it finds leaders, and that it always comes to an
end."""

from typing import Any

import pytest
from msgspec.structs import replace

from fencepost.impl.client.client import FETCH_BYTES_PER_RECORD, MAX_ATTEMPTS, Client
from fencepost.impl.client.leader_metadata import ClientMetadata
from fencepost.impl.core.core_interface import Invoke, MessageArrived, TimerFired
from fencepost.impl.log.batch.record_batch import with_leader_fields
from fencepost.impl.log.values import batch_of
from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.traces.kafka_names.outcomes import NOTHING_HAPPENED, ErrorCode
from fencepost.traces.operations import Operation, Outcome
from fencepost.traces.plan import ClientOptions, PlannedOperation
from tests.impl.client.by_hand import ByHand

T0 = TopicPartition("t", 0)
MILLISECOND = 1_000_000
ERRORS = [error for error in ErrorCode if error is not ErrorCode.NONE]


class Desk(ByHand):
    """A client by hand: what it sent last, its timers, what it completed."""

    def __init__(self, bootstrap: tuple[int, ...] = (1, 2, 3), **options: Any) -> None:
        self.client = Client(0, ClientOptions(**options), ClientMetadata(bootstrap))
        super().__init__(self.client)
        self._ids = 0

    def invoke(
        self, function: str = "append", *, acks: int = -1, records: int = 1, argument: str = ""
    ) -> None:
        self._ids += 1
        operation = PlannedOperation(
            op_id=self._ids,
            process=0,
            at_ms=0,
            function=function,
            acks=acks,
            records=records,
            argument=argument,
        )
        self.step(Invoke(operation))

    @property
    def request(self) -> Any:
        """The request that was sent last."""
        return self.sent[-1][1]

    def answer(self, message: Any) -> None:
        self.step(MessageArrived(self.sent[-1][0], message))

    def tell(self, leader: int = 1, epoch: int = 0) -> None:
        """Answer a metadata request."""
        assert isinstance(self.request, kafka.MetadataRequest), self.request
        entry = kafka.PartitionMetadata(partition=T0, leader=leader, leader_epoch=epoch)
        self.answer(
            kafka.MetadataResponse(
                correlation_id=self.request.correlation_id, partitions=(entry,), live_brokers=(1, 2, 3)
            )
        )

    def produced(self, error: ErrorCode = ErrorCode.NONE, base_offset: int = -1) -> None:
        """Answer a produce request."""
        self.answer(
            kafka.ProduceResponse(
                correlation_id=self.request.correlation_id,
                error=error,
                base_offset=base_offset,
                leader_epoch=4,
            )
        )

    def fire(self) -> Any:
        """Let time pass until the next timer; returns its key."""
        key = min(self.timers, key=lambda timer: (self.timers[timer], timer))
        self.now = max(self.now, self.timers.pop(key))
        self.step(TimerFired(key))
        return key

    def to_the_end(self, meet: Any) -> Operation:
        """Let time pass until the operation ends; `meet` answers each request (or not)."""
        for _ in range(10 * MAX_ATTEMPTS):
            if self.rows:
                return self.rows[-1]
            before = len(self.sent)
            meet(self)
            if len(self.sent) == before and not self.rows:
                self.fire()
        raise AssertionError("the operation never ends")


def refusing(error: ErrorCode, base_offset: int = -1) -> Any:
    """Answers metadata, and every produce request with this error, once each."""
    answered: list[int] = []

    def meet(desk: Desk) -> None:
        if desk.request.correlation_id in answered:
            return
        answered.append(desk.request.correlation_id)
        if isinstance(desk.request, kafka.MetadataRequest):
            desk.tell()
        else:
            desk.produced(error, base_offset)

    return meet


def append_meeting(meet: Any) -> Operation:
    """An append whose requests are answered so."""
    desk = Desk()
    desk.invoke()
    return desk.to_the_end(meet)


# ---- outcomes of appends


def test_an_acknowledged_append_names_its_offsets() -> None:
    """Rule: ok means: these records stand at these offsets, in this leader epoch."""
    desk = Desk()
    desk.invoke(records=2)
    desk.tell()
    desk.produced(base_offset=7)
    (operation,) = desk.rows
    assert (operation.outcome, operation.offset, operation.error) == (Outcome.OK, 7, None)
    assert [(record.offset, record.value, record.leader_epoch) for record in operation.records] == [
        (7, 1000, 4),
        (8, 1001, 4),
    ]


def test_acks_0_is_ok_at_once_and_knows_no_offset() -> None:
    """Rule: an append with acks=0 ends when it is sent; neither offset nor epoch is claimed."""
    desk = Desk()
    desk.invoke(acks=0)
    desk.tell()
    (operation,) = desk.rows
    assert (operation.outcome, operation.offset) == (Outcome.OK, None)
    assert [(record.offset, record.leader_epoch) for record in operation.records] == [(-1, -1)]


@pytest.mark.parametrize("error", ERRORS)
def test_an_error_before_the_append_is_fail_or_unknown_by_the_table(error: ErrorCode) -> None:
    """Rule (docs/reference/traces.md): an error that proves that nothing was written is retried to the end
    and then fail; any other is unknown."""
    operation = append_meeting(refusing(error))
    assert operation.outcome is (Outcome.FAIL if error in NOTHING_HAPPENED else Outcome.UNKNOWN)
    assert operation.error == error.value
    assert operation.completion_time == (0 if operation.outcome is Outcome.FAIL else None)
    assert operation.offset is None and operation.records[0].offset == -1


@pytest.mark.parametrize("error", ERRORS)
def test_any_error_beside_a_base_offset_is_unknown(error: ErrorCode) -> None:
    """Rule: an answer that names an offset says that the leader wrote before it refused."""
    operation = append_meeting(refusing(error, base_offset=3))
    assert operation.outcome is Outcome.UNKNOWN and operation.offset is None


def test_a_batch_that_is_too_large_fails_for_good() -> None:
    """Rule: the same bytes would be refused again, as for a pipelined producer."""
    row = append_meeting(refusing(ErrorCode.MESSAGE_TOO_LARGE))
    assert (row.outcome, row.error, row.attempts) == (Outcome.FAIL, "MESSAGE_TOO_LARGE", 1)


def test_silence_is_unknown() -> None:
    """Rule: an append that was sent and never answered may have happened."""
    desk = Desk()
    desk.invoke()
    desk.tell()
    assert desk.fire() == ("request",)
    assert desk.rows[0].outcome is Outcome.UNKNOWN and desk.rows[0].error == "NETWORK_EXCEPTION"


def test_an_append_that_never_reached_a_leader_is_fail() -> None:
    """Rule: only metadata was asked for, so nothing can have been written."""
    desk = Desk()
    desk.invoke()
    operation = desk.to_the_end(lambda desk: None)
    assert (operation.outcome, operation.attempts) == (Outcome.FAIL, 0)


def test_the_deadline_leaves_an_append_in_flight_unknown() -> None:
    """Rule: the delivery time-out ends an operation; what is in flight then may still happen."""
    desk = Desk(request_timeout_ms=5_000, delivery_timeout_ms=2_000)
    desk.invoke()
    desk.tell()
    assert desk.fire() == ("delivery",)
    assert (desk.rows[0].outcome, desk.rows[0].error) == (Outcome.UNKNOWN, "REQUEST_TIMED_OUT")


def test_a_failed_retry_after_an_unknown_attempt_is_unknown() -> None:
    """Rule: the later refusal says nothing of the earlier attempt."""
    desk = Desk(retry_unknown=True)
    desk.invoke()
    desk.tell()
    desk.fire()  # the first attempt's fate is unknown
    operation = desk.to_the_end(refusing(ErrorCode.NOT_LEADER_OR_FOLLOWER))
    assert operation.outcome is Outcome.UNKNOWN and operation.attempts > 1


def test_retry_unknown_tries_again() -> None:
    """Rule: told to, the client retries an attempt whose fate is unknown, and the success of a later one is
    ok."""
    desk = Desk(retry_unknown=True)
    desk.invoke()
    desk.tell()
    desk.produced(ErrorCode.REQUEST_TIMED_OUT, base_offset=2)
    assert desk.rows == [] and desk.fire() == ("backoff",)
    desk.tell()
    desk.produced(base_offset=9)
    assert (desk.rows[0].outcome, desk.rows[0].offset, desk.rows[0].attempts) == (Outcome.OK, 9, 2)


# ---- reads


def fetched(
    desk: Desk, *batches: tuple[int, tuple[int, ...]], error: ErrorCode = ErrorCode.NONE, end: int = 9
) -> None:
    """Answer a fetch with these batches of epoch 2."""
    part = kafka.FetchedPartition(
        partition=T0,
        error=error,
        leader_epoch=2,
        high_watermark=end,
        log_start_offset=0,
        records=b"".join(
            with_leader_fields(batch_of(values), base_offset=base, leader_epoch=2) for base, values in batches
        ),
    )
    desk.answer(kafka.FetchResponse(correlation_id=desk.request.correlation_id, partitions=(part,)))


def test_a_poll_goes_on_where_the_last_one_ended() -> None:
    """Rule: each poll reads on from the record after the last one it returned, and leaves out what stands
    before its offset in the first batch."""
    desk = Desk()
    desk.invoke("poll")
    desk.tell()
    fetched(desk, (0, (5, 6)), (2, (7,)), end=3)
    assert [(record.offset, record.value) for record in desk.rows[0].records] == [(0, 5), (1, 6), (2, 7)]
    assert (desk.rows[0].offset, desk.rows[0].end_offset, desk.rows[0].leader_epoch) == (0, 3, 2)
    desk.invoke("poll")
    assert desk.request.partitions[0].offset == 3
    fetched(desk, (2, (7, 8)), end=4)
    assert [(record.offset, record.value) for record in desk.rows[1].records] == [(3, 8)]


def test_an_empty_poll_moves_nothing() -> None:
    """Rule: a poll without records is ok, from its position, and the next one asks there again."""
    desk = Desk()
    desk.invoke("poll")
    desk.tell()
    fetched(desk, end=0)
    assert (desk.rows[0].outcome, desk.rows[0].offset, desk.rows[0].records) == (Outcome.OK, 0, ())
    desk.invoke("poll")
    assert desk.request.partitions[0].offset == 0


@pytest.mark.parametrize("function", ["poll", "list_offsets"])
def test_a_read_that_learns_nothing_is_fail(function: str) -> None:
    """Rule: reads are retried freely, and have no effect that could be unknown."""
    desk = Desk()
    desk.invoke(function)
    operation = desk.to_the_end(lambda desk: desk.tell() if _asks(desk) else None)
    assert operation.outcome is Outcome.FAIL and operation.attempts > 1


def _asks(desk: Desk) -> bool:
    fresh = isinstance(desk.request, kafka.MetadataRequest) and desk.client.current is not None
    return fresh and desk.client.current.correlation_id == desk.request.correlation_id


def test_an_offset_out_of_range_starts_again_from_the_beginning() -> None:
    """Rule: auto.offset.reset=earliest: the client asks the leader where the log starts, and goes on
    there."""
    desk = Desk()
    desk.client.positions[T0] = 40
    desk.invoke("poll")
    desk.tell()
    assert desk.request.partitions[0].offset == 40
    fetched(desk, error=ErrorCode.OFFSET_OUT_OF_RANGE)
    desk.fire()
    desk.tell()
    assert desk.request.timestamp == kafka.EARLIEST
    desk.answer(
        kafka.ListOffsetsResponse(correlation_id=desk.request.correlation_id, error=ErrorCode.NONE, offset=7)
    )
    assert desk.request.partitions[0].offset == 7


def test_a_poll_asks_for_as_many_bytes_as_its_records_take() -> None:
    """Rule: max.poll.records bounds the bytes of a fetch; one-record batches of any value id fit."""
    assert (
        FETCH_BYTES_PER_RECORD - 8
        < len(batch_of(((1 << 63) - 1,), timestamp_ms=1 << 40))
        <= FETCH_BYTES_PER_RECORD
    )
    desk = Desk(max_poll_records=50)
    desk.invoke("poll")
    desk.tell()
    assert desk.request.max_bytes == 50 * FETCH_BYTES_PER_RECORD


# ---- metadata


def metadata(leader: int, epoch: int) -> kafka.MetadataResponse:
    entry = kafka.PartitionMetadata(partition=T0, leader=leader, leader_epoch=epoch)
    return kafka.MetadataResponse(correlation_id=1, partitions=(entry,), live_brokers=(1,))


def test_metadata_never_goes_back_in_leader_epoch() -> None:
    """Rule (KIP-320): a broker that has not heard of an election does not make the client forget it."""
    known = ClientMetadata((1, 2, 3))
    assert known.leader(T0) is None
    known.update(metadata(1, 4))
    known.update(metadata(2, 3))
    assert known.leader(T0) == (1, 4)
    known.update(metadata(-1, 5))
    assert known.leader(T0) is None
    known.update(metadata(3, 6))
    assert known.leader(T0) == (3, 6)


def test_a_refusal_asks_for_fresh_metadata_after_the_back_off() -> None:
    """Rule: what the client believes of leaders is renewed before each retry."""
    desk = Desk(retry_backoff_ms=70)
    desk.invoke()
    desk.tell(1, 0)
    desk.produced(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    sent = len(desk.sent)
    assert desk.fire() == ("backoff",) and desk.now == 70 * MILLISECOND
    assert isinstance(desk.request, kafka.MetadataRequest) and len(desk.sent) == sent + 1
    desk.tell(2, 1)
    assert desk.sent[-1][0] == 2


@pytest.mark.parametrize("brokers", [1, 2, 3, 4])
def test_every_broker_is_asked_in_turn(brokers: int) -> None:
    """Rule (LIVE): a broker with stale metadata does not trap the client: each retry of an operation asks the
    next one."""
    desk = Desk(tuple(range(1, brokers + 1)), delivery_timeout_ms=600_000)
    desk.invoke()
    asked = []
    for _ in range(2 * brokers):
        asked.append(desk.sent[-1][0])
        desk.tell()
        desk.produced(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        desk.fire()
    assert set(asked[:brokers]) == set(range(1, brokers + 1))


# ---- late answers, bounds


def test_late_and_repeated_answers_are_ignored() -> None:
    """Rule: only the answer to the attempt in flight counts, once."""
    desk = Desk(retry_unknown=True)
    desk.invoke()
    desk.tell()
    first = desk.request
    desk.fire()
    late = kafka.ProduceResponse(
        correlation_id=first.correlation_id, error=ErrorCode.NONE, base_offset=3, leader_epoch=0
    )
    desk.answer(late)
    assert desk.rows == []
    desk.fire()
    desk.tell()
    desk.produced(base_offset=5)
    desk.produced(base_offset=5)
    assert [operation.offset for operation in desk.rows] == [5]
    desk.invoke()
    desk.answer(late)
    assert len(desk.rows) == 1


def test_attempts_are_bounded_whatever_the_options() -> None:
    """Rule: an operation sends fewer than MAX_ATTEMPTS requests, so that its correlation ids never meet the
    next operation's."""
    desk = Desk(retry_backoff_ms=1, delivery_timeout_ms=1_000_000)
    desk.invoke()
    operation = desk.to_the_end(refusing(ErrorCode.NOT_LEADER_OR_FOLLOWER))
    assert operation.outcome is Outcome.FAIL
    ids = [message.correlation_id for _, message in desk.sent]
    assert len(ids) == len(set(ids)) < MAX_ATTEMPTS
    assert all(number // MAX_ATTEMPTS == operation.op_id for number in ids)
    assert desk.timers == {}


def test_nothing_is_left_behind_by_a_finished_operation() -> None:
    """Rule: an idle client has no timer, and one that fires late does nothing."""
    desk = Desk()
    desk.invoke()
    desk.tell()
    desk.produced(base_offset=0)
    assert desk.timers == {} and desk.client.current is None
    for key in (("request",), ("backoff",), ("delivery",)):
        desk.step(TimerFired(key))
    assert len(desk.sent) == 2 and len(desk.rows) == 1


def test_the_clients_epoch_goes_with_its_reads() -> None:
    """Rule (KIP-320): Fetch and ListOffsets carry the leader epoch that the metadata named."""
    desk = Desk()
    desk.invoke("list_offsets")
    desk.tell(2, 6)
    assert desk.request == kafka.ListOffsetsRequest(
        correlation_id=desk.request.correlation_id, partition=T0, leader_epoch=6
    )
    answer = kafka.ListOffsetsResponse(
        correlation_id=desk.request.correlation_id, error=ErrorCode.NONE, offset=12, leader_epoch=6
    )
    desk.answer(replace(answer, error=ErrorCode.OFFSET_NOT_AVAILABLE, offset=-1))
    assert desk.rows == []
    desk.fire()
    desk.tell(2, 6)
    desk.answer(replace(answer, correlation_id=desk.request.correlation_id))
    assert (desk.rows[0].outcome, desk.rows[0].offset, desk.rows[0].end_offset) == (Outcome.OK, 12, 12)


def test_an_answer_by_time_is_recorded_with_the_question() -> None:
    """Rule: the row shows no end, but what was asked for and which record was named."""
    desk = Desk()
    desk.now = 5_000 * MILLISECOND
    desk.invoke("list_offsets", argument="by_time", records=30)
    desk.tell(2, 6)
    assert desk.request.timestamp == 2_000
    answer = kafka.ListOffsetsResponse(
        correlation_id=desk.request.correlation_id,
        error=ErrorCode.NONE,
        offset=12,
        leader_epoch=4,
        timestamp=2_500,
    )
    desk.answer(answer)
    (done,) = desk.rows
    assert done.result == '{"from_ms":2000,"offset":12,"timestamp_ms":2500,"leader_epoch":4,"within_ms":0}'
    assert (done.outcome, done.offset, done.end_offset, done.leader_epoch) == (Outcome.OK, None, None, None)
