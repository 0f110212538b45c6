"""Partitioners: the same choice as Kafka's clients for a key, the promised spread without one, and nothing
drawn from anywhere else."""

from collections import Counter

import pytest

from fencepost.impl.client.partitioners import NAMES, TopicView, make_partitioner, murmur2, partition_of_key

VIEW = TopicView(topic="t", partitions=(0, 1, 2, 3), available=(0, 1, 2, 3))
ALL_LED = TopicView(topic="t", partitions=tuple(range(8)), available=tuple(range(8)))

KAFKAS_VECTORS = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}
"""Apache Kafka, clients/src/test/java/org/apache/kafka/common/utils/UtilsTest.java, testMurmur2."""
LIBRDKAFKAS_VECTORS = {
    b"kafka": 0xD067CF64,
    b"giberish123456789": 0x8F552B0C,
    b"1234": 0x9FC97B14,
    b"234": 0xE7C009CA,
    b"34": 0x873930DA,
    b"4": 0x5A4B5CA1,
    b"PreAmbleWillBeRemoved,ThePrePartThatIs": 0x78424F1C,
    b"reAmbleWillBeRemoved,ThePrePartThatIs": 0x4A62B377,
    b"": 0x106E08D9,
}
"""librdkafka, src/rdmurmur2.c, unittest_murmur2, which took them from Kafka's Java client."""


@pytest.mark.parametrize("key", KAFKAS_VECTORS, ids=repr)
def test_murmur2_is_kafkas(key):
    """Rule: the hash of a key is the one that Kafka's own test publishes."""
    assert murmur2(key) == KAFKAS_VECTORS[key]


@pytest.mark.parametrize("key", LIBRDKAFKAS_VECTORS, ids=repr)
def test_murmur2_is_librdkafkas(key):
    """Rule: and the one of the other client that Kafka's users have, for every length of the tail."""
    assert murmur2(key) & 0xFFFFFFFF == LIBRDKAFKAS_VECTORS[key]


def places(name, keys, view=VIEW, seed=0):
    """Where a fresh partitioner puts appends of these keys, each a batch of its own that has room."""
    partitioner = make_partitioner(name, seed)
    return [partitioner.partition(view, key, cause) for cause, key in enumerate(keys)]


def test_a_key_has_one_partition_whoever_leads():
    """Rule: the key hash chooses among all partitions, available or not, so that one key keeps its order
    through an election."""
    keys = [b"%d" % number for number in range(40)]
    half = TopicView(topic="t", partitions=(0, 1, 2, 3), available=(1,))
    assert places("key_hash", keys) == places("key_hash", keys, half)
    assert places("key_hash", keys) == [partition_of_key(key, 4) for key in keys]


def test_a_hot_key_makes_a_hot_partition():
    """Rule: skew of the keys is skew of the partitions; the key hash does not hide it, round robin has
    none."""
    keys = [b"hot" if number % 10 else b"k%d" % number for number in range(400)]
    skewed, even = Counter(places("key_hash", keys)), Counter(places("round_robin", keys))
    assert skewed[partition_of_key(b"hot", 4)] >= 360 and set(even.values()) == {100}


def test_more_partitions_move_keys():
    """Rule: adding partitions changes where a key goes, so that its order holds only while their number
    stays."""
    keys = [b"%d" % number for number in range(100)]
    assert any(partition_of_key(key, 4) != partition_of_key(key, 5) for key in keys)


def test_round_robin_goes_around_the_available_ones():
    """Rule: one after another, none without a leader while there are others, and a new batch skips nobody
    (KAFKA-9965)."""
    half = TopicView(topic="t", partitions=(0, 1, 2, 3), available=(1, 3))
    assert places("round_robin", [None] * 4, half) == [1, 3, 1, 3]
    partitioner, seen = make_partitioner("round_robin"), []
    for cause in range(4):
        chosen = partitioner.partition(VIEW, None, cause)
        partitioner.on_new_batch(VIEW, chosen, cause)
        seen.append(partitioner.partition(VIEW, None, cause))
    assert seen == [0, 1, 2, 3]


def test_sticky_stays_until_its_batch_is_full_and_then_goes_elsewhere():
    """Rule (KIP-480): appends without a key share a batch; a full one sends the next append to another
    partition."""
    partitioner = make_partitioner("sticky", 3)
    first = {partitioner.partition(VIEW, None, cause) for cause in range(20)}
    assert len(first) == 1
    seen = set(first)
    for cause in range(20, 60):
        before = partitioner.partition(VIEW, None, cause)
        partitioner.on_new_batch(VIEW, before, cause)
        after = partitioner.partition(VIEW, None, cause)
        assert after != before
        seen.add(after)
    assert seen == {0, 1, 2, 3}


def test_sticky_has_nowhere_else_to_go_with_one_partition():
    """Rule: the only available partition is kept."""
    alone = TopicView(topic="t", partitions=(0, 1), available=(1,))
    partitioner = make_partitioner("sticky")
    assert partitioner.partition(alone, None, 0) == 1
    partitioner.on_new_batch(alone, 1, 1)
    assert partitioner.partition(alone, None, 1) == 1


def test_without_a_key_the_key_hash_is_sticky():
    """Rule: Kafka's default partitioner since 2.4."""
    assert places("key_hash", [None] * 30) == places("sticky", [None] * 30)


def test_random_spreads_and_depends_on_its_cause_alone():
    """Rule: a random choice is a function of seed, topic and append; leaving one out moves no other, another
    seed moves some."""
    chosen = places("random", [None] * 800, ALL_LED, seed=5)
    assert min(Counter(chosen).values()) > 50
    partitioner = make_partitioner("random", 5)
    assert [partitioner.partition(ALL_LED, None, cause) for cause in range(0, 800, 3)] == chosen[::3]
    assert places("random", [None] * 800, ALL_LED, seed=6) != chosen


@pytest.mark.parametrize("name", NAMES)
def test_a_topic_without_a_leader_still_has_a_choice(name):
    """Rule: with no partition available every one is as good; the append waits for a leader there."""
    nobody = TopicView(topic="t", partitions=(0, 1, 2, 3), available=())
    assert set(places(name, [b"a", None, b"b"], nobody)) <= {0, 1, 2, 3}
