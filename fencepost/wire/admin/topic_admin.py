"""Topics: CreateTopics, DeleteTopics, CreatePartitions, DeleteRecords."""

from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any

from fencepost.impl.messages.admin_api import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    MorePartitions,
    NewTopic,
    ReplicasOf,
    Result,
)
from fencepost.impl.messages.broker_api import (
    LATEST,
    DeleteRecordsRequest,
    ListOffsetsRequest,
    MetadataRequest,
    Request,
)
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode
from fencepost.wire.admin.sentences import sentence
from fencepost.wire.handling import Call, Handling, milliseconds
from fencepost.wire.plain import by_topic, keyed


def create_topics(call: Call, request: Any) -> Handling:
    """The controller answers once each topic has its leaders. call: the request's context; request: kio's
    class."""
    call.patience_ms = timeout_ms = milliseconds(request.timeout)
    (answer,) = yield [
        call.of(
            CreateTopicsRequest,
            request,
            topics=tuple(_new_topic(topic) for topic in request.topics),
            timeout_ms=timeout_ms,
        )
    ]
    return call.answer(topics=_results(answer.results))


def _new_topic(topic: Any) -> NewTopic:
    return NewTopic(
        name=topic.name,
        partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignment=tuple(
            ReplicasOf(partition=each.partition_index, replicas=tuple(each.broker_ids))
            for each in topic.assignments
        ),
        config=tuple((each.name, each.value) for each in topic.configs),
    )


def _results(results: Iterable[Result]) -> list[dict[str, Any]]:
    return [
        {"name": each.name, "error_code": each.error, "error_message": sentence(each.error, each.message)}
        for each in results
    ]


def delete_topics(call: Call, request: Any) -> Handling:
    """The controller answers once the topics are gone. call: the request's context; request: kio's class."""
    call.patience_ms = timeout_ms = milliseconds(request.timeout)
    (answer,) = yield [
        DeleteTopicsRequest(
            correlation_id=call.next_id(), names=tuple(request.topic_names), timeout_ms=timeout_ms
        )
    ]
    return call.answer(responses=_results(answer.results))


def create_partitions(call: Call, request: Any) -> Handling:
    """The controller answers once each partition has its leader. call: the request's context; request: kio's
    class."""
    call.patience_ms = timeout_ms = milliseconds(request.timeout)
    (answer,) = yield [
        call.of(
            CreatePartitionsRequest,
            request,
            topics=tuple(_more_partitions(topic) for topic in request.topics),
            timeout_ms=timeout_ms,
        )
    ]
    once = {result.name: result for result in answer.results}  # one that was named twice has one answer
    return call.answer(results=_results(once.values()))


def _more_partitions(topic: Any) -> MorePartitions:
    assignment = topic.assignments
    return MorePartitions(
        name=topic.name,
        count=topic.count,
        assignment=None if assignment is None else tuple(tuple(each.broker_ids) for each in assignment),
    )


NO_LOW_WATERMARK = -1
HIGH_WATERMARK = -1
"""Instead of an offset: everything that a client may read."""


def delete_records(call: Call, request: Any) -> Handling:
    """This broker must lead each partition; a partition that is not in its metadata is unknown. call: the
    request's context; request: kio's class."""
    call.patience_ms = milliseconds(request.timeout)
    asked = {key: each.offset for key, each in keyed(request.topics)}
    outcomes = yield from _delete(call, asked)
    rows = (
        (key.topic, {"partition_index": key.partition, "low_watermark": low, "error_code": error})
        for key in asked
        for error, low in (outcomes[key],)
    )
    return call.answer(topics=by_topic(rows))


def _delete(
    call: Call, asked: Mapping[TopicPartition, int]
) -> Generator[Sequence[Request], list[Any], dict[TopicPartition, tuple[ErrorCode, int]]]:
    """Error and low watermark of each."""
    names = tuple(dict.fromkeys(key.topic for key in asked))
    (metadata,) = yield [MetadataRequest(correlation_id=call.next_id(), topics=names)]
    there = {each.partition for each in metadata.partitions}
    outcomes = {
        key: (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NO_LOW_WATERMARK) for key in asked if key not in there
    }
    ends = [key for key in asked if key in there and asked[key] == HIGH_WATERMARK]
    answers = yield [
        ListOffsetsRequest(correlation_id=call.next_id(), partition=key, timestamp=LATEST) for key in ends
    ]
    offsets = dict(asked)
    for key, answer in zip(ends, answers, strict=True):
        offsets[key] = answer.offset
        if answer.error is not NO_ERROR:
            outcomes[key] = answer.error, NO_LOW_WATERMARK
    for key, offset in offsets.items():
        if offset < 0:
            outcomes.setdefault(key, (ErrorCode.OFFSET_OUT_OF_RANGE, NO_LOW_WATERMARK))
    led = [key for key in asked if key not in outcomes]
    answers = yield [
        DeleteRecordsRequest(correlation_id=call.next_id(), partition=key, offset=offsets[key]) for key in led
    ]
    for key, answer in zip(led, answers, strict=True):
        low = answer.low_watermark if answer.error is NO_ERROR else NO_LOW_WATERMARK
        unknown = answer.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION  # here: metadata knows it
        outcomes[key] = ErrorCode.NOT_LEADER_OR_FOLLOWER if unknown else answer.error, low
    return outcomes
