"""The leader epoch cache answers as Kafka's LeaderEpochFileCache does."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.impl.log.checkpoint import epoch_recovery
from fencepost.impl.log.checkpoint.leader_epoch_cache import UNDEFINED, LeaderEpochCache
from fencepost.sim.disk import Disk
from fencepost.sim.randomness import Randomness


def cache(*entries: tuple[int, int]) -> LeaderEpochCache:
    made = LeaderEpochCache(Disk(node=1, randomness=Randomness(1)), "t-0")
    made.files.make_directory("t-0")
    for epoch, start in entries:
        made.assign(epoch, start)
    return made


@pytest.mark.parametrize(
    ("entries", "asked", "answer"),
    [
        pytest.param([(0, 0), (2, 5)], 0, (0, 5), id="KIP-101: an old epoch ends where the next begins"),
        pytest.param([(0, 0), (2, 5)], 2, (2, 9), id="KIP-101: the latest epoch ends at the log end"),
        pytest.param(
            [(0, 0), (2, 5)], 1, (0, 5), id="KIP-279: an unknown epoch between: the largest one below"
        ),
        pytest.param(
            [(3, 4), (5, 6)], 1, (1, 4), id="KAFKA-7415: below the first entry: asked epoch, first start"
        ),
        pytest.param([(0, 0), (2, 5)], 3, UNDEFINED, id="above the latest: unknown here"),
        pytest.param([], 0, UNDEFINED, id="KAFKA-6857: a log without epochs does not answer with its end"),
        pytest.param([(0, 0)], -1, UNDEFINED, id="KAFKA-6857: the undefined epoch has no end"),
        pytest.param(
            [(0, 0), (4, 9)], 4, (4, 9), id="KAFKA-7415: an epoch without records ends where it begins"
        ),
        pytest.param([(0, 0), (4, 9)], 3, (0, 9), id="KAFKA-7415: and bounds the one before it"),
    ],
)
def test_end_offset(entries: list[tuple[int, int]], asked: int, answer: tuple[int, int]) -> None:
    """Rule: (largest epoch <= asked, its end offset), with Kafka's answers at the edges. The log ends at
    9."""
    assert cache(*entries).end_offset(asked, 9) == answer


def test_a_new_entry_drops_those_that_contradict_it() -> None:
    """Rule (KAFKA-7415): epochs and start offsets grow; an entry at or after a new one in either goes."""
    epochs = cache((1, 0), (3, 5), (5, 9))
    epochs.assign(6, 5)
    assert epochs.entries == [(1, 0), (6, 5)]
    epochs.assign(4, 7)
    assert epochs.entries == [(1, 0), (4, 7)]


def test_the_latest_epoch_keeps_its_first_start() -> None:
    """Rule: assigning the latest epoch again, at a later offset, changes nothing."""
    epochs = cache((1, 0), (2, 5))
    epochs.assign(2, 8)
    assert epochs.entries == [(1, 0), (2, 5)]


def test_truncation_drops_epochs_that_begin_at_the_cut_or_later() -> None:
    """Rule: after truncation to an offset no epoch begins there or beyond (KAFKA-10706)."""
    epochs = cache((1, 0), (2, 5), (3, 8))
    epochs.truncate_from_end(5)
    assert epochs.entries == [(1, 0)]
    epochs.truncate_from_end(0)
    assert epochs.entries == []


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("assign"), st.integers(0, 9), st.integers(0, 9)),
        st.tuples(st.just("truncate"), st.just(0), st.integers(0, 9)),
    ),
    max_size=12,
)


@given(OPERATIONS, st.integers(-1, 10))
def test_entries_grow_and_answers_bound_them(operations: list, asked: int) -> None:
    """Rule: whatever happened, entries grow strictly in both columns, survive a reload, and an answer never
    names an epoch above the one asked."""
    epochs = cache()
    for name, epoch, offset in operations:
        if name == "assign":
            epochs.assign(epoch, offset)
        else:
            epochs.truncate_from_end(offset)
        entries = epochs.entries
        assert all(one[0] < two[0] and one[1] < two[1] for one, two in pairwise(entries))
    again = LeaderEpochCache(epochs.files, "t-0")
    again.load()
    assert again.entries == epochs.entries
    epoch, end = epochs.end_offset(asked, 10)
    if (epoch, end) != UNDEFINED:
        assert epoch <= asked and 0 <= end <= 10


def test_the_first_epoch_begins_with_the_log_whatever_compaction_took(monkeypatch):
    """Rule: a checkpoint that begins above the log start was written for a log start that the broker has
    forgotten. A follower with records of an earlier epoch below it has to cut them all: it must not be told
    that they agree (seed 825). A checkpoint that says nothing of records that are there is read anew."""
    for batches, expected in (
        ([(3, 42)], [(3, 0)]),
        ([(3, 7)], [(3, 0)]),
        ([(2, 7), (3, 19)], [(2, 0), (3, 19)]),
    ):
        epochs = cache((3, 21))
        monkeypatch.setattr(epoch_recovery, "_epochs_of", lambda segments, batches=batches: batches)
        epoch_recovery.restore_epochs(epochs, (), None, [], 0, 60, gaps=True)
        assert epochs.entries == expected
        assert epochs.end_offset(1, 60)[1] == 0
