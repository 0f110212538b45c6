"""Offsets of transactions without a marker so far, where a group or an offset is deleted meanwhile."""

from typing import Any

import pytest
from attrs import evolve
from transaction_lab import OFFSETS, OUT, TransactionLab

from fencepost.bugs.transactions.transaction_offset_bugs import DeletesWhatCounts
from fencepost.impl.broker.broker import Broker
from fencepost.impl.broker.parts import Parts
from fencepost.impl.coordinator.committed_offsets import GroupOffsets
from fencepost.impl.messages import group_api
from fencepost.traces.events import OFFSET_DELETED, Name
from fencepost.traces.kafka_names.outcomes import ErrorCode

E = ErrorCode
NONE_COMMITTED = -1
PARTS = (GroupOffsets, DeletesWhatCounts)


def lab_with(part: type) -> TransactionLab:
    """Brokers whose committed offsets are handled by this part."""
    return TransactionLab(parts=evolve(Parts(), group_offsets=part))


def delete_group(lab: TransactionLab) -> ErrorCode:
    """DeleteGroups of the group g."""
    request = group_api.DeleteGroupRequest(correlation_id=lab.number(), group_id="g")
    return ErrorCode(lab.send(1, request).error)


def delete_offset(lab: TransactionLab) -> ErrorCode:
    """OffsetDelete of out-0 in the group g."""
    request = group_api.OffsetDeleteRequest(correlation_id=lab.number(), group_id="g", partitions=(OUT,))
    return ErrorCode(dict(lab.send(1, request).results)[OUT])


def loaded(lab: TransactionLab) -> Any:
    """The offset that the next coordinator has."""
    lab.elect(2, 1, OFFSETS).rest(1_000)
    return lab.committed(2)


@pytest.mark.parametrize("delete", [delete_group, delete_offset])
@pytest.mark.parametrize("commit", [None, False, True])
@pytest.mark.parametrize("part", PARTS)
def test_what_is_deleted_takes_open_offsets_along(part, commit, delete):
    """Rule (KAFKA-14505): an offset whose transaction is open is deleted like one that counts, however the
    transaction ends, and at the next coordinator too. Planted: a later load brings it back."""
    lab = lab_with(part)
    me = lab.init()
    assert lab.commit_offset(me, 5) is E.NONE
    assert delete(lab) is E.NONE
    if commit is not None:
        lab.end(me, commit=commit)
    assert lab.committed() == NONE_COMMITTED or part is DeletesWhatCounts
    brought_back = {None: E.UNSTABLE_OFFSET_COMMIT, False: NONE_COMMITTED, True: 5}[commit]
    assert loaded(lab) == (NONE_COMMITTED if part is GroupOffsets else brought_back)
    core = lab.core(2)
    assert isinstance(core, Broker)
    if part is GroupOffsets:
        assert core.groups.table.groups == {}
        told = lab.recorded(Name.GROUP_OFFSET_EXPIRED)
        assert [event.cause for event in told] == [OFFSET_DELETED]


@pytest.mark.parametrize("delete", [delete_group, delete_offset])
def test_an_offset_that_the_transaction_commits_after_a_deletion_counts(delete, lab, me):
    """Rule (KAFKA-14505): of a deletion and an offset of a transaction the one later in the log counts."""
    lab.commit_offset(me, 5)
    assert delete(lab) is E.NONE
    lab.commit_offset(me, 6)
    lab.end(me)
    assert lab.committed() == loaded(lab) == 6
