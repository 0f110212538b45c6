"""The comparison of two topics: each finding on purpose, no finding where nothing is wrong, and random faults
against a naive twin. Records are made here; how they are read is in test_topics_live.py."""

from collections import Counter, defaultdict

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from fencepost.audit.topics import matching
from fencepost.audit.topics.comparison import MEANS, compare
from fencepost.audit.topics.topic_store import Extent, Side, TopicStore, row_of
from fencepost.impl.log.batch.record_batch import Header, Record

COMPACTED = {"source_compacted": False, "target_compacted": False}


def record(key, value, time=0, headers=()):
    """Without an offset; None: a gap of the offsets."""
    encoded = [None if part is None else str(part).encode() for part in (key, value)]
    return Record(-1, time, *encoded, tuple(Header(name, b"h") for name in headers))


def compared(source, target, starts=(0, 0), grew=(), overtaken=(), hidden=False, **compacted):
    """The result, and the open store. source, target: lists of records by partition; hidden: whether a
    transaction is open at the target."""
    store = TopicStore.open(None)
    for side, topic, start in zip(Side, (source, target), starts, strict=True):
        store.begin(
            Extent(
                side=side,
                partition=number,
                start=start,
                end=start + len(one),
                next=start,
                latest=start + len(one) + (hidden and side is Side.TARGET),
            )
            for number, one in enumerate(topic)
        )
        for extent in store.extents(side):
            numbered = enumerate(topic[extent.partition], start)
            rows = [row_of(evolve(one, offset=offset)) for offset, one in numbered if one is not None]
            store.add(extent, 0, rows, extent.end, append_time=False)
            if extent.partition in grew:
                store.mark(extent, "grew")
            if (side, extent.partition) in overtaken:
                store.mark(extent, "overtaken")
    return compare(store, **{**COMPACTED, **compacted}, done=lambda number: None), store


def findings(*arguments, **options):
    """The findings with their counts."""
    return compared(*arguments, **options)[0].findings


A, B, C, D, E = (record(key, f"{key}1", number) for number, key in enumerate("abcde"))


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ([[A, B, C, D]], {}),
        ([[None, A, B, None, C, D]], {}),
        ([[A, B, D]], {"missing": 1}),
        ([[A, B, C, B, D]], {"doubled": 1}),
        ([[A, C, B, D]], {"reordered": 1}),
        ([[B, C, D, A]], {"reordered": 1}),
        ([[A, record("b", "other", 1), C, D]], {"altered": 1}),
        ([[A, record("x", "b1", 1), C, D]], {"altered": 1}),
        ([[A, record("b", "b1", 1, ["new"]), C, D]], {"altered": 1}),
        ([[A, record("b", "b1", 7), C, D]], {"altered": 1}),
        ([[A, record("x", "x", 7), C, D]], {"altered": 1}),
        ([[A, record("x", "x", 7), record("y", "y", 8), C, D]], {"missing": 1}),
        ([[A, B, E, C, D]], {}),
        ([[]], {"missing": 4}),
        ([[record("d", "other", 3), A, B, C]], {"missing": 1}),
    ],
)
def test_each_fault_has_its_name(target, expected):
    """One fault, one finding; a record that only the target has is none."""
    assert findings([[A, B, C, D]], target) == expected


def test_a_record_in_another_partition_is_no_missing_one():
    """The same bytes in another partition; a second copy there is doubled."""
    assert findings([[A, B, C], [D]], [[A, C], [D, B]]) == {"other_partition": 1}
    assert findings([[A, B, C], [D]], [[A, B, C], [B, D]]) == {"doubled": 1}
    (example,) = compared([[A, B, C], [D]], [[A, C], [D, B]])[0].examples
    assert (example.partition, example.source_offset) == (0, 1)
    assert example.detail == "the copy is offset 1 of partition 1"


def test_order_of_one_key_is_said_apart():
    """Two records of a key that change places harm more than two of different keys."""
    first, second = record("k", "1", 1), record("k", "2", 2)
    swapped = findings([[A, first, second, B]], [[A, second, first, B]])
    assert swapped == {"reordered": 1, "reordered_by_key": 1}


def test_timestamps_count_only_where_the_copy_keeps_them():
    """A copy with times of its own is compared by bytes; one that keeps them has one altered time."""
    source = [record(n, n, n) for n in range(10)]
    result, _ = compared([source], [[evolve(one, timestamp_ms=99) for one in source]])
    assert not result.timestamps_kept and result.findings == {}
    result, _ = compared([source], [[*source[:9], record(9, 9, 99)]])
    assert result.timestamps_kept and result.findings == {"altered": 1}


