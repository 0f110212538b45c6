"""The life of a log inside a broker: retention, compaction, log starts that travel, clean stops, disks that
fail."""

import pytest
from impl_lab import MILLISECOND, T0, Lab, runs_of

from fencepost.impl.core.core_interface import StopRequested
from fencepost.impl.log.layout import CLEAN_SHUTDOWN
from fencepost.impl.log.values import batch_of
from fencepost.impl.messages import broker_api as kafka
from fencepost.sim.disk_faults import DiskCall
from fencepost.traces.events import Name
from fencepost.traces.kafka_names.outcomes import ErrorCode
from fencepost.traces.plan import TopicOptions

SMALL = TopicOptions(segment_bytes=100, retention_bytes=150)
"""A segment holds one batch, and two segments are kept."""


def lab_of(topic: TopicOptions, brokers: int = 2, **options: int) -> Lab:
    """Brokers that keep t-0 under these options; broker 1 leads, all are in the ISR."""
    nodes = tuple(range(1, brokers + 1))
    lab = Lab(brokers=brokers, topic=topic, log_retention_check_interval_ms=1_000, **options).led(
        1, 0, isr=nodes, replicas=nodes, live=nodes
    )
    return lab.settle()


def produce(lab: Lab, *values: int) -> None:
    """Batches of one record each, replicated."""
    for value in values:
        lab.replicate(1, value)


def starts(lab: Lab) -> list[int]:
    """Where the log starts, by broker."""
    return [lab.partition(node).log.log_start_offset for node in (1, 2)]


def delete_records(lab: Lab, offset: int) -> kafka.DeleteRecordsResponse:
    """As a client, of the leader."""
    return lab.ask(1, kafka.DeleteRecordsRequest(correlation_id=-77, partition=T0, offset=offset))


def test_retention_runs_at_leader_and_follower_and_stops_at_the_high_watermark() -> None:
    """Rule (L4): old segments go, at every replica by its own high watermark, and none that is not below
    it."""
    lab = lab_of(SMALL)
    produce(lab, 11, 12, 13, 14, 15)
    lab.crash(2)
    for value in (16, 17, 18, 19):
        lab.produce(1, value)
    lab.advance(1_500, nodes=(1,))
    leader = lab.partition(1)
    assert 0 < leader.log.log_start_offset <= leader.high_watermark == 5
    moved = lab.recorded(Name.LOG_START, 1)[-1]
    assert (moved.log_start_offset, moved.high_watermark) == (leader.log.log_start_offset, 5)


def test_a_follower_takes_over_the_log_start_of_its_leader() -> None:
    """Rule: what a leader has deleted (here DeleteRecords, KIP-107) is deleted at its followers with their
    next fetch."""
    lab = lab_of(TopicOptions())
    produce(lab, 11, 12, 13)
    assert delete_records(lab, 4).error is ErrorCode.OFFSET_OUT_OF_RANGE
    assert delete_records(lab, 2).low_watermark == 2
    produce(lab, 14)
    assert starts(lab) == [2, 2]
    assert lab.fetch(1, 1).error is ErrorCode.OFFSET_OUT_OF_RANGE
    earliest = kafka.ListOffsetsRequest(correlation_id=-78, partition=T0, timestamp=kafka.EARLIEST)
    assert lab.ask(1, earliest).offset == 2


def test_a_follower_that_ends_below_its_leaders_log_starts_over_there() -> None:
    """Rule (KAFKA-2143, KAFKA-9491): it drops its log, begins at the leader's log start, and its high
    watermark goes along."""
    lab = lab_of(SMALL)
    produce(lab, 11)
    lab.crash(2)
    lab.lead(1, 1, isr=(1,), replicas=(1, 2), live=(1,))
    for value in range(12, 20):
        lab.produce(1, value)
    lab.advance(1_500, nodes=(1,))
    start = lab.partition(1).log.log_start_offset
    assert start > 2
    lab.start(2)
    lab.led(1, 1, isr=(1,), replicas=(1, 2), live=(1, 2), to=(2,)).settle()
    lab.advance(3_000, settle=True)
    follower = lab.partition(2)
    assert lab.recorded(Name.TRUNCATED, 2)[-1].cause == "full"
    assert follower.log.log_start_offset == start and lab.values(2) == lab.values(1)
    begun = next(event for event in lab.recorded(Name.LOG_START, 2) if event.cause == "truncated")
    assert begun.high_watermark == begun.log_start_offset == start


def test_a_new_replica_begins_inside_a_batch() -> None:
    """Rule (KAFKA-6975): where the leader's log starts inside a batch, a replica that begins there takes the
    whole batch."""
    lab = lab_of(TopicOptions())
    lab.replicate(1, 11, 12, 13)
    lab.crash(2)
    lab.lead(1, 1, isr=(1,), replicas=(1, 2), live=(1,))
    delete_records(lab, 2)
    disk = lab.drivers[2].disk
    for name in disk.list("t-0"):
        disk.remove(f"t-0/{name}")
    lab.start(2)
    lab.led(1, 1, isr=(1,), replicas=(1, 2), live=(1, 2), to=(2,)).settle()
    lab.advance(3_000, settle=True)
    assert lab.partition(2).log.log_end_offset == 3 and starts(lab) == [2, 2]
    assert lab.recorded(Name.FOLLOWER_FAILED) == []


