"""What the translation of a request consists of, and errors in the core's words: what the parts of our
clients' translation (outward.py, outward_transactions.py, outward_questions.py) have in common.

Owns the shape. Must not know any request.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from attrs import frozen

from fencepost.impl.messages import group_api as groups
from fencepost.traces.kafka_names.outcomes import ErrorCode
from fencepost.wire.dialogue import Dialogue
from fencepost.wire.plain import by_topic

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


def told(kind: Any, request: Any, response: Any, **values: Any) -> Any:
    """An answer in the core's words.

    Args:
        kind: the core's class.
        request: what it answers.
        response: kio's class, or the row of it that has the answer.
        values: the fields that the core names, or means, otherwise than Kafka; it has the others from the
            field of the same name, if this version has one.

    Returns:
        an instance of `kind`.
    """
    if "error" not in values and "error" in kind.__struct_fields__:
        values["error"] = error_of(response.error_code)
    for name in kind.__struct_fields__:
        if name not in values and hasattr(response, name):
            values[name] = getattr(response, name)
    return kind(correlation_id=request.correlation_id, **values)


def translation(
    key: int,
    answer: type,
    ask: Callable[[Any], Mapping[str, Any]] | None = None,
    tell: Callable[[Any, Any], Mapping[str, Any]] | None = None,
    *,
    row: Callable[[Any], Any] | None = None,
    lane: str = "any",
) -> Translation:
    """The translation of a request whose fields Kafka and the core mostly name alike.

    Args:
        key: of the API.
        answer: the core's class of the answer.
        ask: the fields of kio's request that are named or meant otherwise, from the core's request.
        tell: the fields of the core's answer that are, from the core's request and kio's row.
        row: what of kio's response has the answer; None: the response itself.
        lane: as of `Translation`.
    """

    def put(to: Dialogue, request: Any) -> Any:
        same = {name: getattr(request, name) for name in request.__struct_fields__}
        return to.make(key, **{**same, **(ask(request) if ask else {})})

    def take(request: Any, response: Any) -> Any:
        found = row(response) if row else response
        return told(answer, request, found, **(tell(request, found) if tell else {}))

    return Translation(put, take, lane)


def committed_topics(offsets: Iterable[groups.CommittedOffset]) -> list[dict[str, Any]]:
    """The offsets that a request commits, by topic. offsets: in any order."""
    return by_topic(
        (
            each.partition.topic,
            {
                "partition_index": each.partition.partition,
                "committed_offset": each.offset,
                "committed_leader_epoch": each.leader_epoch,
                "committed_metadata": each.metadata,
            },
        )
        for each in offsets
    )
