"""The name of a partition. It is a tuple, because a controller looks up hundreds of thousands of them many
times, and tuples are compared and hashed without Python code.

Owns the rules for valid names. Names come from outside: from requests and from ZooKeeper.
"""

import re
from typing import NamedTuple

LONGEST_TOPIC = 249
"""The longest topic name in characters, as in Kafka. Reason: the name of a directory has at most 255 bytes,
and a hyphen and the partition number follow the topic."""
LONGEST_PARTITION = 255
"""The longest name of a replica's directory in characters."""
LARGEST_PARTITION = (1 << 31) - 1
_LEGAL = re.compile(rf"[a-zA-Z0-9._-]{{1,{LONGEST_TOPIC}}}")


def is_legal_topic(name: str) -> bool:
    """Whether a topic name is valid: 1 to 249 letters, digits, dots, underscores and hyphens, and neither "."
    nor ".." (Kafka's Topic.validate)."""
    return _LEGAL.fullmatch(name) is not None and name not in (".", "..")


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
