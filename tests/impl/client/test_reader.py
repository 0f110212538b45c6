"""The reader: where it begins, that it reads on without a gap, and that nothing stops it for good."""

from typing import Any

import pytest

from fencepost.impl.client.leader_metadata import ClientMetadata
from fencepost.impl.client.reader import make_reader
from fencepost.impl.core.core_interface import MessageArrived, Started, TimerFired
from fencepost.impl.log.batch.record_batch import Header, Record, encode_batch, with_leader_fields
from fencepost.impl.log.values import VALUE_ID, batch_of
from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.traces.kafka_names.outcomes import ErrorCode
from fencepost.traces.operations import Function
from fencepost.traces.plan import ClientOptions
from tests.impl.client.by_hand import ByHand

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
MILLISECOND = 1_000_000


class ReaderDesk(ByHand):
    """A reader by hand."""

    def __init__(
        self, *partitions: TopicPartition, from_beginning: bool = True, reset: str = "earliest"
    ) -> None:
        self.metadata = ClientMetadata((1, 2, 3))
        options = ClientOptions(auto_offset_reset=reset)
        self.reader = make_reader(options, self.metadata, partitions or (T0,), from_beginning=from_beginning)
        super().__init__(self.reader)
        self.lead()
        self.step(Started())

    def lead(self, leader: int = 1, epoch: int = 0) -> None:
        """Who leads both partitions."""
        self.metadata.update(self.told(0, leader, epoch))

    @staticmethod
    def told(correlation_id: int, leader: int, epoch: int) -> kafka.MetadataResponse:
        """A metadata response."""
        entries = tuple(
            kafka.PartitionMetadata(partition=key, leader=leader, leader_epoch=epoch) for key in (T0, T1)
        )
        return kafka.MetadataResponse(
            correlation_id=correlation_id, partitions=entries, live_brokers=(1, 2, 3)
        )

    @property
    def request(self) -> Any:
        """Sent last."""
        return self.sent[-1][1]

    def arrive(self, message: Any) -> None:
        self.step(MessageArrived(1, message))

    def listed(self, offset: int = 0, error: ErrorCode = ErrorCode.NONE) -> None:
        """Answer a ListOffsets."""
        assert isinstance(self.request, kafka.ListOffsetsRequest), self.request
        self.arrive(
            kafka.ListOffsetsResponse(correlation_id=self.request.correlation_id, error=error, offset=offset)
        )

    def fetched(self, data: bytes = b"", *, end: int = 0, error: ErrorCode = ErrorCode.NONE) -> None:
        """Answer a fetch."""
        assert isinstance(self.request, kafka.FetchRequest), self.request
        (wanted,) = self.request.partitions
        part = kafka.FetchedPartition(
            partition=wanted.partition,
            error=error,
            leader_epoch=2,
            high_watermark=end,
            log_start_offset=0,
            records=data,
        )
        self.arrive(kafka.FetchResponse(correlation_id=self.request.correlation_id, partitions=(part,)))

    def fire(self) -> Any:
        """Let time pass until the next timer."""
        key = min(self.timers, key=lambda timer: (self.timers[timer], timer))
        self.now = max(self.now, self.timers.pop(key))
        self.step(TimerFired(key))
        return key

    def read(self) -> list[tuple[int, bytes | None]]:
        """What was delivered since."""
        read = [(record.offset, record.value) for record in self.reader.delivered]
        self.reader.delivered.clear()
        return read


def at(base: int, *values: int) -> bytes:
    """A batch in the log."""
    return with_leader_fields(batch_of(values), base_offset=base, leader_epoch=2)


@pytest.mark.parametrize(("beginning", "asked"), [(True, kafka.EARLIEST), (False, kafka.LATEST)])
def test_it_begins_where_it_was_told(beginning, asked):
    """Rule: the leader says where the log starts, or ends, and that is where the first fetch asks; the trace
    says `assign`."""
    desk = ReaderDesk(from_beginning=beginning)
    assert desk.request.timestamp == asked
    desk.listed(7)
    assert desk.request.partitions[0].offset == 7
    (row,) = desk.rows
    assert (row.function, row.argument) == (Function.ASSIGN, "seek_to_beginning" if beginning else None)


