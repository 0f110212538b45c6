"""The name of a partition. It is a tuple, because a controller looks up hundreds of thousands of them many
times, and tuples are compared and hashed without Python code.

Owns the rules for valid names of partitions. Names come from outside: from requests and from ZooKeeper.
"""

from typing import NamedTuple

from fencepost.traces.plan import is_legal_topic as is_legal_topic

LONGEST_PARTITION = 255
"""The longest name of a replica's directory in characters."""
LARGEST_PARTITION = (1 << 31) - 1


class TopicPartition(NamedTuple):
    """Topic name and partition number; written t-0."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def is_legal(self) -> bool:
        """Whether the partition can exist: a valid topic, a number from 0 on in 32 bits, and a directory name
        that is short enough."""
        return (
            is_legal_topic(self.topic)
            and 0 <= self.partition <= LARGEST_PARTITION
            and len(str(self)) <= LONGEST_PARTITION
        )
