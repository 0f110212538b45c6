"""An error in place of an answer, for a whole request or for some of its partitions.

Owns how a request is split: partitions that are hit do not reach the broker, and their rows are put into the
answer to the rest. Must not know which error it is, or why.
"""

from typing import Any

from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.proxy.faults.fault import RequestFault
from fencepost.proxy.faults.request import Asked, Carried, Plan
from fencepost.wire.error_answers import answer_in_error, error_answer, with_error
from fencepost.wire.hook import Replace
from fencepost.wire.names import error_named
from fencepost.wire.shapes import merged, topics_of, without

BY_TOPIC = frozenset({"Metadata"})
"""Requests whose answers say more than what was asked for (the brokers): they are answered, then changed."""
OF_TOPICS = frozenset({"UNKNOWN_TOPIC_OR_PARTITION"})
"""Errors that Metadata gives to a whole topic, which then has no partitions, never to one of its partitions
(KafkaApis.getTopicMetadata, MetadataCache.getPartitionMetadata)."""


def refused(asked: Asked, error: str, hit: tuple[TopicPartition, ...], fault: RequestFault) -> Carried | None:
    """A request without effect on these partitions (on all, where it names none), and their error. None where
    there is no place for it in the answer."""
    if not asked.answered:
        return None
    if asked.api in BY_TOPIC:
        return Carried(plan=Plan(fault=fault, counts=True))
    code = error_named(error)
    if not hit or len(hit) == len(asked.partitions):
        answer = error_answer(asked.body, code)
        return None if answer is None else Carried(verdict=Replace(answer))
    rows = error_answer(asked.body, code, hit)
    if rows is None:
        return None
    return Carried(verdict=Replace(without(asked.body, hit)), plan=Plan(fault=fault, extra=rows))


def in_error(fault: RequestFault, asked: Asked, answer: Any) -> Any | None:
    """An answer in which what the fault hits is in error; None if there is nothing."""
    code = error_named(fault.error)
    if asked.api in BY_TOPIC and fault.error in OF_TOPICS:
        topics = [name for name in topics_of(answer) if fault.topic in ("", name)]
        return with_error(answer, code, topics=topics) if topics else None
    if not fault.topic:
        return answer_in_error(answer, code)
    if asked.api in BY_TOPIC:
        if fault.partition < 0:
            named = fault.topic in topics_of(answer)
            return with_error(answer, code, topics=[fault.topic]) if named else None
        return with_error(answer, code, [TopicPartition(fault.topic, fault.partition)])
    return with_error(answer, code, asked.hit(fault.topic, fault.partition))


def with_rows(answer: Any, rows: Any) -> Any:
    """The answer to the rest of a request, with the rows of what was taken out of it."""
    return merged(answer, rows)
