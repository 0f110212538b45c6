"""The class of a request or response, by API and version: kio's, and those that kio does not have.

Owns ListOffsets 0, which Kafka 4 removed (KIP-896) and librdkafka before 1.8 asks for. Must not know which
versions are spoken (versions.py). Its request limits the offsets of an answer: they were the first offsets of
segments. An answer to a question for one end of the log has one offset.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from kio.index import load_payload_module, load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.schema.list_offsets.v1 import request as first_request
from kio.schema.list_offsets.v1 import response as first_response
from kio.schema.types import BrokerId, TopicName
from kio.static.constants import EntityType
from kio.static.primitive import i16, i32, i64

LIST_OFFSETS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request0:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[i16] = i16(0)
    __flexible__: ClassVar[bool] = False
    __api_key__: ClassVar[i16] = i16(LIST_OFFSETS)
    __header_schema__: ClassVar[Any] = first_request.ListOffsetsRequest.__header_schema__


@dataclass(frozen=True, slots=True, kw_only=True)
class _Response0:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[i16] = i16(0)
    __flexible__: ClassVar[bool] = False
    __api_key__: ClassVar[i16] = i16(LIST_OFFSETS)
    __header_schema__: ClassVar[Any] = first_response.ListOffsetsResponse.__header_schema__


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOffsetsPartition(_Request0):
    """Of one partition."""

    partition_index: i32 = field(metadata={"kafka_type": "int32"})
    timestamp: i64 = field(metadata={"kafka_type": "int64"})
    # Offsets of the answer at most.
    max_num_offsets: i32 = field(metadata={"kafka_type": "int32"}, default=i32(1))


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOffsetsTopic(_Request0):
    """Of one topic."""

    name: TopicName = field(metadata={"kafka_type": "string"})
    partitions: tuple[ListOffsetsPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOffsetsRequest(_Request0):
    """Version 0."""

    __type__: ClassVar = EntityType.request
    replica_id: BrokerId = field(metadata={"kafka_type": "int32"})
    topics: tuple[ListOffsetsTopic, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOffsetsPartitionResponse(_Response0):
    """Of one partition."""

    partition_index: i32 = field(metadata={"kafka_type": "int32"})
    error_code: ErrorCode = field(metadata={"kafka_type": "error_code"})
    # Empty in error.
    old_style_offsets: tuple[i64, ...] = field(metadata={"kafka_type": "int64"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOffsetsTopicResponse(_Response0):
    """Of one topic."""

    name: TopicName = field(metadata={"kafka_type": "string"})
    partitions: tuple[ListOffsetsPartitionResponse, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOffsetsResponse(_Response0):
    """Version 0."""

    __type__: ClassVar = EntityType.response
    topics: tuple[ListOffsetsTopicResponse, ...]


_OURS: dict[str, Any] = {
    one.__name__: one
    for one in (
        *(ListOffsetsPartition, ListOffsetsTopic, ListOffsetsRequest),
        *(ListOffsetsPartitionResponse, ListOffsetsTopicResponse, ListOffsetsResponse),
    )
}


def request_schema(api_key: int, version: int) -> Any:
    """The class of a request, by `api_key` and `version`. Raises kio's error for one that is not known."""
    if (api_key, version) == (LIST_OFFSETS, 0):
        return ListOffsetsRequest
    return load_request_schema(api_key, version)


def response_schema(api_key: int, version: int) -> Any:
    """The class of a response, by `api_key` and `version`. Raises kio's error for one that is not known."""
    if (api_key, version) == (LIST_OFFSETS, 0):
        return ListOffsetsResponse
    return load_response_schema(api_key, version)


def class_named(api_key: int, version: int, name: str, side: Any) -> Any:
    """A class of a message or of one of its rows.

    Args:
        api_key: of the request.
        version: of the request.
        name: kio's.
        side: EntityType.request or response.
    """
    if (api_key, version) == (LIST_OFFSETS, 0):
        return _OURS[name]
    return getattr(load_payload_module(api_key, version, side), name)
