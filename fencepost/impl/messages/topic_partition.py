"""The name of a partition. A tuple, because a controller looks hundreds of thousands of them up many times: it is compared and hashed without Python."""

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """Topic name and partition number; written t-0."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
