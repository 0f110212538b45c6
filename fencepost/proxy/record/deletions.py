"""What clients deleted: topics and groups as events, committed offsets as commits of nothing.

Owns the mapping. Must not know connections. The judges begin anew with what was deleted (model/lives). A
request without an answer is not here: whether it had an effect is not known.
"""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from fencepost.proxy.exchange import Exchange
from fencepost.proxy.record.lines import Lines
from fencepost.traces.events import DELETION_ANSWERED
from fencepost.traces.kafka_names.internal_topics import OFFSETS_TOPIC
from fencepost.wire.passing import error_name

DELETE_TOPICS, DELETE_GROUPS, OFFSET_DELETE = 20, 42, 47
DELETED = "deleted"
"""The argument of a commit that stands for OffsetDelete."""


def deleted(
    lines: Lines,
    key: int,
    exchange: Exchange,
    body: Any,
    time: int,
    process: int,
    node: int,
    name_of: Callable[[Any], str],
) -> str:
    """Write what an answer says was deleted.

    Args:
        lines: the record.
        key: of the API.
        exchange: the request.
        body: the answer, decoded.
        time: of the answer, nanoseconds.
        process: of the client.
        node: the broker.
        name_of: the name of a topic of the answer.

    Returns:
        The first error in it; "" for none.
    """
    errors: list[str] = []
    since = msgspec.json.encode({"since": exchange.time}).decode()
    if key == DELETE_TOPICS:
        for one in body.responses:
            errors.append(error_name(one.error_code))
            if errors[-1] == "NONE":
                name = one.name or name_of(one)
                cause = DELETION_ANSWERED
                lines.event(time, "topic_deletion", text=since, node=node, topic=name, cause=cause)
    elif key == DELETE_GROUPS:
        for one in body.results:
            errors.append(error_name(one.error_code))
            if errors[-1] == "NONE":
                dying = {"group": one.group_id}
                lines.event(exchange.time, "group_phase", dying, node=node, cause="Dead", topic=OFFSETS_TOPIC)
                lines.event(time, "group_removed", node=node, text=one.group_id, topic=OFFSETS_TOPIC)
    else:
        errors.append(error_name(body.error_code))
        for topic, partition, error in _offsets(body):
            errors.append(error)
            if error == "NONE" and errors[0] == "NONE":
                lines.operation(
                    {
                        "op_id": lines.number(),
                        "process": process,
                        "function": "commit",
                        "invoke_time": exchange.time,
                        "outcome": "ok",
                        "completion_time": time,
                        "group": exchange.body.group_id,
                        "argument": DELETED,
                        "node": node,
                        "topic": topic,
                        "partition": partition,
                    }
                )
    return next((error for error in errors if error != "NONE"), "")


def _offsets(body: Any) -> Iterator[tuple[str, int, str]]:
    for topic in body.topics:
        for one in topic.partitions:
            yield topic.name, one.partition_index, error_name(one.error_code)
