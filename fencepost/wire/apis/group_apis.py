"""Consumer groups' members: JoinGroup, SyncGroup, Heartbeat, LeaveGroup."""

from typing import Any

from fencepost.impl.messages.group_api import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode
from fencepost.wire.handling import Call, Handling, milliseconds

FIRST_WITH_REBALANCE_TIMEOUT, FIRST_WITH_REQUIRED_ID, FIRST_WITH_INSTANCES = 1, 4, 5
FIRST_WITH_INSTANCE_IN_GROUP = 3
"""First version of Heartbeat, LeaveGroup and SyncGroup with an instance id."""
GROUP_PATIENCE_MS = 1_800_000
"""A rebalance lasts as long as its slowest member may take; Kafka's largest session timeout bounds what we
wait for."""


def join_group(call: Call, request: Any) -> Handling:
    """Join a group. A client before version 4 does not know that it must join again with the member id from
    the first answer (KIP-394), so the second join is done here. call: the request's context; request: kio's
    class."""
    call.patience_ms = GROUP_PATIENCE_MS
    session_ms = milliseconds(request.session_timeout)
    later = call.version >= FIRST_WITH_REBALANCE_TIMEOUT
    member_id = request.member_id
    for _ in range(2):
        (answer,) = yield [
            call.of(
                JoinGroupRequest,
                request,
                client_id=call.client_id,
                client_host=call.client_host,
                session_timeout_ms=session_ms,
                rebalance_timeout_ms=max(0, milliseconds(request.rebalance_timeout)) if later else session_ms,
                member_id=member_id,
                group_instance_id=request.group_instance_id if call.version >= FIRST_WITH_INSTANCES else None,
                protocols=tuple((each.name, each.metadata) for each in request.protocols),
                may_skip_assignment=False,  # which our versions do not have
            )
        ]
        if answer.error is not ErrorCode.MEMBER_ID_REQUIRED or call.version >= FIRST_WITH_REQUIRED_ID:
            break
        member_id = answer.member_id
    instances = dict(answer.instances)
    return call.answer(
        error_code=answer.error,
        generation_id=answer.generation_id,
        protocol_name=answer.protocol_name,
        leader=answer.leader,
        member_id=answer.member_id,
        members=[
            {"member_id": each, "group_instance_id": instances.get(each), "metadata": subscription}
            for each, subscription in answer.members
        ],
    )


def _instance(call: Call, request: Any) -> str | None:
    instance: str | None = request.group_instance_id if call.version >= FIRST_WITH_INSTANCE_IN_GROUP else None
    return instance


def sync_group(call: Call, request: Any) -> Handling:
    """The leader sends the assignments; each member gets its own. call: the request's context; request: kio's
    class."""
    call.patience_ms = GROUP_PATIENCE_MS
    (answer,) = yield [
        call.of(
            SyncGroupRequest,
            request,
            group_instance_id=_instance(call, request),
            assignments=tuple((each.member_id, each.assignment) for each in request.assignments),
        )
    ]
    return call.answer(error_code=answer.error, assignment=answer.assignment)


def heartbeat(call: Call, request: Any) -> Handling:
    """Keep a member alive. call: the request's context; request: kio's class."""
    if not request.group_id:  # the core has a group for every name
        yield ()
        return call.answer(error_code=ErrorCode.INVALID_GROUP_ID)
    instance = _instance(call, request)
    (answer,) = yield [call.of(HeartbeatRequest, request, group_instance_id=instance)]
    return call.answer(error_code=answer.error)


def leave_group(call: Call, request: Any) -> Handling:
    """Remove one member, or from version 3 on several (KIP-345). An error of the whole group is the answer's
    own error. call: the request's context; request: kio's class."""
    several = call.version >= FIRST_WITH_INSTANCE_IN_GROUP
    leaving = (
        [(each.member_id, each.group_instance_id) for each in request.members]
        if several
        else [(request.member_id, None)]
    )
    answers = yield [
        call.of(LeaveGroupRequest, request, member_id=member_id, group_instance_id=instance)
        for member_id, instance in leaving
    ]
    errors = [answer.error for answer in answers]
    of_group = next((error for error in errors if error in OF_THE_GROUP), NO_ERROR)
    if not several:
        of_group = errors[0]
    members = [
        {"member_id": member_id, "group_instance_id": instance, "error_code": error}
        for (member_id, instance), error in zip(leaving, errors, strict=True)
    ]
    return call.answer(error_code=of_group, members=members if several and of_group is NO_ERROR else ())


OF_THE_GROUP = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.INVALID_GROUP_ID,
    }
)
"""Errors that say nothing about a member."""
