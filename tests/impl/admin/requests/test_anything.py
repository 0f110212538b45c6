"""Whatever an admin client asks, a broker answers once and goes on: requests of any values against a real
core."""

from typing import Any, get_args, get_type_hints

import pytest
from admin_lab import AdminLab
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.impl.core.topic_config import ACCEPTED, SETTINGS
from fencepost.impl.messages import admin_api, group_api
from fencepost.impl.messages.topic_partition import TopicPartition

KINDS = (
    *get_args(admin_api.AdminRequest),
    group_api.DescribeGroupRequest,
    group_api.ListGroupsRequest,
    group_api.DeleteGroupRequest,
    group_api.OffsetDeleteRequest,
)
NUMBERS = st.sampled_from((-(2**31), -2, -1, 0, 1, 2, 3, 4, 2**31 - 1))
NAMES = st.sampled_from(("t", "u", "", ".", "a/b", "\x00", "x" * 300, "1", "__consumer_offsets", "\u00e9"))
WORDS = st.one_of(
    NAMES,
    st.sampled_from((*SETTINGS, *ACCEPTED, "NaN", "sNaN", "-1", "9" * 5_000, "1e-999999999", "compact", "")),
)
PLAIN = {int: NUMBERS, bool: st.booleans()}
BOUND_MS = 30_000


def values(kind: Any, name: str = "") -> Any:
    """Values of a declared type that are near what brokers know, or far from it."""
    if kind is str:
        return NAMES if name in ("name", "names", "group_id") else WORDS
    if kind in PLAIN:
        return PLAIN[kind]
    if isinstance(kind, type) and issubclass(kind, str):
        return st.sampled_from(list(kind))
    if kind is TopicPartition:
        return st.builds(TopicPartition, NAMES, NUMBERS)
    arguments = get_args(kind)
    if type(None) in arguments:
        return st.one_of(st.none(), *(values(one, name) for one in arguments if one is not type(None)))
    if arguments[1:] == (...,):
        return st.lists(values(arguments[0], name), max_size=3).map(tuple)
    if arguments:
        return st.tuples(*(values(one, name) for one in arguments))
    hints = get_type_hints(kind)
    fields = {field: values(hints[field], field) for field in kind.__struct_fields__}
    return st.builds(lambda **given: kind(**given), **fields)


@pytest.mark.parametrize("kind", KINDS)
@settings(derandomize=True, deadline=None, database=None, max_examples=6)
@given(data=st.data())
def test_any_request_is_answered_once(kind, data):
    """Rule: no value halts a broker, and no request is left without an answer, or waits after its time is
    up."""
    lab = AdminLab(2).created("t", partitions=2, factor=2)
    requests = data.draw(st.lists(values(kind), min_size=1, max_size=4))
    asked = []
    for number, request in enumerate(requests):
        fields = {name: getattr(request, name) for name in kind.__struct_fields__}
        fields["correlation_id"] = lab.number()
        fields.pop("timeout_ms", None)
        if "timeout_ms" in kind.__struct_fields__:
            fields["timeout_ms"] = min(request.timeout_ms, BOUND_MS)
        asked.append(lab.send(kind(**fields), 1 + number % 2))
    lab.advance(BOUND_MS, settle=True)
    assert all(one.answer is not None for one in asked)
    for node in (1, 2):
        assert not lab.core(node).administration.desk.open
        assert lab.core(node).broker_context.broker_state in ("RunningAsBroker", "RunningAsController")
