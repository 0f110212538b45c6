"""The response that answers a request of any API and version of kio with an error.

Owns the correspondence between the rows of a request and those of its response. Must not know which errors a
broker may answer. Theory: the rows of a response name what the rows of its request name. An error is in
the innermost row that has a field for it, unless it concerns the request as a whole. Kafka does the same
(AbstractRequest.getErrorResponse of each request class).
"""

import dataclasses
from collections.abc import Collection, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode as WireError
from kio.schema.types import TopicName

from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.wire.names import error_named
from fencepost.wire.schemas import response_schema
from fencepost.wire.shapes import (
    ALIASES,
    EITHER,
    NOT_ASKED,
    PARTITION_LISTS,
    Field,
    changed,
    changed_topics,
    fields_of,
    identity_of,
    kind_of,
    only,
    partitions_of,
    rows_of,
    topics_of,
)

WHOLE_REQUEST = frozenset(
    error_named(name)
    for name in (
        *("COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "NOT_CONTROLLER"),
        *("GROUP_AUTHORIZATION_FAILED", "INVALID_GROUP_ID", "GROUP_ID_NOT_FOUND", "NON_EMPTY_GROUP"),
        *("FETCH_SESSION_ID_NOT_FOUND", "INVALID_FETCH_SESSION_EPOCH", "FETCH_SESSION_TOPIC_ID_ERROR"),
        *("SHARE_SESSION_NOT_FOUND", "INVALID_SHARE_SESSION_EPOCH", "SHARE_SESSION_LIMIT_REACHED"),
        *("CLUSTER_AUTHORIZATION_FAILED", "FENCED_INSTANCE_ID", "REBOOTSTRAP_REQUIRED"),
    )
)
"""Errors of the request as a whole: they are at the top if the response has a field there."""
NO_ID = -1
"""What Kafka fills numbers of an error's row with: no offset, no epoch, no node."""
OF_A_PARTITION = frozenset({"leader_epoch", "replica_nodes", "isr_nodes", "offline_replicas"})
"""What an answer says of a partition whose leader is in error (MetadataCache.getPartitionMetadata)."""
NO_TIME = datetime(1970, 1, 1, tzinfo=UTC)
"""Fills a field that must hold a time."""


def error_answer(
    body: Any, error: WireError, partitions: Collection[TopicPartition] | None = None
) -> Any | None:
    """The response that answers a request with an error. partitions: only these of the request's; None: all.
    Answers None where the response has no place for an error, or the request names nothing to put it on."""
    if partitions is not None:
        body = only(body, partitions)
    kind = response_schema(body.__api_key__, body.__version__)
    top = any(each.kind is WireError for each in fields_of(kind))
    if top and (error in WHOLE_REQUEST or not _rows_with_error(kind, body)):
        return _filled(kind, body, error, rows=False)
    answer = _filled(kind, body, error, rows=True)
    return answer if _has(answer, error) else None


def with_error(
    answer: Any, error: WireError, partitions: Collection[TopicPartition] = (), topics: Collection[str] = ()
) -> Any:
    """A response in which the rows of these partitions, or of these whole topics, are in error."""
    if topics:
        answer = changed_topics(
            answer, lambda name, row: _filled(kind_of(row), row, error, rows=False) if name in topics else row
        )
    if partitions:
        answer = changed(
            answer, lambda key, row: _filled(kind_of(row), row, error) if key in partitions else row
        )
    return answer


def answer_in_error(answer: Any, error: WireError) -> Any:
    """A response in which every row, or the whole where it has no rows of partitions or topics, is in
    error."""
    if any(each.kind is WireError for each in fields_of(kind_of(answer))) and (
        error in WHOLE_REQUEST or not topics_of(answer)
    ):
        return _filled(kind_of(answer), answer, error, rows=False)
    found = partitions_of(answer)
    if found and any(_error_field(kind_of(row)) for row in rows_of(answer).values()):
        return with_error(answer, error, partitions=found)
    return with_error(answer, error, topics=topics_of(answer))


def errors_in(answer: Any) -> list[WireError]:
    """Every error of a response, `none` left out, from the top to the rows."""
    found = []
    for each in fields_of(kind_of(answer)):
        value = getattr(answer, each.name)
        if each.kind is WireError and value is not WireError.none:
            found.append(value)
        elif each.rows:
            for row in value or ():
                found += errors_in(row)
    return found


def _error_field(kind: Any) -> bool:
    return any(each.kind is WireError for each in fields_of(kind))


@cache
def _carries_error(kind: Any) -> bool:
    return any(
        each.kind is WireError or (each.rows and each.entity is not None and _carries_error(each.entity))
        for each in fields_of(kind)
    )


def _has(answer: Any, error: WireError) -> bool:
    return error in errors_in(answer)


def _rows_with_error(kind: Any, request: Any) -> bool:
    return any(
        each.entity is not None and _carries_error(each.entity) and list(_matching(each.entity, request))
        for each in fields_of(kind)
        if each.rows
    )


def _matching(kind: Any, request: Any) -> Iterator[Any]:
    """The rows of a request, or plain values, that rows of this class answer."""
    wanted = {ALIASES.get(name, name) for name in identity_of(kind)}
    for each in fields_of(kind_of(request)) if dataclasses.is_dataclass(request) else ():
        if each.name in NOT_ASKED or each.element is None:
            continue
        if each.entity is not None:
            given = {ALIASES.get(name, name) for name in identity_of(each.entity)}
            if wanted & given and wanted - EITHER <= given:
                yield from getattr(request, each.name) or ()
        elif len(wanted - {"topic_id"}) == 1 and _plain_fits(kind, each):
            yield from getattr(request, each.name) or ()


def _plain_fits(kind: Any, array: Field) -> bool:
    """Whether an array of plain values lists what rows of this class are about."""
    (name,) = [one for one in identity_of(kind) if one != "topic_id"]
    if ALIASES.get(name, name) == "partition":
        return array.name in PARTITION_LISTS
    if array.element is TopicName:
        return any(each.kind is TopicName for each in fields_of(kind))
    return ALIASES.get(name, name) in ("group_id", "key") and array.name in (
        "groups",
        "groups_names",
        "group_ids",
        "coordinator_keys",
    )


def _filled(kind: Any, source: Any, error: WireError, *, rows: bool = True) -> Any:
    """An instance of a response's class with an error. source: the row of the request, or of a response, that
    it answers. rows: whether the error is in rows, if the class has a field for it there."""
    inner = rows and any(
        each.rows and each.entity is not None and _carries_error(each.entity) for each in fields_of(kind)
    )
    in_rows = inner and _rows_with_error(kind, source)
    values: dict[str, Any] = {}
    for each in fields_of(kind):
        if each.kind is WireError:
            values[each.name] = WireError.none if in_rows else error
        elif each.rows and each.entity is not None and in_rows and _carries_error(each.entity):
            values[each.name] = tuple(
                _filled(each.entity, row, error) for row in _matching(each.entity, source)
            )
        else:
            values[each.name] = _value(kind, each, source)
    return kind(**values)


def _value(kind: Any, field: Field, source: Any) -> Any:
    """The value of a field in a row with an error: what the row names, or an empty value."""
    if field.name in identity_of(kind):
        return _identity_value(field, source)
    if field.name in OF_A_PARTITION and hasattr(source, "replica_nodes"):
        return getattr(source, field.name)
    if field.name == "records":
        return b""
    if field.default is not dataclasses.MISSING:
        return field.default
    if field.element is not None:
        return ()
    return None if field.nullable else _nothing(field)


def _identity_value(field: Field, source: Any) -> Any:
    if not dataclasses.is_dataclass(source):
        return source
    wanted = ALIASES.get(field.name, field.name)
    for each in fields_of(kind_of(source)):
        if ALIASES.get(each.name, each.name) == wanted and each.element is None:
            given = getattr(source, each.name)
            if given is not None:
                return given
    return None if field.nullable else _nothing(field)


def _nothing(field: Field) -> Any:
    kind = field.kind
    if field.entity is not None:
        return field.entity(
            **{each.name: _value(field.entity, each, None) for each in fields_of(field.entity)}
        )
    if kind is UUID:
        return UUID(int=0)
    for base in getattr(kind, "__mro__", ()):
        if base is bool:
            return False
        if base is timedelta:
            return timedelta(0)
        if base is int:
            return NO_ID
        if base is str:
            return ""
        if base is bytes:
            return b""
        if base is datetime:
            return NO_TIME
    return kind()
