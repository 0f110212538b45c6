"""Claims of loss follow from syncs: a broker that does not sync what it should is found by what its disk
says, and a healthy one is not.

Each planted broker leaves out one call of the disk. Its acknowledged records are lost with the power, which
the claims excused as long as any power loss excused everything.
"""

import pytest
from attrs import evolve

from fencepost.bugs.storage.appending import FlushesNothing, NamesNoSegment
from fencepost.bugs.storage.log_loading_bugs import RecoversWithoutSync
from fencepost.checkers import invariants
from fencepost.checkers.judges import judge
from fencepost.checkers.verdict import combine
from fencepost.impl.broker.parts import Parts
from fencepost.impl.log.recovery import create_segment
from fencepost.impl.log.segmented_log import CLOSED, SegmentedLog
from fencepost.run.simulated import cluster_of_run
from fencepost.run.simulated.run import run
from fencepost.traces.events import Name
from fencepost.traces.plan import BudgetOptions, ClusterOptions, Fault, TopicOptions

SYNCED = {"sync_not_asked", "synced_record_lost"}


class RollsWithoutSync(SegmentedLog):
    """A roll leaves the old segment to the kernel, and says nothing else of it."""

    def roll(self) -> None:
        """Without a sync of the old segment."""
        old = self.segments.active
        if old.size:
            self.take_snapshot()
            made = create_segment(self.files, self.directory, self.log_end_offset, self.options)
            self.segments.add(made)


class ClosesWithoutSync(SegmentedLog):
    """A clean stop leaves what was appended to the kernel."""

    def close(self) -> None:
        """Only release the files."""
        self.take_snapshot()
        self.files.sync_directory(self.directory)
        self.offline = CLOSED
        self.abandon()


def lose_power(at_ms: int, *brokers: int) -> tuple[Fault, ...]:
    """The brokers lose their power at the same time."""
    return tuple(
        Fault(fault_id=number, kind="power_loss", at_ms=at_ms, duration_ms=1_000, target=f"broker {number}")
        for number in brokers
    )


def found(small_plan, monkeypatch, topic, faults, parts):
    """(anomalies of SYNCED, the trace) of a run with these parts."""
    monkeypatch.setattr(cluster_of_run, "parts_with", lambda bugs: parts)
    budget = BudgetOptions(brokers_down=3, isr_disks_lost=3, outside="allow")
    plan = small_plan(seed=3, faults=faults, budget=budget, cluster=ClusterOptions(topics=(topic,)))
    trace = run(plan)
    assert any(event.name is Name.DURABLE for event in trace.events)
    names = {finding.anomaly for finding in invariants.judge(trace).findings}
    return names & SYNCED, trace


FLUSHED = TopicOptions(flush_messages=1)
SMALL = TopicOptions(flush_messages=1, segment_bytes=300)
ROLLED = TopicOptions(segment_bytes=300)
ALONE = TopicOptions(replication_factor=1)
EVERYBODY = lose_power(5_000, 1, 2, 3)
RESTARTED = (
    Fault(fault_id=7, kind="clean_restart", at_ms=2_000, duration_ms=500, target="broker 1", parameter=500),
    *lose_power(9_500, 1),
)
CRASHED = (
    Fault(fault_id=8, kind="crash", at_ms=2_000, duration_ms=300, target="broker 1"),
    *lose_power(9_500, 1),
)
PLANTED = {
    "flush": (FLUSHED, EVERYBODY, Parts(log=FlushesNothing), "sync_not_asked"),
    "directory": (SMALL, EVERYBODY, Parts(log=NamesNoSegment), "synced_record_lost"),
    "roll": (ROLLED, EVERYBODY, Parts(log=RollsWithoutSync), "sync_not_asked"),
    "clean stop": (ALONE, RESTARTED, Parts(log=ClosesWithoutSync), "sync_not_asked"),
    "recovery": (TopicOptions(), CRASHED, Parts(log_recovery=RecoversWithoutSync), "sync_not_asked"),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_missing_sync_is_found(bug, small_plan, monkeypatch):
    """Each planted broker leaves out one call, and the disk says so."""
    topic, faults, parts, anomaly = PLANTED[bug]
    names, _ = found(small_plan, monkeypatch, topic, faults, parts)
    assert anomaly in names


@pytest.mark.parametrize("bug", PLANTED)
def test_the_same_plan_with_a_healthy_broker_finds_nothing(bug, small_plan, monkeypatch):
    """The faults alone are no finding, and neither is any loss that they cause."""
    topic, faults, _, _ = PLANTED[bug]
    names, trace = found(small_plan, monkeypatch, topic, faults, Parts())
    assert not names and combine(judge(trace)).findings == ()


def test_what_each_append_had_synced_is_not_excused(small_plan, monkeypatch):
    """With flush.messages=1 no power loss allows any loss: the disk held everything."""
    _, trace = found(small_plan, monkeypatch, FLUSHED, EVERYBODY, Parts())
    assert trace.claims.loss == ()
    _, unsynced = found(small_plan, monkeypatch, TopicOptions(), EVERYBODY, Parts())
    assert unsynced.claims.loss != (), "an option that promises nothing excuses what no sync reached"


def test_a_run_without_a_power_loss_is_recorded_as_before(small_plan):
    """The disk says nothing as long as the power stays: digests of calm runs do not change."""
    trace = run(small_plan())
    assert not any(event.name is Name.DURABLE for event in trace.events)
    assert evolve(trace.claims, loss=()) == trace.claims
