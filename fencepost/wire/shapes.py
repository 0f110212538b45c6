"""Requests and responses of any API and version of kio by their shape: which topics, partitions and group
they name, and copies of them with rows left out, changed or added.

Owns what is a row of a topic or a partition, and what distinguishes rows. Must not know what an API means.
Theory: kio has a class for each row, and Kafka's messages name the same thing in fields of slightly different
names (topic or name; partition, index, partition_index or partition_id), never in two of them.
"""

import dataclasses
import types
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from attrs import frozen
from kio.schema.types import TopicName
from kio.static.constants import EntityType

from fencepost.impl.messages.topic_partition import TopicPartition

PARTITION_NAMES = frozenset({"partition", "partition_index", "index", "partition_id"})
"""Fields that number a partition, in a row of one."""
PARTITION_LISTS = frozenset({"partitions", "partition_indexes"})
"""Fields that list numbers of partitions without a row for each."""
NOT_ASKED = frozenset({"forgotten_topics_data"})
"""Rows that name topics that the request does not ask for (fetch sessions)."""


def is_response(body: Any) -> bool:
    """Whether it is a response, not a request."""
    return bool(body.__type__ is EntityType.response)


# ---- what a message is made of


@frozen
class Field:
    """One field of a class of kio."""

    name: str
    # Its type, without None.
    kind: Any
    nullable: bool
    # The class of its rows, or of itself; None for plain values.
    entity: Any
    # The type of an array's elements; None for a field that is not an array.
    element: Any
    # dataclasses.MISSING where it has none.
    default: Any

    @property
    def rows(self) -> bool:
        """Whether it is an array of rows."""
        return self.entity is not None and self.element is not None

    @property
    def names_topic(self) -> bool:
        """Whether it is the name or the id of a topic."""
        return self.kind is TopicName or self.name == "topic_id"


def kind_of(message: Any) -> Any:
    """Its class."""
    return type(message)


@cache
def fields_of(kind: Any) -> tuple[Field, ...]:
    return tuple(_field(each) for each in dataclasses.fields(kind))


def _field(field: "dataclasses.Field[Any]") -> Field:
    alternatives = (
        [one for one in typing.get_args(field.type) if one is not types.NoneType]
        if _is_union(field.type)
        else [field.type]
    )
    kind: Any = alternatives[0]
    element = next((one for one in typing.get_args(kind) if one is not ...), None)
    inner = kind if element is None else element
    return Field(
        name=field.name,
        kind=kind,
        nullable=len(alternatives) < len(typing.get_args(field.type)),
        entity=inner if dataclasses.is_dataclass(inner) and isinstance(inner, type) else None,
        element=element if typing.get_origin(kind) is tuple else None,
        default=field.default,
    )


def _is_union(kind: Any) -> bool:
    return typing.get_origin(kind) in (typing.Union, types.UnionType)


@cache
def _topic_field(kind: Any) -> str | None:
    """The field of a row that says which topic it is."""
    named = [each.name for each in fields_of(kind) if each.kind is TopicName]
    by_id = [each.name for each in fields_of(kind) if each.name == "topic_id"]
    return next(iter(named + by_id), None)


@cache
def _partition_field(kind: Any) -> str | None:
    return next((each.name for each in fields_of(kind) if each.name in PARTITION_NAMES), None)


@cache
def _partition_array(kind: Any) -> Field | None:
    """The partitions of a topic's row: rows, or plain numbers."""
    for each in fields_of(kind):
        if each.rows and each.entity is not None and _partition_field(each.entity) is not None:
            return each
        if each.element is not None and each.entity is None and each.name in PARTITION_LISTS:
            return each
    return None


def _topic_of(row: Any) -> str:
    """Its name, or its id where the version has no names."""
    for each in fields_of(kind_of(row)):
        if each.kind is TopicName and getattr(row, each.name) is not None:
            return str(getattr(row, each.name))
    return str(getattr(row, "topic_id", ""))


def _numbers(row: Any) -> Iterator[tuple[int, Any]]:
    """The partitions of a topic's row, each with its row."""
    array = _partition_array(kind_of(row))
    for each in (getattr(row, array.name) or ()) if array is not None else ():
        if array is not None and array.entity is not None:
            yield getattr(each, str(_partition_field(array.entity))), each
        else:
            yield each, each


def _topic_arrays(body: Any) -> Iterator[tuple[Field, Any]]:
    """The arrays of topics of a message, with the row or message that each is in."""
    for each in fields_of(kind_of(body)):
        if not each.rows or each.name in NOT_ASKED or each.entity is None:
            continue
        if _topic_field(each.entity) is not None:
            yield each, body
        else:
            for row in getattr(body, each.name) or ():
                yield from _topic_arrays(row)


def topics_of(body: Any) -> list[str]:
    """The topics that a message names, in order."""
    plain = [
        str(name)
        for each in fields_of(kind_of(body))
        if each.element is TopicName
        for name in getattr(body, each.name) or ()
    ]
    return plain + [
        _topic_of(row) for array, owner in _topic_arrays(body) for row in getattr(owner, array.name) or ()
    ]


