"""What a replica's directory holds when a run is over: a healthy one has the files of its log and no others,
and indexes that point at its batches; a planted fault is found."""

from collections.abc import Callable

import pytest

from fencepost.campaign.run.run import Run
from fencepost.checkers.meantime import judge
from fencepost.impl.log.index.offset_index import OffsetIndex
from fencepost.impl.log.index.time_index import TimeIndex
from fencepost.sim.disk import Disk
from fencepost.traces.plan import ClusterOptions, Fault, Plan, PlannedOperation, TopicOptions


def seen() -> list[str]:
    """What is found in a run with many small segments, of which retention deletes most, and a crash."""
    topic = TopicOptions(segment_bytes=900, retention_bytes=2_500, index_interval_bytes=0, flush_messages=1)
    plan = Plan(
        seed=9,
        safety_ms=9_000,
        cluster=ClusterOptions(
            topics=(topic,), log_retention_check_interval_ms=500, zookeeper_session_timeout_ms=1_500
        ),
        operations=tuple(
            PlannedOperation(op_id=n, process=n % 2, at_ms=60 * n, function="append", records=2)
            for n in range(1, 120)
        ),
        faults=(Fault(fault_id=0, kind="crash", at_ms=3_000, duration_ms=1_000, target="leader of t-0"),),
    )
    found = judge(Run(plan).run()).findings
    assert {one.anomaly for one in found} <= {"directory_disagrees"}
    return [one.seen for one in found]


def test_a_healthy_directory_has_the_files_of_its_log() -> None:
    """Rule (AGREED): after rolls, deletions and a recovery."""
    assert seen() == []


def _kept(remove: Callable[[Disk, str], None]) -> Callable[[Disk, str], None]:
    return lambda disk, path: None if path.endswith(".timeindex") else remove(disk, path)


def test_a_file_without_a_segment_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule (AGREED): what a deletion forgets stays for ever."""
    monkeypatch.setattr(Disk, "remove", _kept(Disk.remove))
    assert any(".timeindex" in one for one in seen())


def test_an_index_entry_that_points_elsewhere_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule (AGREED): a search that begins too late would skip records."""
    append = OffsetIndex.append
    monkeypatch.setattr(
        OffsetIndex, "append", lambda self, offset, position: append(self, offset + 1, position)
    )
    assert any("offset index" in one for one in seen())


def test_a_time_that_no_batch_has_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule (AGREED): the same of searches by time."""
    append = TimeIndex.append
    monkeypatch.setattr(TimeIndex, "append", lambda self, time_ms, offset: append(self, time_ms + 1, offset))
    assert any("time index" in one for one in seen())
