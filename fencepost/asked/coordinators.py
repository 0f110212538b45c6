"""Groups and transactions as their coordinators know them, and reassignments as the controller does.

Owns the questions. Must not know what is stored (stored.py). The coordinator of a group is the leader of the
partition that the hash of its name gives: FindCoordinator would create Kafka's own topics.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from fencepost.asked.step import NOBODY, Part, Scope, Step, error_of, put, seen
from fencepost.asked.survey import Survey
from fencepost.asked.wire_only import ConsumerGroupDescribeRequest
from fencepost.impl.messages.admin_api import (
    ConfigSource,
    DescribeConfigsRequest,
    DescribedResource,
    ListPartitionReassignmentsRequest,
    ResourceKind,
)
from fencepost.impl.messages.consumer_protocol import decode_assignment
from fencepost.impl.messages.group_api import DescribeGroupRequest, OffsetFetchRequest
from fencepost.impl.messages.transaction_api import DescribeTransactionRequest, ListTransactionsRequest
from fencepost.traces.events import Question
from fencepost.traces.kafka_names.internal_topics import OFFSETS_TOPIC
from fencepost.traces.kafka_names.outcomes import ErrorCode

NOT_OF_THAT_KIND = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)
"""How a coordinator answers ConsumerGroupDescribe of a classic group, or without the consumer protocol."""
CONTROLLER_MS = 1_000
"""How long a broker may wait for the controller's answer."""


def groups(scope: Scope, survey: Survey) -> Part:
    """Members, assignments and committed offsets of the run's groups.

    Args:
        scope: of the round.
        survey: who leads.
    """
    for step in _of_coordinators(scope, survey, of_groups=True):
        reply = yield step
        assert reply is not None, "a step is answered by a reply"
        error = error_of(reply)
        if reply.skipped or (step.question is Question.CONSUMER_GROUP and error in NOT_OF_THAT_KIND):
            continue
        told = {} if error else TOLD[step.question](scope, reply.message)
        yield seen(scope, step, reply, error=error, detail=told)


def transactions(scope: Scope, survey: Survey) -> Part:
    """What each broker lists of the run's transactional ids, and what their coordinators say of each.

    Args:
        scope: of the round.
        survey: who leads.
    """
    for broker in scope.brokers if scope.transactional_ids else ():
        step = Step(
            broker=broker, question=Question.TRANSACTIONS, request=ListTransactionsRequest(correlation_id=0)
        )
        reply = yield from put(scope, step)
        if reply is not None:
            known = sorted(one for one in reply.message.transactions if one[0] in scope.transactional_ids)
            yield seen(scope, step, reply, filtered=True, detail={"transactions": known})
    for step in _of_coordinators(scope, survey, of_groups=False):
        reply = yield from put(scope, step)
        if reply is not None:
            yield seen(scope, step, reply, detail=TOLD[step.question](scope, reply.message))


def _of_coordinators(scope: Scope, survey: Survey, *, of_groups: bool) -> Iterator[Step]:
    for key, names in survey.coordinated().items():
        if (key.topic == OFFSETS_TOPIC) != of_groups:
            continue
        leader = survey.leader(key)
        for name in names:
            for question, request in _requests(scope, leader, name, of_groups=of_groups):
                yield Step(
                    broker=leader,
                    question=question,
                    request=request,
                    key=key,
                    leader=leader,
                    about={"group" if of_groups else "transactional_id": name},
                )


def _requests(scope: Scope, leader: int, name: str, *, of_groups: bool) -> Iterator[tuple[Question, Any]]:
    if not of_groups:
        yield Question.TRANSACTION, DescribeTransactionRequest(correlation_id=0, transactional_id=name)
        return
    yield Question.GROUP, DescribeGroupRequest(correlation_id=0, group_id=name)
    if leader != NOBODY and scope.speaks(leader, ConsumerGroupDescribeRequest):
        yield Question.CONSUMER_GROUP, ConsumerGroupDescribeRequest(correlation_id=0, group_id=name)
    yield Question.COMMITTED, OffsetFetchRequest(correlation_id=0, group_id=name)


def reassignments(scope: Scope) -> Part:
    """Reassignments in progress, of the first broker that is the controller, or asks it.

    Args:
        scope: of the round.
    """
    for broker in scope.brokers:
        request = ListPartitionReassignmentsRequest(
            correlation_id=0, partitions=None, timeout_ms=CONTROLLER_MS
        )
        step = Step(broker=broker, question=Question.REASSIGNMENTS, request=request)
        reply = yield step
        assert reply is not None, "a step is answered by a reply"
        error = error_of(reply)
        if not error and not reply.skipped:
            yield seen(scope, step, reply, detail=_reassigned(scope, reply.message))
            return
        if not reply.skipped and error != ErrorCode.NOT_CONTROLLER:  # only ours do not pass it on
            yield seen(scope, step, reply, error=error)


