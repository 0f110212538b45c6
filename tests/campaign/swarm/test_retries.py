"""Disks that fail for a moment while producers insist: the profile `retries`, which was made to reach
KAFKA-6683 (tests/bugs/test_bugs.py)."""

from functools import cache

import pytest
from alone import alone

from fencepost.bugs.storage.appending import ProducersFirst
from fencepost.campaign.swarm.chain_rows import CHANGING, FAILS
from fencepost.checkers.judges import judge
from fencepost.impl.log.batch.record_batch import Record, encode_batch
from fencepost.impl.log.log_options import LogOptions
from fencepost.impl.log.segmented_log import LogOfflineError, SegmentedLog
from fencepost.run.simulated.run import run
from fencepost.sim.disk import Disk
from fencepost.sim.disk_faults import DiskCall
from fencepost.sim.randomness import Randomness
from fencepost.traces.events import Name
from fencepost.traces.plan import Plan


@cache
def plans() -> list[Plan]:
    return [alone(seed, "retried") for seed in range(20)]


def test_disks_fail_for_a_moment_in_a_write_or_a_sync() -> None:
    """Rule: a failure ends before the session of whoever it took down, so that no other broker takes its
    place; it meets one of the calls that an append makes, of a leader mostly, and mostly right behind an
    append."""
    faults = [(plan, fault) for plan in plans() for fault in plan.faults]
    for plan, fault in faults:
        assert fault.kind == FAILS and fault.parameter in CHANGING
        assert fault.duration_ms <= plan.cluster.zookeeper_session_timeout_ms
    assert {fault.follows for _, fault in faults} == {"", "appended"}
    assert {fault.parameter % 3 for _, fault in faults} == {0, 1}
    assert 2 * sum(fault.follows == "appended" for _, fault in faults) > len(faults) > 10 * len(plans())
    assert 2 * sum(fault.target == "leader of t-0" for _, fault in faults) > len(faults)


def test_most_topics_live_on_one_broker_and_roll_with_nearly_every_batch() -> None:
    """Rule: a retry meets the log of the first attempt where no other replica can lead; the others have a
    replica on each broker."""
    factors = [plan.cluster.topics[0].replication_factor for plan in plans()]
    assert {1, 3} <= set(factors) <= {1, 3, 4, 5} and factors.count(1) > len(plans()) // 2
    for plan in plans():
        assert plan.cluster.topics[0].segment_bytes <= 250 and plan.client.producer.pipelined
        assert plan.client.delivery_timeout_ms > 3 * plan.cluster.zookeeper_session_timeout_ms


def test_disks_do_fail_within_appends() -> None:
    """Rule: in most runs a broker halts because of its disk, several times, and is back: appends are
    acknowledged after it."""
    failed = [run(plan).events for plan in plans()[:6]]
    often = [sum(event.name is Name.LOG_DIRECTORY_FAILED for event in events) for events in failed]
    assert sum(count >= 2 for count in often) >= 4


def produced(sequence: int) -> bytes:
    """A batch of one record of the producer 7."""
    numbers = {"producer_id": 7, "producer_epoch": 0, "base_sequence": sequence}
    return encode_batch([Record(0, 0, None, b"v")], base_offset=0, leader_epoch=-1, **numbers)


def ahead(log_type: type[SegmentedLog], call: DiskCall, nth: int) -> bool | None:
    """The second batch of a synced log begins a segment, and the nth call of this kind fails. Whether the log
    that is opened then takes the retry for a duplicate of a batch that it does not have; None if the append
    made fewer calls."""
    disk = Disk(node=1, randomness=Randomness(1))
    options = LogOptions(contiguous=True, segment_bytes=80)
    log = log_type.open(disk, "t-0", options=options)
    log.append_as_leader(produced(0), 0)
    log.flush()
    disk.fail_calls(call, nth=nth)
    try:
        log.append_as_leader(produced(1), 0)
    except LogOfflineError:
        log.abandon()
        disk.heal()
        again = log_type.open(disk, "t-0", options=options, recovery_point=1)
        end = again.log_end_offset
        known = again.append_as_leader(produced(1), 0)
        return known.duplicate and known.last_offset >= end
    return None


def test_whichever_call_of_an_append_fails_its_retry_is_no_duplicate() -> None:
    """Rule (KAFKA-6683): a log that is opened after a failed append knows of no batch that it does not hold.
    With the bug it does, from the moment that the new segment has a name until the batch is written: one sync
    and one write out of those that the append makes."""
    calls = [(call, nth) for call in (DiskCall.WRITE, DiskCall.SYNC) for nth in range(1, len(CHANGING) // 2)]
    assert [at for at in calls if ahead(SegmentedLog, *at)] == []
    assert sorted(at[0] for at in calls if ahead(ProducersFirst, *at)) == [DiskCall.SYNC, DiskCall.WRITE]
    assert None in [ahead(SegmentedLog, DiskCall.WRITE, nth) for nth in range(1, len(CHANGING) // 2)]


def test_fewer_kinds_may_be_asked_for() -> None:
    """Rule: --faults narrows the profile; with disks that work there are only the faults that were asked
    for."""
    assert {
        fault.kind for seed in range(4) for fault in alone(seed, "retried", faults=("crash",)).faults
    } == {"crash"}


@pytest.mark.parametrize("seed", [0, 7])
def test_nothing_is_found_in_a_healthy_cluster(seed: int) -> None:
    """Rule: a failing disk shows nothing where no protection is missing."""
    assert not [one for verdict in judge(run(alone(seed, "retried"))) for one in verdict.findings]
