"""A partition asserts 0 <= log start <= high watermark <= log end after each operation that could break it,
once the events that say so are recorded."""

import pytest
from impl_lab import T0, Lab

from fencepost.bugs.replication.kafka_3978 import TakesAnyHighWatermark
from fencepost.bugs.replication.kafka_9491 import LeavesTheHighWatermarkBehind
from fencepost.bugs.storage.removing import DeletesWhatIsNotCommitted
from fencepost.impl.broker.parts import Parts
from fencepost.impl.core.core_interface import RecordEvent
from fencepost.impl.core.failures import StepFailedError
from fencepost.traces.events import Name
from fencepost.traces.plan import TopicOptions

SMALL = TopicOptions(segment_bytes=100, retention_bytes=150)
ALWAYS = "is not between the log start"


def partition_of(parts=None):
    """The only replica of t-0, which holds two committed records, and its lab."""
    lab = Lab(brokers=1, parts=parts or Parts())
    lab.led(1, 0, isr=(1,), replicas=(1,), live=(1,)).settle()
    for value in (11, 12):
        lab.replicate(1, value)
    partition = lab.partition(1)
    assert (partition.high_watermark, partition.log.log_end_offset) == (2, 2)
    partition.broker_context.outbox = []
    return partition, lab


def recorded(partition):
    """The events of the outbox: name, cause and the three offsets."""
    events = [
        effect.at(0, 1) for effect in partition.broker_context.outbox if isinstance(effect, RecordEvent)
    ]
    return [(event.name, event.cause, event.log_start_offset, event.high_watermark) for event in events]


@pytest.mark.parametrize("offset", [3, -1])
def test_a_high_watermark_outside_the_log_is_recorded_then_asserted(offset):
    """Rule: what moved is in the record, then the three offsets, and only then the assertion ends the
    broker."""
    partition, _ = partition_of(Parts(partition=TakesAnyHighWatermark))
    with pytest.raises(
        AssertionError, match=f"t-0: the high watermark {offset} {ALWAYS} 0 and the log end 2"
    ):
        partition.set_high_watermark(offset, cause="follower")
    assert recorded(partition) == [
        (Name.HIGH_WATERMARK, "follower", -1, offset),
        (Name.LOG_START, "bounds", 0, offset),
    ]


@pytest.mark.parametrize("start", [1, 7])
def test_a_full_truncation_that_leaves_the_high_watermark_is_asserted(start):
    """Rule (KAFKA-9491): the new start is recorded, then the assertion. Both ways out of the log."""
    partition, _ = partition_of(Parts(partition=LeavesTheHighWatermarkBehind))
    with pytest.raises(AssertionError, match=f"{ALWAYS} {start} and the log end {start}"):
        partition.truncate_fully_and_start_at(start)
    assert [name for name, *_ in recorded(partition)] == [Name.TRUNCATED, Name.LOG_START, Name.LOG_START]


@pytest.mark.parametrize("operation", ["truncate_to", "advance_log_start_offset"])
def test_every_operation_that_changes_it_looks(operation):
    """Rule: a bound that was broken elsewhere is found by the next operation on the partition."""
    partition, _ = partition_of(Parts(partition=TakesAnyHighWatermark))
    partition.high_watermark = -1 if operation == "truncate_to" else 9
    with pytest.raises(AssertionError, match=ALWAYS):
        if operation == "truncate_to":
            partition.truncate_to(2, cause="leader_epoch")
        else:
            partition.advance_log_start_offset(1, cause="leader")


def test_a_checkpoint_that_is_believed_is_asserted_after_the_recovery_is_recorded():
    """Rule (KAFKA-3978): the process ends at its start, and its log_recovered names what it believed."""
    partition, lab = partition_of()
    partition.high_watermark = 9
    lab.core(1).replicas.checkpoint()
    with pytest.raises(StepFailedError) as failed:
        lab.restart(1, Parts(partition=TakesAnyHighWatermark))
    names = [event.name for event in failed.value.recorded]
    assert names[-2:] == [Name.LOG_RECOVERED, Name.LOG_START]
    assert ALWAYS in str(failed.value.__cause__)


def test_retention_beyond_the_high_watermark_is_asserted():
    """Rule (KAFKA-5634): the start that retention moved is recorded, then the assertion."""
    lab = Lab(brokers=2, topic=SMALL, parts=Parts(retention=DeletesWhatIsNotCommitted))
    lab.led(1, 0, isr=(1, 2), replicas=(1, 2), live=(1, 2)).settle()
    for value in range(11, 17):
        lab.produce(1, value)
    leader = lab.partition(1)
    leader.broker_context.outbox = []
    with pytest.raises(AssertionError, match=ALWAYS):
        lab.core(1).log_manager.retain()
    assert [cause for name, cause, *_ in recorded(leader) if name is Name.LOG_START] == [
        "retention",
        "bounds",
    ]
    assert leader.key == T0


def test_a_healthy_partition_says_nothing_more():
    """The control: its operations record what they did, once."""
    partition, _ = partition_of()
    partition.truncate_to(1, cause="leader_epoch")
    partition.truncate_fully_and_start_at(5)
    assert all(cause != "bounds" for _, cause, *_ in recorded(partition))
    assert partition.high_watermark == partition.log.log_start_offset == 5
