"""model/replication/epoch_truncation.py: the leader epoch cache and truncation by epoch."""

from hypothesis import given
from hypothesis import strategies as st

from fencepost.model.replication import epoch_truncation
from fencepost.model.replication.replica_log import ReplicaLog


def test_assign_drops_what_contradicts_it() -> None:
    """Rule (KAFKA-7415): a new entry drops older ones of an epoch or a start that is not below its own."""
    assert epoch_truncation.assign(((0, 0), (2, 4)), 3, 4) == ((0, 0), (3, 4))
    assert epoch_truncation.assign(((0, 0), (2, 4)), 1, 6) == ((0, 0), (1, 6))
    assert epoch_truncation.assign(((0, 0), (2, 4)), 2, 6) == ((0, 0), (2, 4))


def test_the_answer_names_the_epoch_that_it_is_about() -> None:
    """Rule (KIP-279): (largest epoch <= asked, where it ends); below the first entry the asked epoch ends at
    the first start."""
    entries = ((1, 2), (3, 5))
    assert epoch_truncation.end_offset_for(entries, 9, 3) == (3, 9)
    assert epoch_truncation.end_offset_for(entries, 9, 2) == (1, 5)
    assert epoch_truncation.end_offset_for(entries, 9, 0) == (0, 2)
    assert epoch_truncation.end_offset_for(entries, 9, 4) == epoch_truncation.UNDEFINED
    assert epoch_truncation.end_offset_for((), 9, 0) == epoch_truncation.UNDEFINED
    assert epoch_truncation.end_offset_for(entries, 9, -1) == epoch_truncation.UNDEFINED


def test_kip_101_answers_without_the_epoch() -> None:
    """Rule: without KIP-279 a follower that holds an in-between epoch cannot know whose end it was told."""
    assert epoch_truncation.end_offset_for_kip_101(((1, 2), (3, 5)), 9, 2) == (-1, 5)
    assert epoch_truncation.end_offset_for_kip_101(((1, 2), (3, 5)), 9, 0) == epoch_truncation.UNDEFINED


def test_truncation_takes_two_rounds_over_an_unknown_epoch() -> None:
    """Rule (KIP-279): a follower whose leader answers with an epoch that it never had cuts below it and asks
    again."""
    own = ((0, 0), (2, 3))
    assert epoch_truncation.next_truncation(own, 5, 1, (1, 4)) == (3, False)
    assert epoch_truncation.next_truncation(((0, 0),), 3, 1, (0, 2)) == (2, True)


def test_without_an_answer_the_high_watermark_decides() -> None:
    """Rule: only a leader that knows no epoch leaves the follower with its high watermark."""
    assert epoch_truncation.next_truncation(((0, 0),), 5, 3, epoch_truncation.UNDEFINED) == (3, True)


@st.composite
def forked_logs(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Two logs of one history: a common prefix, then tails of which no epoch occurs in both (each epoch has
    one leader)."""
    prefix = sorted(draw(st.lists(st.integers(0, 3), max_size=5)))
    owner = draw(st.lists(st.booleans(), min_size=5, max_size=5))
    tails = sorted(draw(st.lists(st.integers(4, 8), max_size=8)))
    mine = prefix + [epoch for epoch in tails if owner[epoch - 4]]
    theirs = prefix + [epoch for epoch in tails if not owner[epoch - 4]]
    return mine, theirs


@given(forked_logs(), st.integers(0, 10))
def test_truncation_by_epoch_ends_exactly_at_the_fork(
    logs: tuple[list[int], list[int]], new_epoch: int
) -> None:
    """Rule (KIP-101, KIP-279): repeated truncation keeps every shared record, cuts every other one, and
    ends."""
    follower, leader = logs
    shared = ReplicaLog(follower, [0] * len(follower)).shared_prefix(ReplicaLog(leader, [0] * len(leader)))
    leading = max([*leader, *follower, -1]) + 1
    entries = epoch_truncation.assign(epoch_truncation.lineage(leader), leading, len(leader))
    own, end = epoch_truncation.lineage(follower), len(follower)
    for _ in range(20):
        if not own:
            break
        answer = epoch_truncation.end_offset_for(entries, len(leader), epoch_truncation.latest_epoch(own))
        cut, done = epoch_truncation.next_truncation(own, end, 0, answer)
        assert shared <= cut <= end
        own, end = epoch_truncation.truncate(own, cut), cut
        if done:
            break
    else:
        raise AssertionError("never ends")
    assert end == shared
