"""The name of a partition. A tuple, because a controller looks hundreds of thousands of them up many times:
it is compared and hashed without Python.

Owns what a name may be. Names come from outside: out of requests, out of ZooKeeper.
"""

import re
from typing import NamedTuple

LONGEST_TOPIC = 249
"""Characters of a topic's name, as in Kafka: a directory's name is at most 255 bytes, and a hyphen and the
partition's number come after it."""
LONGEST_PARTITION = 255
"""Characters of a replica's directory."""
LARGEST_PARTITION = (1 << 31) - 1
_LEGAL = re.compile(rf"[a-zA-Z0-9._-]{{1,{LONGEST_TOPIC}}}")


def is_legal_topic(name: str) -> bool:
    """Whether a topic may be called so: 1 to 249 letters, digits, dots, underscores and hyphens, and neither
    of the two names of directories (Kafka's Topic.validate)."""
    return _LEGAL.fullmatch(name) is not None and name not in (".", "..")


class TopicPartition(NamedTuple):
    """Topic name and partition number; written t-0."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def is_legal(self) -> bool:
        """Whether it can be a partition: a legal topic, a number from 0 on in 32 bits, and a directory's name
        in all."""
        return (
            is_legal_topic(self.topic)
            and 0 <= self.partition <= LARGEST_PARTITION
            and len(str(self)) <= LONGEST_PARTITION
        )
