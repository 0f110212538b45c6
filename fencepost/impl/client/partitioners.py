"""Partitioners: the partition of each record (docs/spec/cluster.md P1; KIP-480 for the sticky one).

Owns the choice. Must not know batches, leaders' addresses, or the later fate of a record. A custom
partitioner is any object with the two methods of `Partitioner`. It must be a function of its arguments, or a
run cannot be repeated. Records of one key keep their order only if the key alone determines the partition:
with the key hash, while the number of partitions does not change.
"""

from typing import Protocol

from attrs import define, field, frozen

MURMUR2_SEED, MURMUR2_MULTIPLIER, MURMUR2_SHIFT = 0x9747B28C, 0x5BD1E995, 24
MASK_32, MASK_31 = 0xFFFFFFFF, 0x7FFFFFFF


def murmur2(data: bytes) -> int:
    """MurmurHash2, 32 bits, as a signed integer: the hash of keys in Kafka's clients."""
    multiplier, value = MURMUR2_MULTIPLIER, (MURMUR2_SEED ^ len(data)) & MASK_32
    whole = len(data) & ~3
    for position in range(0, whole, 4):
        word = int.from_bytes(data[position : position + 4], "little") * multiplier & MASK_32
        word = (word ^ (word >> MURMUR2_SHIFT)) * multiplier & MASK_32
        value = (value * multiplier & MASK_32) ^ word
    if whole < len(data):
        value = (value ^ int.from_bytes(data[whole:], "little")) * multiplier & MASK_32
    value = (value ^ (value >> 13)) * multiplier & MASK_32
    value ^= value >> 15
    return value - (1 << 32) if value > MASK_31 else value


def partition_of_key(key: bytes, partitions: int) -> int:
    """The partition of a key in Kafka's clients."""
    return (murmur2(key) & MASK_31) % partitions


@frozen(kw_only=True)
class TopicView:
    """A topic in the metadata."""

    topic: str
    # All of them, ascending.
    partitions: tuple[int, ...]
    # Those with a leader.
    available: tuple[int, ...]

    @property
    def choice(self) -> tuple[int, ...]:
        """The partitions for a record without a key: the available ones, or all if there are none."""
        return self.available or self.partitions


class Partitioner(Protocol):
    """The protocol of a partitioner. cause: the number of the append, so that a random choice depends only on
    it."""

    def partition(self, view: TopicView, key: bytes | None, cause: int) -> int:
        """Choose a partition.

        Args:
            view: the topic.
            key: the key of the records; None if there is none.
            cause: the number of the append.

        Returns:
            the partition: one of `view.partitions`.
        """
        ...

    def on_new_batch(self, view: TopicView, previous: int, cause: int) -> None:
        """The last chosen partition has no batch with room, so a new one would be started there. `partition`
        is called again after this.

        Args:
            view: the topic.
            previous: the partition chosen last.
            cause: the number of the append.
        """
        ...


@frozen
class KeyedRandom:
    """A pseudo-random choice: a function of (seed, topic, cause)."""

    seed: int

    def of(self, choice: tuple[int, ...], topic: str, cause: int) -> int:
        """One of `choice`."""
        return choice[(murmur2(b"%d/%s/%d" % (self.seed, topic.encode(), cause)) & MASK_31) % len(choice)]


@define
class RoundRobin:
    """Each append goes to the next available partition."""

    # The number of appends so far, by topic.
    turns: dict[str, int] = field(factory=dict)

    def partition(self, view: TopicView, key: bytes | None, cause: int) -> int:
        """The next partition; the key is ignored."""
        turn = self.turns.get(view.topic, 0)
        self.turns[view.topic] = turn + 1
        return view.choice[turn % len(view.choice)]

    def on_new_batch(self, view: TopicView, previous: int, cause: int) -> None:
        """No change: the turn of this append was already counted.

        Args:
            view, previous, cause: as in Partitioner.
        """
        self.turns[view.topic] -= 1


@define
class Random:
    """Each append goes to a random available partition."""

    random: KeyedRandom

    def partition(self, view: TopicView, key: bytes | None, cause: int) -> int:
        """A random partition; the key is ignored."""
        return self.random.of(view.choice, view.topic, cause)

    def on_new_batch(self, view: TopicView, previous: int, cause: int) -> None:
        """No effect.

        Args:
            view, previous, cause: as in Partitioner.
        """


@define
class Sticky:
    """Appends go to one partition until its batch is full, then to another one: fewer, larger batches
    (KIP-480)."""

    random: KeyedRandom
    # The partition by topic.
    current: dict[str, int] = field(factory=dict)

    def partition(self, view: TopicView, key: bytes | None, cause: int) -> int:
        """The current partition; the key is ignored."""
        chosen = self.current.get(view.topic)
        if chosen is None or chosen not in view.partitions:
            chosen = self.current[view.topic] = self.random.of(view.choice, view.topic, cause)
        return chosen

    def on_new_batch(self, view: TopicView, previous: int, cause: int) -> None:
        """Choose another available partition, if there is one.

        Args:
            view, previous, cause: as in Partitioner.
        """
        if self.current.get(view.topic) == previous:
            others = tuple(number for number in view.choice if number != previous)
            self.current[view.topic] = self.random.of(others or view.choice, view.topic, cause)


@define
class KeyHash:
    """Kafka's default: the key decides (murmur2 over all partitions, available or not). Without a key as
    `Sticky`."""

    sticky: Sticky

    def partition(self, view: TopicView, key: bytes | None, cause: int) -> int:
        """The partition of the key."""
        if key is None:
            return self.sticky.partition(view, key, cause)
        return view.partitions[partition_of_key(key, len(view.partitions))]

    def on_new_batch(self, view: TopicView, previous: int, cause: int) -> None:
        """An append with a key stays in its partition; others move on.

        Args:
            view, previous, cause: as in Partitioner.
        """
        self.sticky.on_new_batch(view, previous, cause)


NAMES = ("key_hash", "sticky", "round_robin", "random")


def make_partitioner(name: str, seed: int = 0) -> Partitioner:
    """The partitioner with this name, one of NAMES. seed: of its keyed randomness."""
    random = KeyedRandom(seed)
    if name == "round_robin":
        return RoundRobin()
    if name == "random":
        return Random(random)
    if name == "sticky":
        return Sticky(random)
    assert name == "key_hash", name
    return KeyHash(Sticky(random))
