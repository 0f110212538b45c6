"""Contents of znodes as other tools and operators may leave them: odd JSON, right JSON with one odd part, odd
bytes."""

import json
from typing import Any

from hypothesis import strategies as st

from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.impl.zookeeper import znodes

T0 = TopicPartition("t", 0)
RIGHT: dict[str, bytes] = {
    znodes.CONTROLLER: znodes.encode_controller(1, 7),
    znodes.CONTROLLER_EPOCH: b"3",
    znodes.CLUSTER_ID: znodes.encode_cluster_id("x" * 22),
    znodes.topic_path("t"): znodes.encode_topic({0: (1, 2, 3)}),
    znodes.state_path(T0): znodes.encode_state(
        znodes.LeaderAndIsr(leader=1, leader_epoch=4, controller_epoch=1, isr=(1, 2))
    ),
    znodes.config_path("t"): znodes.encode_configuration({"retention.ms": "1"}),
    f"{znodes.CONFIG_CHANGE_PREFIX}0000000000": znodes.encode_config_change("t"),
    f"{znodes.ISR_CHANGE_PREFIX}0000000000": znodes.encode_isr_changes([T0]),
    znodes.PREFERRED_ELECTION: znodes.encode_partitions([T0]),
    znodes.REASSIGN: znodes.encode_reassignments({T0: (2, 3)}, {T0: (1, 2, 3)}),
    znodes.PRODUCER_IDS: znodes.encode_producer_id_block(znodes.ProducerIdBlock(1, 0, 999)),
    znodes.broker_path(9): b"{}",
    f"{znodes.BROKER_IDS}/old": b"",
    znodes.topic_path("x" * 300): znodes.encode_topic({0: (1, 2)}),
    znodes.topic_path("a b"): znodes.encode_topic({0: (1, 2)}),
    znodes.delete_topic_path("nobody"): b"x",
}
"""A node of each kind, with what is right there; and some with names that are not."""

_numbers = st.sampled_from((0, 1, 2, 9, -1, -2, 2**31 - 1, 2**31, 2**63, 10**30, 0.5, 1.0, 1e308))
_texts = st.sampled_from(("", "t", "0", "-1", "٣", "topics/", "topics/../x", "topics/" + "x" * 300, "\ud800"))
scalars = st.none() | st.booleans() | _numbers | _texts
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_texts, inner, max_size=3),
    max_leaves=6,
)


def _places(value: Any, where: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths to every part of a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [where, *(place for key, one in inner for place in _places(one, (*where, key)))]


@st.composite
def contents(draw: Any, path: str) -> bytes:
    """Bytes for the node at this path."""
    kind = draw(st.sampled_from(("json", "part", "part", "gone", "bytes", "deep", "right", "float")))
    right = RIGHT[path]
    if kind == "json":
        return json.dumps(draw(anything)).encode()
    if kind == "bytes":
        return draw(st.binary(max_size=12) | st.sampled_from((b"", b" 1_0 ", b"-1", b"2147483647", b"null")))
    if kind == "deep":
        return b"[" * 100_000
    value = json.loads(right) if right[:1] == b"{" else {}
    place = draw(st.sampled_from(_places(value)))
    if kind == "right" or not place:
        return right
    holder = value
    for key in place[:-1]:
        holder = holder[key]
    if kind == "gone":
        del holder[place[-1]]
    else:
        holder[place[-1]] = draw(anything)
    return json.dumps(value).encode()
