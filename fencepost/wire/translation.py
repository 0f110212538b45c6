"""What the translation of a request consists of, and errors in the core's words: what the two halves of our
clients' translation (outward.py, outward_transactions.py) have in common.

Owns the shape. Must not know any request.
"""

from collections.abc import Callable, Iterable
from typing import Any

from attrs import frozen

from fencepost.impl.messages import group_api as groups
from fencepost.traces.outcomes import ErrorCode
from fencepost.wire.dialogue import Dialogue
from fencepost.wire.handling import grouped

_ERRORS = {code.value.lower(): code for code in ErrorCode}

Ask = Callable[[Dialogue, Any], Any]
"""ask(dialogue, the core's request) -> kio's request at the version agreed on."""
Tell = Callable[[Any, Any], Any]
"""tell(the core's request, kio's response) -> the core's response."""


@frozen
class Translation:
    """ask, tell: translate a request and its answer. lane: requests of one lane share a connection, and the
    broker carries them out one after the other."""

    ask: Ask
    tell: Tell
    lane: str = "any"


def error_of(code: Any) -> ErrorCode:
    """kio's error in the core's words; UNKNOWN_SERVER_ERROR for one that the core has no word for."""
    return _ERRORS.get(code.name, ErrorCode.UNKNOWN_SERVER_ERROR)


def first_error(codes: Iterable[Any]) -> ErrorCode:
    """What several parts of an answer come to in the core's words.

    Args:
        codes: kio's errors of the parts.

    Returns:
        the first that is one, else ErrorCode.NONE.
    """
    return next((error for error in map(error_of, codes) if error is not ErrorCode.NONE), ErrorCode.NONE)


def committed_topics(
    to: Dialogue, api_key: int, name: str, offsets: Iterable[groups.CommittedOffset]
) -> tuple[Any, ...]:
    """The offsets that a request commits, by topic.

    Args:
        to: whom it is sent to.
        api_key: the request's.
        name: its kind in kio.
        offsets: in any order.

    Returns:
        kio's topics with their partitions.
    """
    return tuple(
        to.make(
            api_key,
            f"{name}Topic",
            name=topic,
            partitions=tuple(
                to.make(
                    api_key,
                    f"{name}Partition",
                    partition_index=each.partition.partition,
                    committed_offset=each.offset,
                    committed_leader_epoch=each.leader_epoch,
                    committed_metadata=each.metadata,
                )
                for each in of_topic
            ),
        )
        for topic, of_topic in grouped((each.partition.topic, each) for each in offsets).items()
    )
