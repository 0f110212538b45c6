"""What each replica has: both ends of its log, what clients may read of it, its producers; and what each
broker holds.

Owns the questions. Must not know groups and transactions.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from attrs import evolve

from fencepost.asked.step import NOBODY, Part, Reply, Scope, Step, alike, error_of, put, seen
from fencepost.asked.survey import INTERNAL, Survey
from fencepost.impl.messages.admin_api import DescribeLogDirsRequest
from fencepost.impl.messages.broker_api import DEBUGGER, EARLIEST, LATEST, ListOffsetsRequest
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.impl.messages.transaction_api import DescribeProducersRequest, DescribeProducersResponse
from fencepost.traces.events import Question

LOG_START = "log_start_offset"


def log_ends(scope: Scope, survey: Survey) -> Part:
    """The ends of every replica's log, and of the leader's what clients may read.

    Args:
        scope: of the round.
        survey: who leads and has replicas.
    """
    for key in survey.of_interest():
        for replica in survey.replicas(key):
            yield from _ends(scope, survey, key, replica)


def _ends(scope: Scope, survey: Survey, key: TopicPartition, replica: int) -> Part:
    """One replica's. The last stable offset is asked for first and the log end last, so that they are in
    order although they are not of one moment."""
    leader = survey.leader(key)
    offsets: dict[str, Any] = {}
    epochs: dict[str, int] = {}
    errors: dict[str, str] = {}
    replies: list[Reply] = []
    for column, request in _questions(key, replica == leader):
        step = Step(broker=replica, question=Question.LOG, request=request, key=key, leader=leader)
        reply = yield step
        assert reply is not None, "a step is answered by a reply"
        if reply.skipped:
            continue
        replies.append(reply)
        if error := error_of(reply):
            errors[column] = error
        else:
            offsets[column], epochs[column] = reply.message.offset, reply.message.leader_epoch
    if LOG_START in offsets:
        survey.log_starts[key, replica] = offsets[LOG_START]
    if "high_watermark" in offsets:
        survey.high_watermarks[key] = offsets["high_watermark"]
    if offsets.get("offset", -1) >= offsets.get("high_watermark", 0):
        survey.stable.add(key)
    if replies:
        whole = evolve(replies[0], answered=replies[-1].answered)
        detail: dict[str, Any] = {"errors": errors} if errors and offsets else {}
        if len(set(epochs.values())) > 1:
            detail["epochs"] = epochs
        yield seen(
            scope,
            step,
            whole,
            error="" if offsets else next(iter(errors.values())),
            detail=detail,
            leader_epoch=next(reversed(epochs.values()), NOBODY),
            **offsets,
        )


def _questions(key: TopicPartition, leads: bool) -> Iterator[tuple[str, ListOffsetsRequest]]:
    """Each with the column of its answer."""
    ask = partial(ListOffsetsRequest, correlation_id=0, partition=key)
    if leads:
        yield "offset", ask(timestamp=LATEST, read_committed=True)
        yield "high_watermark", ask(timestamp=LATEST)
    yield LOG_START, ask(timestamp=EARLIEST, replica_id=DEBUGGER)
    yield "end_offset", ask(timestamp=LATEST, replica_id=DEBUGGER)


def producers(scope: Scope, survey: Survey) -> Part:
    """The producers that every replica's log remembers.

    Args:
        scope: of the round.
        survey: who has replicas.
    """
    answers = []
    for key in survey.of_interest():
        if key.topic in INTERNAL or (scope.spare and key in survey.stable):
            continue
        for replica in survey.replicas(key):
            step = Step(
                broker=replica,
                question=Question.PRODUCERS,
                request=DescribeProducersRequest(correlation_id=0, partition=key),
                key=key,
                leader=survey.leader(key),
            )
            reply = yield from put(scope, step)
            if reply is not None:
                answers.append((step, reply, {"detail": {"producers": _known(reply.message)}}))
    yield from alike(scope, answers)


def _known(answer: DescribeProducersResponse) -> list[list[int]]:
    return [
        [one.producer_id, one.producer_epoch, one.last_sequence, one.coordinator_epoch, one.open_since]
        for one in sorted(answer.producers, key=lambda one: one.producer_id)
    ]


def log_directories(scope: Scope) -> Part:
    """Which replicas each broker holds, those of deleted topics included.

    Args:
        scope: of the round.
    """
    wanted = {*scope.topics, *INTERNAL}
    for broker in scope.brokers:
        request = DescribeLogDirsRequest(correlation_id=0)
        step = Step(broker=broker, question=Question.LOG_DIRECTORIES, request=request)
        reply = yield from put(scope, step)
        if reply is not None:
            logs = [
                [*scope.place(one.partition), one.size, one.offset_lag]
                for one in sorted(reply.message.logs, key=lambda one: one.partition)
                if one.partition.topic in wanted
            ]
            yield seen(scope, step, reply, filtered=True, detail={"logs": logs})
