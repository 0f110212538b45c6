"""Placement of replicas: Kafka's rack-unaware round robin as a pure function."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.impl.controller.placement import ReplicationFactorError, place_replicas

BROKERS = (0, 1, 2, 3, 4)


def test_the_example_of_kafkas_own_documentation() -> None:
    """Rule (C14): 10 partitions, 3 replicas, 5 brokers, start and shift 0: the table of AdminUtils'
    comment."""
    assert list(place_replicas(BROKERS, partitions=10, replication_factor=3).values()) == [
        (0, 1, 2),
        (1, 2, 3),
        (2, 3, 4),
        (3, 4, 0),
        (4, 0, 1),
        (0, 2, 3),
        (1, 3, 4),
        (2, 4, 0),
        (3, 0, 1),
        (4, 1, 2),
    ]


@given(st.integers(1, 8), st.integers(1, 40), st.integers(0, 20), st.integers(0, 20), st.data())
def test_replicas_differ_and_leaders_are_spread(
    count: int, partitions: int, start: int, shift: int, data: st.DataObject
) -> None:
    """Rule (C14): no broker holds a partition twice, and no broker leads two more than another."""
    factor = data.draw(st.integers(1, count))
    placed = place_replicas(
        tuple(range(count)), partitions=partitions, replication_factor=factor, start=start, shift=shift
    )
    assert all(len(set(replicas)) == factor == len(replicas) for replicas in placed.values())
    leads = [sum(replicas[0] == broker for replicas in placed.values()) for broker in range(count)]
    assert max(leads) - min(leads) <= 1


@given(st.integers(1, 6), st.integers(0, 12), st.integers(1, 12), st.integers(0, 5), st.integers(0, 5))
def test_added_partitions_go_where_they_would_have_gone(
    count: int, before: int, added: int, start: int, shift: int
) -> None:
    """Rule (C14): partitions added later continue the round robin as if all had been created at once."""
    brokers = tuple(range(1, count + 1))
    both = place_replicas(brokers, partitions=before + added, replication_factor=1, start=start, shift=shift)
    late = place_replicas(
        brokers, partitions=added, replication_factor=1, start=start, shift=shift, first_partition=before
    )
    assert late == {number: ids for number, ids in both.items() if number >= before}


@pytest.mark.parametrize("factor", [0, 6])
def test_more_replicas_than_brokers_are_refused(factor: int) -> None:
    """Rule (C14): the error says how many brokers there are and what was asked for."""
    with pytest.raises(ReplicationFactorError, match=f"from 1 to 5.*saw {factor}"):
        place_replicas(BROKERS, partitions=1, replication_factor=factor)