def test_a_log_that_ends_inside_a_batch_that_its_leader_gave_up_begins_anew() -> None:
    """Rule: the leader's first epoch begins at its log start, so that epochs keep what lies below; there the
    logs may have parted (storage seed 976)."""
    lab = lab_of(TopicOptions())
    lab.crash(1)
    lab.lead(2, 1, isr=(2,), replicas=(1, 2), live=(2,))
    lab.produce(2, 21)
    lab.produce(2, 22)
    lab.crash(2)
    lab.start(1)
    lab.lead(1, 2, isr=(1,), replicas=(1, 2), live=(1,))
    lab.produce(1, 31, 32, 33)
    lab.settle(1)
    assert delete_records(lab, 2).low_watermark == 2
    lab.start(2)
    lab.led(1, 2, isr=(1,), replicas=(1, 2), live=(1, 2), to=(2,)).settle()
    lab.advance(3_000, settle=True)
    assert lab.recorded(Name.FOLLOWER_FAILED) == []
    assert lab.recorded(Name.TRUNCATED, 2)[-1].cause == "full"
    assert starts(lab) == [2, 2] and lab.values(2) == lab.values(1) == [31, 32, 33]


def test_compaction_runs_below_the_high_watermark_and_is_replicated() -> None:
    """Rule (KIP-58): the latest record of each key stays; a follower that fetches later takes the gaps as
    they are."""
    lab = lab_of(
        TopicOptions(segment_bytes=100, cleanup_policy="compact", min_cleanable_dirty_ppm=0),
        log_cleaner_backoff_ms=500,
    )
    lab.crash(2)
    lab.lead(1, 1, isr=(1,), replicas=(1, 2), live=(1,))
    for value, key in ((11, "a"), (12, "b"), (13, "a"), (14, "a"), (15, "c")):
        records = batch_of((value,), key=key, tombstone=value == 12)
        lab.ask(
            1, kafka.ProduceRequest(correlation_id=value, partition=T0, acks=1, records=records, timeout=0)
        )
    lab.advance(600, nodes=(1,))
    assert lab.recorded(Name.COMPACTED, 1)[-1].offset == 4
    assert runs_of(lab.partition(1).log) == [(1, 1, (12,)), (1, 3, (14, 15))]
    lab.start(2)
    lab.led(1, 1, isr=(1,), replicas=(1, 2), live=(1, 2), to=(2,)).settle()
    lab.advance(1_500, settle=True)
    assert runs_of(lab.partition(2).log) == runs_of(lab.partition(1).log)


def test_a_clean_stop_leaves_a_marker_and_the_next_start_trusts_it() -> None:
    """Rule (L3, C9): SIGTERM ends with closed logs, checkpoints and the marker; the marker is gone once the
    broker has started."""
    lab = lab_of(TopicOptions())
    produce(lab, 11, 12)
    before = lab.high_watermark(2)
    lab.step(2, StopRequested())
    lab.advance(30_000, nodes=(2,))
    states = [event.cause for event in lab.recorded(Name.BROKER_STATE, 2)]
    assert (
        states[-3:] == ["PendingControlledShutdown", "BrokerShuttingDown", "NotRunning"]
        and lab.drivers[2].core is None
    )
    assert lab.drivers[2].disk.exists(CLEAN_SHUTDOWN)
    lab.start(2)
    assert lab.core(2).replicas.logs.clean and not lab.drivers[2].disk.exists(CLEAN_SHUTDOWN)
    assert lab.high_watermark(2) == before == 1
    lab.restart(2)
    assert not lab.core(2).replicas.logs.clean
    again = [event.cause for event in lab.recorded(Name.BROKER_STATE, 2)]
    assert again.count("RecoveringFromUncleanShutdown") == 1 and again.count("Starting") == 3


@pytest.mark.parametrize("call", [DiskCall.WRITE, DiskCall.SYNC])
def test_a_broker_whose_disk_fails_answers_what_it_can_and_halts(call: DiskCall) -> None:
    """Rule: the only log directory failed: KAFKA_STORAGE_ERROR for the append under way, then the process
    ends; a restart recovers."""
    lab = lab_of(TopicOptions(flush_messages=1))
    produce(lab, 11)
    lab.drivers[1].disk.fail_calls(call)
    assert lab.produce(1, 12).error is ErrorCode.KAFKA_STORAGE_ERROR
    assert lab.drivers[1].core is None
    assert "Input/output error" in lab.recorded(Name.LOG_DIRECTORY_FAILED, 1)[0].detail
    lab.drivers[1].disk.heal()
    lab.start(1)
    assert lab.values(1)[:1] == [11]


def test_a_checkpoint_that_cannot_be_written_halts_the_broker() -> None:
    """Rule: a plain OSError outside the logs counts as the failure of the directory, too."""
    lab = lab_of(TopicOptions())
    produce(lab, 11)
    lab.drivers[2].disk.fail_calls(DiskCall.WRITE, path="replication-offset-checkpoint.tmp")
    lab.advance(6_000, nodes=(2,))
    assert lab.drivers[2].core is None and lab.recorded(Name.LOG_DIRECTORY_FAILED, 2)


def test_time_moves_retention() -> None:
    """Rule: retention.ms counts from the latest record of a segment."""
    lab = lab_of(TopicOptions(segment_bytes=100, retention_ms=5_000))
    for value in (11, 12):
        records = batch_of((value,), timestamp_ms=lab.now // MILLISECOND)
        lab.ask(
            1, kafka.ProduceRequest(correlation_id=value, partition=T0, acks=1, records=records, timeout=0)
        )
        lab.settle()
    lab.advance(4_000, nodes=(1,))
    assert lab.partition(1).log.log_start_offset == 0
    lab.advance(4_000, nodes=(1,))
    assert lab.partition(1).log.log_start_offset == 2 == lab.partition(1).high_watermark
