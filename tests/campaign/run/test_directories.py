"""What a replica's directory holds when a run is over: a healthy one has the files of its log and no others,
and indexes that point at its batches; a planted fault is found."""

from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve

from fencepost.campaign.run.run import Run
from fencepost.checkers.meantime import judge
from fencepost.impl.log.batch.header import BatchHeader
from fencepost.impl.log.checkpoint.epochs import LeaderEpochCache
from fencepost.impl.log.index.offset_index import OffsetIndex
from fencepost.impl.log.index.time_index import TimeIndex
from fencepost.impl.log.index.transaction_index import AbortedTransaction, TransactionIndex
from fencepost.impl.log.producer.state import ProducerState
from fencepost.sim.disk import Disk
from fencepost.traces.plan import (
    ClientOptions,
    ClusterOptions,
    Fault,
    Plan,
    PlannedOperation,
    ProducerOptions,
    TopicOptions,
)
from tests.campaign.run.test_transactions import plan as transactions
from tests.campaign.run.test_transactions import transform


def seen() -> list[str]:
    """What is found in a run of idempotent producers with many small segments, of which retention deletes
    most, and a crash."""
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
        client=ClientOptions(producer=ProducerOptions(pipelined=True, idempotent=True)),
        faults=(Fault(fault_id=0, kind="crash", at_ms=3_000, duration_ms=1_000, target="leader of t-0"),),
    )
    return found(plan)


def found(plan: Plan) -> list[str]:
    """What directories contradict when a run is over."""
    findings = judge(Run(plan).run()).findings
    return [one.seen for one in findings if one.anomaly == "directory_disagrees"]


def aborts() -> Plan:
    """A process that aborts some of its transactions."""
    return transactions(transform(5, 0), aborts_ppm=500_000)


def test_a_healthy_directory_has_the_files_of_its_log() -> None:
    """Rule (AGREED): after rolls, deletions and a recovery."""
    assert seen() == []


def _kept(remove: Callable[[Disk, str], None]) -> Callable[[Disk, str], None]:
    return lambda disk, path: None if path.endswith(".timeindex") else remove(disk, path)


def test_a_file_without_a_segment_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule (AGREED): what a deletion forgets stays for ever."""
    monkeypatch.setattr(Disk, "remove", _kept(Disk.remove))
    assert any(".timeindex" in one for one in seen())


def test_a_half_written_checkpoint_may_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule (AGREED): a crash leaves it, and the next checkpoint overwrites it (seed 41003769 of the profile
    everything). No other temporary file may stay."""
    listed = Disk.list
    for name, found in (("leader-epoch-checkpoint.tmp", False), ("recovery.tmp", True)):
        with monkeypatch.context() as patch:
            patch.setattr(Disk, "list", lambda disk, path, name=name: [*listed(disk, path), name])
            assert any(name in one for one in seen()) is found


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


def test_epochs_that_are_not_checkpointed_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule (AGREED): after a crash the log would begin with other epochs than it had."""
    monkeypatch.setattr(LeaderEpochCache, "_checkpoint", lambda self: None)
    assert any("are checkpointed as" in one for one in seen())


def test_an_epoch_that_begins_elsewhere_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule (AGREED): a follower would cut at the wrong offset."""
    assign = LeaderEpochCache.assign
    monkeypatch.setattr(LeaderEpochCache, "assign", lambda self, epoch, start: assign(self, epoch, start + 1))
    assert any("contradict the batch" in one for one in found(aborts()))


def test_a_producer_that_is_remembered_wrongly_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule (AGREED): the duplicate of its last batch would be answered with another offset."""
    update = ProducerState.update

    def one_further(self: ProducerState, header: BatchHeader, marker: Any = None) -> Any:
        ended, known = update(self, header, marker), self.producers.get(header.producer_id)
        if known is not None and known.batches:
            last = known.batches[-1]
            known.batches[-1] = evolve(last, last_offset=header.last_offset + 1)
        return ended

    monkeypatch.setattr(ProducerState, "update", one_further)
    assert any("its last batch is" in one for one in seen())


def test_healthy_transaction_indexes_agree_with_the_markers() -> None:
    """Rule (AGREED): also of the aborted ones."""
    assert found(aborts()) == []


def test_an_aborted_transaction_that_is_not_in_the_index_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule (AGREED): its records would be shown, or others hidden."""
    append = TransactionIndex.append

    def later(self: TransactionIndex, aborted: AbortedTransaction) -> None:
        append(self, evolve(aborted, first_offset=aborted.last_offset))

    monkeypatch.setattr(TransactionIndex, "append", later)
    assert any("the markers say" in one for one in found(aborts()))
