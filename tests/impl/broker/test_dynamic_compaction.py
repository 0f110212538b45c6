"""cleanup.policy that changes while brokers run (docs/spec/cluster.md Z, KIP-58): a cleaner begins, gaps are
no damage from then on, and a restart knows that."""

import pytest
from impl_lab import T0, Lab, runs_of

from fencepost.impl.broker.parts import Parts
from fencepost.impl.log.checkpoint.log_checkpoints import read_offsets
from fencepost.impl.log.layout import CLEANER_OFFSETS
from fencepost.impl.log.log_directory import LogDirectory
from fencepost.impl.log.values import batch_of
from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.traces.events import Name
from fencepost.traces.kafka_names.outcomes import ErrorCode
from fencepost.traces.plan import TopicOptions
from tests.impl.broker.test_dynamic_config import alter, applied

SMALL = TopicOptions(segment_bytes=100, min_cleanable_dirty_ppm=0, retention_ms=400_000)
CLEAN = [(1, 1, (12,)), (1, 3, (14, 15))]
"""What compaction leaves of the records of `fill`: leader epoch, offset, values."""


def lab_of(parts: Parts | None = None) -> Lab:
    """Two brokers of a topic that is not compacted by plan."""
    return Lab(2, topic=SMALL, parts=parts, log_cleaner_backoff_ms=500)


def produce(lab: Lab, value: int, key: str = "", *, tombstone: bool = False) -> ErrorCode:
    """One record; what the leader says."""
    records = batch_of((value,), key=key, tombstone=tombstone)
    request = kafka.ProduceRequest(correlation_id=value, partition=T0, acks=1, records=records, timeout=0)
    return lab.ask(1, request).error


def fill(lab: Lab) -> None:
    """Broker 1 alone leads and takes five records; the segments of all but the last can be cleaned."""
    lab.lead(1, 1, isr=(1,), replicas=(1, 2), live=(1,))
    for value, key in ((11, "a"), (12, "b"), (13, "a"), (14, "a"), (15, "c")):
        assert produce(lab, value, key, tombstone=value == 12) is ErrorCode.NONE


def follow(lab: Lab) -> None:
    """Broker 2 follows, and fetches what there is."""
    lab.led(1, 1, isr=(1,), replicas=(1, 2), live=(1, 2), to=(2,)).settle()
    lab.advance(1_500, settle=True)


def compacted() -> Lab:
    """An operator has the topic compacted while both brokers run; broker 1 does it."""
    lab = lab_of()
    fill(lab)
    lab.advance(2_000, nodes=(1,))
    assert lab.recorded(Name.COMPACTED) == []
    alter(lab, cleanup_policy="compact")
    lab.advance(2_000, nodes=(1,))
    return lab


def test_z_compaction_begins_when_an_operator_asks_for_it() -> None:
    """Rule (Z, cleanup.policy): brokers that began without a compacted topic clean its logs as soon as they
    are told, say so in an event, and go on being leader and follower with the gaps."""
    lab = compacted()
    assert [applied(lab, node) for node in (1, 2)] == [[{"cleanup.policy": "compact"}]] * 2
    assert lab.recorded(Name.COMPACTED, 1)[-1].offset == 4
    assert runs_of(lab.partition(1).log) == CLEAN
    follow(lab)
    assert runs_of(lab.partition(2).log) == CLEAN and lab.recorded(Name.FOLLOWER_FAILED) == []


def test_z_a_compacted_topic_refuses_records_without_a_key() -> None:
    """Rule (Kafka's LogValidator): the cleaner would drop them, though they were acknowledged; without
    compaction they are taken."""
    lab = lab_of()
    fill(lab)
    assert produce(lab, 21) is ErrorCode.NONE
    alter(lab, cleanup_policy="compact")
    assert produce(lab, 22) is ErrorCode.INVALID_RECORD and produce(lab, 23, "d") is ErrorCode.NONE
    alter(lab)
    assert produce(lab, 24) is ErrorCode.NONE


class Forgetful(LogDirectory):
    """Planted: nothing on the disk tells of the gaps that an operator allowed."""

    def may_have_gaps(self, key: TopicPartition) -> bool:
        return False


@pytest.mark.parametrize("stop", ["crash", "power_loss"])
@pytest.mark.parametrize("who", [1, 2])
def test_z_a_restart_takes_no_gap_for_damage(stop: str, who: int) -> None:
    """Rule (Z, cleanup.policy): a log is opened before any configuration is read; leader and follower find
    theirs with its gaps. A broker that is not told of them cuts what it compacted (a follower's gaps lie
    inside of segments that nobody reads again)."""
    lab = compacted()
    follow(lab)
    for log in (lab.partition(1).log, lab.partition(2).log):
        log.flush()
    getattr(lab, stop)(who)
    assert read_offsets(lab.drivers[who].disk, CLEANER_OFFSETS).keys() == {T0}
    lab.start(who)
    assert lab.recorded(Name.LOG_RECOVERED, who)[-1].offset == 5
    assert runs_of(lab.partition(who).log) == CLEAN
    assert lab.partition(who).log.options.compact
    getattr(lab, stop)(1)
    lab.start(1, Parts(log_directory=Forgetful))
    assert lab.recorded(Name.LOG_RECOVERED, 1)[-1].offset < 5


def test_z_what_was_compacted_may_be_deleted_again() -> None:
    """Rule (Z, cleanup.policy): without the override nothing is cleaned any more and retention deletes; the
    gaps stay what they are. A broker that starts deletes nothing before it has read whether the topic is
    still compacted."""
    lab = compacted()
    passes = len(lab.recorded(Name.COMPACTED, 1))
    lab.crash(1)
    lab.hold_zookeeper(1)
    lab.start(1)
    options = lab.partition(1).log.options
    assert not options.delete and not options.compact and options.has_gaps
    lab.reconnect(1)
    assert lab.partition(1).log.options.compact
    alter(lab)
    options = lab.partition(1).log.options
    assert options.delete and not options.compact and options.has_gaps
    lab.restart(1)
    assert lab.partition(1).log.options == options and runs_of(lab.partition(1).log) == CLEAN
    lab.advance(2_000, nodes=(1,))
    assert len(lab.recorded(Name.COMPACTED, 1)) == passes


@pytest.mark.parametrize("again", [False, True])
def test_z_a_follower_that_never_heard_of_a_compaction_takes_its_gaps(again: bool) -> None:
    """Rule (Z, cleanup.policy): the policy was changed, and changed back, while the follower could not know.
    The gaps of its leader are no damage, after a restart neither."""
    lab = lab_of()
    fill(lab)
    lab.hold_zookeeper(2)
    alter(lab, cleanup_policy="compact")
    lab.advance(2_000, nodes=(1,))
    if again:
        alter(lab)
        lab.reconnect(2).settle()
    follow(lab)
    assert runs_of(lab.partition(2).log) == CLEAN and lab.recorded(Name.FOLLOWER_FAILED, 2) == []
    lab.partition(2).log.flush()
    lab.restart(2)
    assert runs_of(lab.partition(2).log) == CLEAN
