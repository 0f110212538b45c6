"""Members of groups, for the cases that want some."""

import struct
from collections.abc import Sequence
from typing import Any

from fencepost.conformance.lab import JOIN, SYNC, Lab
from fencepost.wire.client import Link

SESSION_MS = 30_000
REBALANCE_MS = 10_000


def subscription(topics: Sequence[str] = ()) -> bytes:
    """The metadata of a consumer: version 0 of ConsumerProtocolSubscription."""
    names = b"".join(struct.pack(">h", len(name.encode())) + name.encode() for name in topics)
    return struct.pack(">hi", 0, len(topics)) + names + struct.pack(">i", -1)


def member_values(member: str, generation: int) -> dict[str, Any]:
    """The fields of a commit that name its member and generation."""
    return {"generation_id_or_member_epoch": generation, "member_id": member}


async def join(
    lab: Lab, link: Link, group: str, version: int | None = None, topics: Sequence[str] = (), **values: Any
) -> Any:
    """The plain answer to one JoinGroup. group: its id; version: of the request, None for the newest; topics:
    of the subscription; values: other fields of the request."""
    asked = {
        "group_id": group,
        "session_timeout": SESSION_MS,
        "rebalance_timeout": REBALANCE_MS,
        "member_id": "",
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": subscription(topics)}],
        **values,
    }
    return await lab.ask(link, JOIN, version, **asked)


async def join_whole(
    lab: Lab, link: Link, group: str, version: int | None = None, topics: Sequence[str] = (), **values: Any
) -> Any:
    """The answer to JoinGroup with the member id that a broker requires first (KIP-394).

    group, version, topics, values: as of `join`."""
    answer = await join(lab, link, group, version, topics, **values)
    if answer["error_code"] == "MEMBER_ID_REQUIRED":
        given = {**values, "member_id": answer["member_id"]}
        answer = await join(lab, link, group, version, topics, **given)
    return answer


async def sync(
    lab: Lab,
    link: Link,
    group: str,
    member: str,
    generation: int,
    assignments: Sequence[tuple[str, bytes]] = (),
    version: int | None = None,
    **values: Any,
) -> Any:
    """The plain answer to SyncGroup. group, member, generation: who asks; assignments: (member, bytes);
    version: of the request, None for the newest; values: other fields of the request."""
    given = [{"member_id": each, "assignment": data} for each, data in assignments]
    asked = {
        "group_id": group,
        "generation_id": generation,
        "member_id": member,
        "assignments": given,
        **values,
    }
    return await lab.ask(link, SYNC, version, **asked)


async def join_alone(lab: Lab, link: Link, group: str, topics: Sequence[str] = ()) -> tuple[str, int]:
    """The only member of a stable group: its id and generation."""
    answer = await join_whole(lab, link, group, topics=topics)
    assert answer["error_code"] == "NONE", answer
    member, generation = answer["member_id"], answer["generation_id"]
    synced = await sync(lab, link, group, member, generation, [(member, b"mine")])
    assert synced["error_code"] == "NONE", synced
    return member, generation
