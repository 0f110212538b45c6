"""Consumer groups: DescribeGroups, ListGroups, DeleteGroups, OffsetDelete."""

from typing import Any

from fencepost.impl.messages.group_api import (
    DeleteGroupRequest,
    DescribeGroupRequest,
    DescribeGroupResponse,
    ListGroupsRequest,
    OffsetDeleteRequest,
)
from fencepost.wire.apis.metadata_api import NOT_ASKED
from fencepost.wire.handling import Call, Handling
from fencepost.wire.plain import by_topic, keyed

FIRST_WITH_STATES = 4
"""First version of ListGroups with states."""


def describe_groups(call: Call, request: Any) -> Handling:
    """Each group separately: this broker may coordinate only some of them. call: the request's context;
    request: kio's class."""
    names = tuple(dict.fromkeys(request.groups))
    answers = yield [DescribeGroupRequest(correlation_id=call.next_id(), group_id=name) for name in names]
    return call.answer(groups=[_described(*each) for each in zip(names, answers, strict=True)])


def _described(name: str, answer: DescribeGroupResponse) -> dict[str, Any]:
    return {
        "error_code": answer.error,
        "group_id": name,
        "group_state": answer.state,
        "protocol_type": answer.protocol_type,
        "protocol_data": answer.protocol_name,
        "members": [
            {
                "member_id": member.member_id,
                "group_instance_id": member.group_instance_id,
                "client_id": member.client_id,
                "client_host": member.client_host,
                "member_metadata": member.subscription,
                "member_assignment": member.assignment,
            }
            for member in answer.members
        ],
        "authorized_operations": NOT_ASKED,
    }


def list_groups(call: Call, request: Any) -> Handling:
    """The groups of this coordinator in the requested states. call: the request's context; request: kio's
    class."""
    (answer,) = yield [ListGroupsRequest(correlation_id=call.next_id())]
    states = request.states_filter if call.version >= FIRST_WITH_STATES else ()
    return call.answer(
        error_code=answer.error,
        groups=[
            {"group_id": name, "protocol_type": kind, "group_state": state}
            for name, kind, state in answer.groups
            if not states or state in states
        ],
    )


def delete_groups(call: Call, request: Any) -> Handling:
    """Each group separately. call: the request's context; request: kio's class."""
    names = tuple(dict.fromkeys(request.groups_names))
    answers = yield [DeleteGroupRequest(correlation_id=call.next_id(), group_id=name) for name in names]
    results = ((name, answer.error) for name, answer in zip(names, answers, strict=True))
    return call.answer(results=[{"group_id": name, "error_code": error} for name, error in results])


def offset_delete(call: Call, request: Any) -> Handling:
    """Delete a group's committed offsets of some partitions. call: the request's context; request: kio's
    class."""
    keys = tuple(key for key, _ in keyed(request.topics))
    (answer,) = yield [
        OffsetDeleteRequest(correlation_id=call.next_id(), group_id=request.group_id, partitions=keys)
    ]
    rows = (
        (key.topic, {"partition_index": key.partition, "error_code": error}) for key, error in answer.results
    )
    return call.answer(error_code=answer.error, topics=by_topic(rows))