def _reassigned(scope: Scope, answer: Any) -> dict[str, Any]:
    return {
        "reassignments": [
            [*scope.place(one.partition), list(one.replicas), list(one.adding), list(one.removing)]
            for one in sorted(answer.reassignments, key=lambda one: one.partition)
            if one.partition.topic in scope.topics
        ]
    }


SETTING_NAMES = ("min.insync.replicas", "unclean.leader.election.enable")
"""Those that decide whether an acknowledged record may be lost."""
OF_BROKERS = (
    "offsets.commit.required.acks",
    "offsets.topic.replication.factor",
    "transaction.state.log.min.isr",
    "transaction.state.log.replication.factor",
)
"""Those that decide it for Kafka's own topics: each broker has its own."""
COMPARED = (
    "cleanup.policy",
    "retention.ms",
    "retention.bytes",
    "max.message.bytes",
    "message.timestamp.type",
)
"""Others that change what clients see; brokers are compared by them."""


def settings(scope: Scope, survey: Survey) -> Part:
    """The settings of topics, of the first broker that answers: each answers for all. In a cluster in use
    every broker is asked, for its own, too: one that is cut off knows old ones.

    Args:
        scope: of the round.
        survey: which topics there are.
    """
    topics = sorted({key.topic for key in survey.partitions})
    for broker in scope.brokers if topics else ():
        own = DescribedResource(kind=ResourceKind.BROKER, name=str(broker), keys=OF_BROKERS)
        request = DescribeConfigsRequest(
            correlation_id=0,
            resources=tuple(
                DescribedResource(kind=ResourceKind.TOPIC, name=topic, keys=SETTING_NAMES + COMPARED)
                for topic in topics
            )
            + ((own,) if scope.spare else ()),
        )
        step = Step(broker=broker, question=Question.SETTINGS, request=request)
        reply = yield from put(scope, step)
        if reply is None:
            continue
        found = reply.message.resources
        said = [
            [scope.name(one.name) if one.kind is ResourceKind.TOPIC else "", each.name, each.value]
            for one in found
            for each in one.entries
            if each.name in SETTING_NAMES + OF_BROKERS
        ]
        refused = next((str(one.error) for one in found if one.error is not ErrorCode.NONE), "")
        dynamic = [
            [scope.name(one.name), each.name, each.value]
            for one in found
            for each in one.entries
            if each.source is ConfigSource.DYNAMIC_TOPIC_CONFIG
        ]
        if said:
            yield seen(scope, step, reply, detail={"settings": said, "dynamic": dynamic})
        if refused or not said:
            yield seen(scope, step, reply, error=refused)
        if not scope.spare:
            return


# ---- what coordinators say


def assigned(scope: Scope, data: bytes) -> list[list[Any]] | None:
    """A member's partitions, from its assignment; None if that is none.

    Args:
        scope: of the round.
        data: Kafka's consumer protocol.
    """
    partitions = decode_assignment(data)
    return None if partitions is None else [scope.place(key) for key in sorted(partitions)]


def _group(scope: Scope, answer: Any) -> dict[str, Any]:
    members = sorted(answer.members, key=lambda one: one.member_id)
    return {
        "state": answer.state,
        "protocol": answer.protocol_name,
        "members": [
            [one.member_id, one.group_instance_id, assigned(scope, one.assignment)] for one in members
        ],
        **_clients(scope, ((one.member_id, one.client_id, one.client_host) for one in members)),
    }


def _clients(scope: Scope, of: Iterable[tuple[str, str, str]]) -> dict[str, Any]:
    """Which client each member is: a run knows it, and has no room."""
    return {"clients": {name: f"{client} {host}" for name, client, host in of}} if scope.spare else {}


def _consumer_group(scope: Scope, answer: Any) -> dict[str, Any]:
    return {
        "state": answer.state,
        "epoch": answer.group_epoch,
        "protocol": answer.assignor,
        "members": [
            [name, instance, [scope.place(key) for key in sorted(partitions)], epoch]
            for name, instance, partitions, epoch, *_ in sorted(answer.members)
        ],
        **_clients(scope, ((each[0], each[4], each[5]) for each in answer.members)),
    }


def _committed(scope: Scope, answer: Any) -> dict[str, Any]:
    return {
        "offsets": [
            [*scope.place(one.partition), one.offset, one.leader_epoch]
            for one in sorted(answer.offsets, key=lambda one: one.partition)
        ]
    }


def _transaction(scope: Scope, answer: Any) -> dict[str, Any]:
    return {
        "state": answer.state,
        "producer_id": answer.producer_id,
        "producer_epoch": answer.producer_epoch,
        "started_ms": answer.started_ms,
        "timeout_ms": answer.timeout_ms,
        "partitions": [scope.place(key) for key in sorted(answer.partitions)],
    }


TOLD = {
    Question.GROUP: _group,
    Question.CONSUMER_GROUP: _consumer_group,
    Question.COMMITTED: _committed,
    Question.TRANSACTION: _transaction,
}
"""The details of an answer."""
