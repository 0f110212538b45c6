"""Replicas that clean by clocks of their own, and copy one another meanwhile: what a reader finds by key."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_lab import batch, disk_of, open_log, options, records

from fencepost.bugs.storage.removing import TombstonesGoAtOnce
from fencepost.impl.log.cleaner import Cleaner
from fencepost.impl.log.segmented_log import SegmentedLog

RETENTION_MS = 100
COMPACT = options(compact=True, delete=False, delete_retention_ms=RETENTION_MS, segment_bytes=160)
WRITES = st.tuples(st.sampled_from("abc"), st.booleans())
STEPS = st.lists(
    st.one_of(
        WRITES,
        st.tuples(st.just("copies"), st.integers(1, 4)),
        st.tuples(st.just("leader cleans"), st.integers(0, 3)),
        st.tuples(st.just("follower cleans"), st.integers(0, 10 * RETENTION_MS)),
    ),
    max_size=30,
)


def by_key(log: SegmentedLog) -> dict[bytes, bytes]:
    """What a reader of all of the log has in the end: the last value of each key."""
    values: dict[bytes, bytes | None] = {record.key: record.value for record in records(log)}
    return {key: value for key, value in values.items() if value is not None}


def copy(leader: SegmentedLog, follower: SegmentedLog, batches: int) -> None:
    """The follower fetches so many batches."""
    for header, data in leader.batches():
        if header.last_offset >= follower.log_end_offset and batches:
            follower.append_as_follower(data[header.position : header.end_position])
            batches -= 1


def clean(log: SegmentedLog, now_ms: int, cleaner: type[Cleaner] = Cleaner) -> None:
    """One pass over all of a log, as after the loss of the cleaner's checkpoint."""
    log.roll()
    cleaner(log).clean(first_dirty_offset=0, high_watermark=log.log_end_offset, now_ms=now_ms)


def run(steps: list[tuple[str, int]], cleaner: type[Cleaner]) -> tuple[dict[bytes, bytes], SegmentedLog]:
    """What was written last under each key, and a follower that has copied all there was. The leader's
    passes all fall into one delete.retention.ms; the follower's clock shows any time."""
    leader, follower = (open_log(disk_of(), options=COMPACT) for _ in range(2))
    truth: dict[bytes, bytes] = {}
    for number, (step, value) in enumerate(steps):
        if step == "copies":
            copy(leader, follower, value)
        elif step == "leader cleans":
            clean(leader, value, cleaner)
        elif step == "follower cleans":
            clean(follower, value)
        else:
            key, record = step.encode(), b"%d" % number if value else None
            leader.append_as_leader(batch(record, keys=[key], at=number), 0)
            truth = {**truth, key: record} if record else {k: v for k, v in truth.items() if k != key}
    copy(leader, follower, len(steps))
    return truth, follower


@given(STEPS)
def test_a_replica_that_copies_in_time_has_the_last_value_of_each_key_whatever_its_clock(steps):
    """Rule KIP-534: a pass removes what is older than a tombstone before the tombstone, so that a replica
    whose clock is wrong, or that copied the time of removal from its leader, shows no older value again."""
    truth, follower = run(steps, Cleaner)
    assert by_key(follower) == truth
    clean(follower, 20 * RETENTION_MS)
    assert by_key(follower) == truth


MISSED = [("a", 1), ("b", 1), ("copies", 1), ("a", 0), ("b", 1), ("leader cleans", 0), ("leader cleans", 1)]


@pytest.mark.parametrize("cleaner", [Cleaner, TombstonesGoAtOnce])
def test_a_tombstone_that_goes_before_its_time_leaves_an_older_value_at_a_replica(cleaner):
    """Rule KAFKA-4529: the time of a tombstone is what the replica that copies has. Planted: it keeps what
    the leader has no more."""
    truth, follower = run(MISSED, cleaner)
    assert by_key(follower) == (truth if cleaner is Cleaner else {**truth, b"a": b"0"})


def test_a_replica_that_copies_for_longer_may_keep_an_older_value():
    """An accepted hazard, as in Kafka: delete.retention.ms bounds whoever reads the log from its start, a
    replica like a consumer. With 0 ms any two passes during a copy may do it."""
    truth, follower = run([*MISSED[:-1], ("leader cleans", RETENTION_MS)], Cleaner)
    assert truth.keys() == {b"b"}
    assert by_key(follower) == {**truth, b"a": b"0"}