def test_it_reads_on_without_a_gap_or_a_repetition():
    """Rule: each fetch asks for what follows; records before the position, of a batch that it lies in, are
    left out."""
    desk = ReaderDesk()
    desk.listed(1)
    desk.fetched(at(0, 5, 6, 7) + at(3, 8), end=4)
    assert desk.read() == [(1, b"6"), (2, b"7"), (3, b"8")]
    assert desk.request.partitions[0].offset == 4
    row = desk.rows[-1]
    assert (row.offset, row.end_offset, [record.value for record in row.records]) == (1, 4, [6, 7, 8])
    assert row.invoke_time <= row.completion_time


def test_repeated_empty_answers_are_no_news():
    """Rule: an idle reader fills no history; the first empty poll at an end says that there is nothing
    more."""
    desk = ReaderDesk()
    desk.listed(0)
    for _ in range(3):
        desk.fetched(end=0)
    assert [row.function for row in desk.rows] == [Function.ASSIGN, Function.POLL]


def test_a_value_id_travels_in_a_header():
    """Rule: two records with one text are two records; the trace names them by their ids."""
    desk = ReaderDesk()
    desk.listed(0)
    same = [Record(n, 0, b"k", b"text", (Header(VALUE_ID, b"%d" % (90 + n)),)) for n in range(2)]
    desk.fetched(encode_batch(same, base_offset=0, leader_epoch=2), end=2)
    assert [record.value for record in desk.rows[-1].records] == [90, 91]
    assert desk.read() == [(0, b"text"), (1, b"text")]


@pytest.mark.parametrize("reset", ["earliest", "latest"])
def test_out_of_range_starts_again_where_the_policy_says(reset):
    """Rule (auto.offset.reset)."""
    desk = ReaderDesk(reset=reset)
    desk.listed(3)
    desk.fetched(error=ErrorCode.OFFSET_OUT_OF_RANGE)
    desk.fire()
    desk.arrive(ReaderDesk.told(desk.request.correlation_id, 1, 0))
    assert desk.request.timestamp == (kafka.EARLIEST if reset == "earliest" else kafka.LATEST)


def test_an_error_asks_who_leads_after_a_rest():
    """Rule (LIVE): another leader is found, and the position stays."""
    desk = ReaderDesk()
    desk.listed(3)
    desk.fetched(error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert desk.fire()[0] == "read_backoff"
    desk.arrive(ReaderDesk.told(desk.request.correlation_id, 2, 1))
    assert (desk.sent[-1][0], desk.request.partitions[0].offset) == (2, 3)
    assert desk.request.partitions[0].leader_epoch == 1


def test_a_damaged_answer_is_asked_for_again():
    """Rule: bytes that are no batch deliver nothing, and move nothing."""
    desk = ReaderDesk()
    desk.listed(0)
    spoilt = bytearray(at(0, 5))
    spoilt[-1] ^= 1
    desk.fetched(bytes(spoilt), end=1)
    assert desk.read() == [] and desk.reader.readings[T0].position == 0
    assert desk.fire()[0] == "read_backoff"


def test_silence_is_noticed_and_a_late_answer_ignored():
    """Rule: each request has its time; what comes after it counts for nothing."""
    desk = ReaderDesk()
    desk.listed(0)
    late = desk.request
    while desk.fire()[0] != "read_request":
        pass
    part = kafka.FetchedPartition(
        partition=T0, error=ErrorCode.NONE, leader_epoch=2, high_watermark=1, records=at(0, 5)
    )
    desk.arrive(kafka.FetchResponse(correlation_id=late.correlation_id, partitions=(part,)))
    assert desk.read() == []


def test_partitions_are_read_side_by_side():
    """Rule: one that has no leader holds up no other; each is a process of the trace, as their fetches
    overlap."""
    desk = ReaderDesk(T0, T1)
    asked = [message.partition for _, message in desk.sent if isinstance(message, kafka.ListOffsetsRequest)]
    assert asked == [T0, T1]
    assert [row.process for row in desk.rows] == [0, 1]


def test_metadata_that_never_comes_is_asked_of_everybody():
    """Rule (LIVE): one broker after another."""
    desk = ReaderDesk()
    desk.listed(error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    targets = []
    while len(targets) < 3:
        desk.fire()
        if isinstance(desk.request, kafka.MetadataRequest):
            targets.append(desk.sent[-1][0])
    assert set(targets) == {1, 2, 3}
