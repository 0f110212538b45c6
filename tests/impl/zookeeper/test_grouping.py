"""Groups of ZooKeeper operations: their sizes are those of the wire, and they stay below jute.maxbuffer."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.impl.runtime.zookeeper.wire_format import WireMulti, WireMultiRead
from fencepost.impl.zookeeper.grouping import (
    ANSWER_BYTES,
    JUTE_MAXBUFFER,
    ONE_AT_A_TIME,
    REQUEST_BYTES,
    Grouping,
    groups,
    read_groups,
    read_size,
    write_size,
)
from fencepost.impl.zookeeper.interface import Check, Create, Delete, Multi, MultiRead, SetData

XID_AND_KIND = 8
PATHS = st.text("ab/é", min_size=1, max_size=20).map(lambda text: "/" + text)
WRITES = st.one_of(
    st.builds(Create, PATHS, st.binary(max_size=40)),
    st.builds(SetData, PATHS, st.binary(max_size=40), st.integers(-1, 9)),
    st.builds(Delete, PATHS, st.integers(-1, 9)),
    st.builds(Check, PATHS, st.integers(0, 9)),
)


@settings(derandomize=True, database=None, deadline=None)
@given(operations=st.lists(WRITES, max_size=8), paths=st.lists(PATHS, max_size=8))
def test_sizes_are_those_of_the_wire(operations, paths) -> None:
    """Rule: a request is counted to the byte, whatever it holds."""
    multi = REQUEST_BYTES + sum(write_size(operation)[0] for operation in operations)
    assert multi == XID_AND_KIND + len(WireMulti(Multi(tuple(operations))).serialize())
    read = REQUEST_BYTES + sum(read_size(path, 0)[0] for path in paths)
    assert read == XID_AND_KIND + len(WireMultiRead(MultiRead(tuple(paths))).serialize())


@pytest.mark.parametrize(
    ("size", "fixed"), [((100, 1), REQUEST_BYTES), ((1, 100), ANSWER_BYTES)], ids=["request", "answer"]
)
def test_a_group_goes_up_to_the_bound_and_not_beyond(size: tuple[int, int], fixed: int) -> None:
    """Rule: the member that fits to the byte is in the group; with one byte less it begins the next. Request
    and answer alike."""
    for missing, counts in ((0, [10, 10, 5]), (1, [9, 9, 7])):
        grouping = Grouping(maximum_bytes=fixed + 10 * 100 - missing)
        made = groups(range(25), lambda _: size, grouping)
        assert [len(group) for group in made] == counts
        assert [member for group in made for member in group] == list(range(25))


def test_what_every_group_carries_counts() -> None:
    """Rule: the fence's bytes are taken from the room of each group."""
    grouping = Grouping(maximum_bytes=REQUEST_BYTES + 100)
    assert [len(group) for group in groups(range(4), lambda _: (25, 1), grouping)] == [4]
    assert [len(group) for group in groups(range(4), lambda _: (25, 1), grouping, (1, 0))] == [3, 1]


def test_numbers_of_members() -> None:
    """Rule: no group has more members than asked for, none is empty, and one that is too large stands
    alone."""
    assert groups([], lambda _: (1, 1), Grouping()) == []
    assert [len(group) for group in groups(range(7), lambda _: (1, 1), Grouping(members=3))] == [3, 3, 1]
    assert [len(group) for group in groups(range(3), lambda _: (1, 1), ONE_AT_A_TIME)] == [1, 1, 1]
    sizes = {0: (9, 9), 1: (JUTE_MAXBUFFER, 9), 2: (9, 9)}
    assert groups(range(3), sizes.__getitem__, Grouping()) == [[0], [1], [2]]


@settings(derandomize=True, database=None, deadline=None)
@given(
    nodes=st.dictionaries(PATHS, st.integers(0, 90), max_size=12),
    members=st.integers(1, 5),
    room=st.integers(60, 900),
)
def test_groups_of_reads_are_those_that_counting_makes(nodes, members, room) -> None:
    """Rule: where nobody looks at each path, because a full group of the largest fits, the groups are the
    same as if somebody did."""
    grouping = Grouping(members=members, maximum_bytes=room)
    assert read_groups(nodes, grouping) == groups(nodes, lambda path: read_size(path, nodes[path]), grouping)
