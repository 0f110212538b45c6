"""Each self-check fails on what it is for: a planted recorder, a planted memory, and a planted step."""

import pytest
from attrs import evolve

from fencepost.traces.events import Name
from fencepost.traces.operations import Function, Outcome
from tests.selfcheck.checks import memory, recorder, steps
from tests.selfcheck.lab import FIRST_SEED, watched


@pytest.fixture
def seen():
    """A run in which all is well, and of which each check is content."""
    found = watched("transactions", FIRST_SEED + 1)
    assert recorder(found) == memory(found) == steps(found) == []
    return found


def changed(seen, function, change):
    """The run with one acknowledged row changed, and its operation."""
    rows = list(seen.trace.operations)
    place = next(
        place
        for place, row in enumerate(rows)
        if row.function is function
        and row.outcome is Outcome.OK
        and (row.offset is not None if function is Function.LIST_OFFSETS else row.records)
        and row.acks != 0
    )
    rows[place] = change(rows[place])
    seen.trace = evolve(seen.trace, operations=tuple(rows))
    return rows[place].op_id


def shifted(row):
    """The row with each record one offset later."""
    records = tuple(evolve(record, offset=record.offset + 1) for record in row.records)
    return evolve(row, records=records)


def another(row):
    """The row with another value in its first record."""
    first, *rest = row.records
    return evolve(row, records=(evolve(first, value=first.value + 1), *rest))


@pytest.mark.parametrize(
    ("function", "change"),
    [
        (Function.APPEND, shifted),
        (Function.APPEND, another),
        (Function.POLL, shifted),
        (Function.POLL, another),
        (Function.LIST_OFFSETS, lambda row: evolve(row, offset=row.offset + 1)),
    ],
)
def test_a_recorder_that_changes_a_row_is_caught(seen, function, change):
    """An offset or a value that no message had, in rows of each kind."""
    op_id = changed(seen, function, change)
    (wrong,) = recorder(seen)
    assert wrong.startswith(f"operation {op_id}:")


def logs(seen):
    """The log with producers and records of each running broker."""
    hosts = seen.run.cluster.world.hosts
    cores = [hosts[broker].core for broker in seen.run.cluster.broker_ids]
    return [
        partition.log
        for core in cores
        for partition in core.replicas.partitions.values()
        if partition.log.producers.producers
    ]


def test_a_producer_that_memory_or_a_file_forgot_is_caught(seen):
    """The memory of a producer has another epoch, or knows one that no file names."""
    log = logs(seen)[0]
    producer = next(iter(log.producers.producers.values()))
    producer.epoch += 1
    assert [f"epoch of producer {producer.producer_id}" in wrong for wrong in memory(seen)] == [True]
    producer.epoch -= 1
    log.producers.producers[10**9] = evolve(producer, producer_id=10**9)
    assert ["producers that the files lack" in wrong for wrong in memory(seen)] == [True]


def test_a_leader_epoch_that_is_in_memory_only_is_caught(seen):
    """The cache of leader epochs has an entry that its file lacks."""
    log = logs(seen)[0]
    log.epochs.entries.append((log.epochs.entries[-1][0] + 1, log.log_end_offset - 1))
    assert ["its leader epochs" in wrong for wrong in memory(seen)] == [True]


def test_a_step_out_of_order_is_caught(seen):
    """A follower copies a batch before the one that comes first."""
    events = list(seen.trace.events)
    copies = [
        place
        for place, event in enumerate(events)
        if event.name is Name.APPENDED and event.cause == "follower" and event.topic == "t"
    ]
    first = copies[0]
    second = next(
        place
        for place in copies[1:]
        if (events[place].node, events[place].partition) == (events[first].node, events[first].partition)
    )
    events[first], events[second] = events[second], events[first]
    seen.trace = evolve(seen.trace, events=tuple(events))
    assert steps(seen)


def test_a_marker_of_a_transaction_that_nobody_ended_is_caught(seen):
    """The coordinator's decision is gone from the record, and its markers are there."""
    ends = {"PrepareCommit", "PrepareAbort"}
    events = tuple(
        event
        for event in seen.trace.events
        if not (event.name is Name.TRANSACTION_PHASE and event.cause in ends)
    )
    assert len(events) < len(seen.trace.events)
    seen.trace = evolve(seen.trace, events=events)
    assert steps(seen)