def test_equal_records_are_no_false_disorder():
    """Where equal records repeat and one is missing, none of them says anything about order, wherever it is
    missing, and the long way round neither."""
    ping = record(None, "ping")
    source = [A, ping, B, ping, C, ping, D]
    for number in (1, 3, 5):
        target = [one for place, one in enumerate(source) if place != number]
        assert findings([source], [target]) == {"missing": 1}
    far = [record(n, n, n) for n in range(5)]
    assert findings([[*far, ping, A, B, C, ping, D]], [[A, B, C, ping, D]]) == {"missing": 6}
    assert findings([[A, ping, B, ping]], [[B, A, ping, ping]]) == {"reordered": 1}


def test_what_the_other_side_has_expired_is_not_missing():
    """Below the first common record, if the other side's log start moved: also for equal records."""
    source = [A, B, C, D]
    assert findings([source], [source[2:]], starts=(0, 2)) == {}
    assert findings([source], [source[2:]], starts=(0, 0)) == {"missing": 2}
    assert findings([source[2:]], [source], starts=(2, 0)) == {}
    ping = record(None, "ping")
    assert findings([[ping, A, ping, B]], [[A, ping, B]], starts=(0, 1)) == {}
    assert findings([[A, ping, B]], [[ping, A, ping, B]], starts=(1, 0)) == {}
    assert findings([[A, B, C]], [[A, C]], starts=(5, 5)) == {"missing": 1}
    apart, _ = compared([source], [[]], starts=(0, 9))
    assert apart.findings == {} and not apart.judged and "begins at offset 9" in apart.not_judged[0]


def test_a_source_that_goes_on_excuses_what_comes_after():
    """Equal records after the last pair may be new ones; without growth they are doubled."""
    ping = record(None, "ping")
    assert findings([[ping, A]], [[ping, A, B, ping]], grew={0}) == {}
    assert findings([[ping, A]], [[ping, A, B, ping]]) == {"doubled": 1}


def test_a_log_start_that_overtakes_the_reading_excuses_what_it_took():
    """What is gone is said not to be judged; what is doubled still counts."""
    result, _ = compared([[A, B, C]], [[A, C, C]], overtaken={(Side.TARGET, 0)})
    assert result.findings == {"doubled": 1} and result.counts["unclear"] == 1
    assert any("lost while it was read" in line for line in result.not_judged)
    assert findings([[A, B, C]], [[A, D, C]], overtaken={(Side.TARGET, 0)}) == {}
    ping = record(None, "ping")
    assert findings([[A, ping, B]], [[A, ping, ping, B]], overtaken={(Side.SOURCE, 0)}) == {}


def test_what_an_open_transaction_of_the_target_hides_is_not_missing():
    """Nothing is said about the records after the last one that was read; those before it may be missing."""
    result, _ = compared([[A, B, C, D]], [[A, C]], hidden=True)
    assert result.findings == {"missing": 1} and result.counts["unclear"] == 1
    assert any("open transaction" in line for line in result.not_judged)


KEYED = st.lists(
    st.tuples(st.sampled_from("abc"), st.one_of(st.none(), st.integers(0, 3))).map(lambda one: record(*one)),
    max_size=12,
)


@given(source=KEYED, keep=st.lists(st.booleans(), min_size=12, max_size=12), lost=st.integers(0, 2))
def test_a_cleaner_takes_all_but_the_latest_of_a_key(source, keep, lost):
    """No finding for what a cleaner may take, on either side; the latest of a key, unless it is a tombstone,
    it may not take."""
    times = [evolve(one, timestamp_ms=number) for number, one in enumerate(source)]
    last = {one.key: number for number, one in enumerate(times)}
    cleaned = [
        one for number, one in enumerate(times) if keep[number] or last[one.key] == number
    ]  # tombstones stay, or go with all of their key
    for key in {one.key for one in times}:
        if times[last[key]].value is None and keep[last[key]]:
            cleaned = [one for one in cleaned if one.key != key]
    assert findings([times], [cleaned], target_compacted=True) == {}
    assert findings([cleaned], [times], source_compacted=True) == {}
    assert findings([cleaned], [cleaned], source_compacted=True, target_compacted=True) == {}
    key = b"abc"[lost : lost + 1]
    if key in last and times[last[key]].value is not None:
        without = [one for one in cleaned if one is not times[last[key]]]
        assert findings([times], [without], target_compacted=True).get("missing") == 1