def partitions_of(body: Any) -> list[TopicPartition]:
    """The partitions that a message names, in order; none for one that names topics only."""
    return [
        TopicPartition(_topic_of(row), number)
        for array, owner in _topic_arrays(body)
        for row in getattr(owner, array.name) or ()
        for number, _ in _numbers(row)
    ]


def rows_of(body: Any) -> dict[TopicPartition, Any]:
    """The rows of a message's partitions."""
    return {
        TopicPartition(_topic_of(row), number): each
        for array, owner in _topic_arrays(body)
        for row in getattr(owner, array.name) or ()
        for number, each in _numbers(row)
    }


def group_of(body: Any) -> str | None:
    """The consumer group that a request names; that of FindCoordinator, too."""
    name = getattr(body, "group_id", None)
    if name is None and getattr(body, "key_type", 1) == 0:
        name = getattr(body, "key", None) or next(iter(getattr(body, "coordinator_keys", ())), None)
    return None if name is None else str(name)


def member_of(body: Any) -> str:
    """The member of a group that asks; empty where none is named."""
    return str(getattr(body, "member_id", "") or "")


def is_answered(body: Any) -> bool:
    """Whether a broker answers a request: not a produce with acks=0."""
    return not (body.__api_key__ == 0 and body.acks == 0)


# ---- taking rows out, and putting them in


def changed(body: Any, change: Callable[[TopicPartition, Any], Any | None]) -> Any:
    """A copy of a message with other rows of partitions. change(partition, row): the row, or None to leave it
    out; a topic without a row left is left out, too."""

    def topic(row: Any) -> Any | None:
        array = _partition_array(kind_of(row))
        if array is None:
            return row
        kept = tuple(
            new
            for number, each in _numbers(row)
            if (new := change(TopicPartition(_topic_of(row), number), each)) is not None
        )
        return dataclasses.replace(row, **{array.name: kept}) if kept else None

    return _with_topics(body, topic)


def changed_topics(body: Any, change: Callable[[str, Any], Any | None]) -> Any:
    """A copy of a message with other rows of topics. change(name, row): the row, or None to leave it out."""
    return _with_topics(body, lambda row: change(_topic_of(row), row))


def _with_topics(body: Any, change: Callable[[Any], Any | None]) -> Any:
    values: dict[str, Any] = {}
    for each in fields_of(kind_of(body)):
        rows = getattr(body, each.name)
        if not each.rows or each.entity is None or not rows or each.name in NOT_ASKED:
            continue
        if _topic_field(each.entity) is not None:
            values[each.name] = tuple(new for row in rows if (new := change(row)) is not None)
        else:
            values[each.name] = tuple(_with_topics(row, change) for row in rows)
    return dataclasses.replace(body, **values) if values else body


def without(body: Any, partitions: Collection[TopicPartition]) -> Any:
    """A copy of a message without these partitions."""
    return changed(body, lambda key, row: None if key in partitions else row)


def only(body: Any, partitions: Collection[TopicPartition]) -> Any:
    """A copy of a message with these partitions alone."""
    return changed(body, lambda key, row: row if key in partitions else None)


ALIASES: Mapping[str, str] = {
    **dict.fromkeys(PARTITION_NAMES, "partition"),
    "topic": "name",
    "group": "group_id",
}
_IDENTITIES = frozenset({"name", "partition", "topic_id", "group_id", "key", "member_id", "transactional_id"})
"""Fields that distinguish rows, after aliases are resolved; resource rows have two more."""
EITHER = frozenset({"name", "topic_id"})
"""A topic is named by one of them."""
_RESOURCES = frozenset({"resource_type", "resource_name"})


@cache
def identity_of(kind: Any) -> tuple[str, ...]:
    """The fields of a row that identify it."""
    return tuple(
        each.name
        for each in fields_of(kind)
        if each.entity is None
        and each.element is None
        and ALIASES.get(each.name, each.name) in _IDENTITIES | _RESOURCES
    )


def _key(row: Any, names: Iterable[str]) -> tuple[Any, ...]:
    return tuple(getattr(row, name) for name in names)


def merged(answer: Any, more: Any) -> Any:
    """A response with the rows of another one of the same class added. answer: the first; more: the other."""
    values: dict[str, Any] = {}
    for each in fields_of(kind_of(answer)):
        theirs = getattr(more, each.name)
        if not each.rows or each.entity is None or not theirs:
            continue
        mine = getattr(answer, each.name) or ()
        identity = identity_of(each.entity)
        places = {_key(row, identity): place for place, row in enumerate(mine)}
        rows = list(mine)
        for row in theirs:
            place = places.get(_key(row, identity))
            if place is None:
                rows.append(row)
            else:
                rows[place] = merged(rows[place], row)
        values[each.name] = tuple(rows)
    return dataclasses.replace(answer, **values) if values else answer