def test_a_cleaner_excuses_neither_a_lost_latest_value_nor_a_lost_tombstone():
    """An older value at the place of the latest one is not its alteration, for the source may have removed
    that; a tombstone is not gone as long as a value of its key is there."""
    older, newer, gone = record("k", 1, 1), record("k", 2, 2), record("k", None, 3)
    assert findings([[A, newer, B]], [[A, older, B]], source_compacted=True) == {"missing": 1}
    same_time = record("k", 3, 2)
    assert findings([[A, newer, B]], [[A, same_time, B]], source_compacted=True) == {"altered": 1}
    assert findings([[A, newer, gone, B]], [[A, newer, B]], target_compacted=True) == {"missing": 1}
    assert findings([[A, newer, gone, B]], [[A, B]], target_compacted=True) == {}
    assert findings([[A, older]], [[A, newer]], target_compacted=True, grew={0}) == {}
    assert findings([[A, older]], [[A, newer]], target_compacted=True) == {"missing": 1}


# ---- random faults and a naive twin

VALUES = st.integers(0, 6)
TOPIC = st.lists(st.lists(VALUES, max_size=12), min_size=2, max_size=2)


def made(numbers):
    """Few different records, so that many are equal; three keys."""
    return [[record(number % 3, number) for number in partition] for partition in numbers]


@given(source=TOPIC, data=st.data())
def test_losses_alone_are_missing_and_repeats_alone_are_doubled(source, data):
    """However many records are equal: no other finding, and the exact count."""
    kept = [[one for one in partition if data.draw(st.booleans())] for partition in source]
    lost = sum(map(len, source)) - sum(map(len, kept))
    assert findings(made(source), made(kept)) == ({"missing": lost} if lost else {})
    assert findings(made(kept), made(source)).get("reordered") is None
    twice = [[one for one in partition for _ in range(data.draw(st.integers(1, 2)))] for partition in source]
    more = sum(map(len, twice)) - sum(map(len, source))
    assert findings(made(source), made(twice)) == ({"doubled": more} if more else {})


def longest(numbers):
    """The length of the longest increasing subsequence, slowly."""
    best = []
    for number, one in enumerate(numbers):
        best.append(1 + max((best[other] for other in range(number) if numbers[other] < one), default=0))
    return max(best, default=0)


def naive(source, target):
    """Counts by kind; altered ones are among the missing."""
    counts, left, surplus = Counter(), Counter(), Counter()
    everywhere = Counter(one for partition in source for one in partition)
    for number, (mine, copy) in enumerate(zip(source, target, strict=True)):
        have, got = Counter(mine), Counter(copy)
        unsure = {one for one in have if got[one] and have[one] != got[one]}
        left.update({(one, number): have[one] - got[one] for one in have if have[one] > got[one]})
        surplus.update({(one, number): got[one] - have[one] for one in got if got[one] > have[one]})
        places, seen, pairs = defaultdict(list), Counter(), []
        for place, one in enumerate(copy):
            places[one].append(place)
        for one in mine:
            if one not in unsure and seen[one] < got[one]:
                pairs.append((one, places[one][seen[one]]))
            seen[one] += 1
        counts["reordered"] += len(pairs) - longest([place for _, place in pairs])
        counts["reordered_by_key"] += sum(
            any(other % 3 == one % 3 and before > place for other, before in pairs[:index])
            for index, (one, place) in enumerate(pairs)
        )
    for one in everywhere | Counter(one for one, _ in surplus):
        gone = sum(count for (which, _), count in left.items() if which == one)
        more = sum(count for (which, _), count in surplus.items() if which == one)
        counts["other_partition"] += min(gone, more)
        counts["missing"] += max(gone - more, 0)
        counts["doubled"] += max(more - gone, 0) if everywhere[one] else 0
    return +counts


@given(source=TOPIC, target=TOPIC)
def test_any_two_topics_are_judged_as_the_naive_twin_judges_them(source, target):
    """Pairs, order and kinds of topics that have little in common."""
    found = Counter(findings(made(source), made(target)))
    found["missing"] += found.pop("altered", 0)
    assert +found == naive(source, target)


@given(source=st.lists(VALUES, max_size=14).map(lambda one: [one]), seed=st.randoms(use_true_random=False))
def test_a_shuffled_copy_is_out_of_order_exactly_if_it_differs(source, seed):
    """Of a permutation only the order is said, and too many stretches for memory change only the count."""
    target = [source[0][:]]
    seed.shuffle(target[0])
    found = findings(made(source), made(target))
    assert found == naive(source, target)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matching, "MOST_RUNS", 2)
        coarse = findings(made(source), made(target))
    assert coarse.keys() == found.keys() and all(coarse[kind] >= found[kind] for kind in found)


def test_a_comparison_again_says_the_same():
    """What was compared before a kill is taken as it is, and the decision is made anew."""
    result, store = compared([[A, B, C]], [[A, C, C]])
    again = compare(store, **COMPACTED, done=lambda number: None)
    assert again == result and set(result.counts) <= set(MEANS)
