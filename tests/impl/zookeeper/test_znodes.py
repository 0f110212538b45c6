"""What cannot be what its path says is one clear error, whatever it is. What lies in ZooKeeper comes from
outside: another tool, an operator."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from impl_bad_znodes import RIGHT, T0, contents

from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.impl.zookeeper import znodes

CHANGE, ISR = f"{znodes.CONFIG_CHANGE_PREFIX}0000000000", f"{znodes.ISR_CHANGE_PREFIX}0000000000"
DECODERS: dict[str, Callable[[bytes], Any]] = {
    znodes.CONTROLLER: znodes.decode_controller,
    znodes.CONTROLLER_EPOCH: znodes.decode_controller_epoch,
    znodes.CLUSTER_ID: znodes.decode_cluster_id,
    znodes.topic_path("t"): lambda data: znodes.decode_topic(data, znodes.topic_path("t")),
    znodes.state_path(T0): lambda data: znodes.decode_state(data, 0, path=znodes.state_path(T0)),
    znodes.config_path("t"): lambda data: znodes.decode_configuration(data, znodes.config_path("t")),
    CHANGE: lambda data: znodes.decode_config_change(data, CHANGE),
    ISR: lambda data: znodes.decode_partitions(data, ISR),
    znodes.PREFERRED_ELECTION: znodes.decode_partitions,
    znodes.REASSIGN: lambda data: (znodes.decode_reassignments(data), znodes.decode_origins(data)),
    znodes.PRODUCER_IDS: znodes.decode_producer_id_block,
}


@pytest.mark.parametrize("path", DECODERS)
def test_what_is_right_is_read(path: str) -> None:
    """Rule: every node that we write is read again."""
    assert DECODERS[path](RIGHT[path]) is not None


@pytest.mark.parametrize("path", DECODERS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_whatever_lies_there_is_read_or_refused_in_one_sentence(path: str, data: st.DataObject) -> None:
    """Rule: any bytes are a value of the right type, or a BadZnodeError with path, expected and seen."""
    content = data.draw(contents(path))
    try:
        value = DECODERS[path](content)
    except znodes.BadZnodeError as error:
        assert error.where == path and error.expected and error.seen and len(str(error)) < 1_000
        return
    assert _is_right(value), (content, value)


def _is_right(value: Any) -> bool:
    """Ids, numbers and epochs are 32-bit integers and no truth values; names are texts."""
    match value:
        case znodes.LeaderAndIsr():
            return value.leader >= -1 and _is_right((value.leader_epoch, value.controller_epoch, *value.isr))
        case znodes.ProducerIdBlock():
            return 0 <= value.start <= value.end < 2**63 - 1_000
        case TopicPartition():
            return type(value.topic) is str and _is_right(value.partition)
        case dict():
            return all(_is_right(key) and _is_right(one) for key, one in value.items())
        case list() | tuple():
            return all(map(_is_right, value))
        case str() | None:
            return True
        case _:
            return type(value) is int and 0 <= value < 2**31


@pytest.mark.parametrize(
    ("path", "content", "seen"),
    [
        (znodes.CONTROLLER, b'{"brokerid":true}', "`int`"),
        (znodes.CONTROLLER, b'{"brokerid":-7}', ">= 0"),
        (znodes.CONTROLLER_EPOCH, b"1_0", "1_0"),
        (znodes.CONTROLLER_EPOCH, "٣".encode(), "xd9"),
        (znodes.CONTROLLER_EPOCH, b"2147483647", "2147483647"),
        (znodes.CLUSTER_ID, b'{"id":7}', "`str`"),
        (znodes.topic_path("t"), b'{"partitions":{}}', "length >= 1"),
        (znodes.topic_path("t"), b'{"partitions":{"0":[]}}', "length >= 1"),
        (znodes.topic_path("t"), b'{"partitions":{"0":[1,1]}}', "names a broker twice"),
        (znodes.state_path(T0), b'{"leader":1}', "leader_epoch"),
        (znodes.REASSIGN, b'{"partitions":[{"topic":["t"],"partition":0,"replicas":[1]}]}', "`str`"),
        (znodes.REASSIGN, b'{"partitions":[{"topic":"t","partition":0.5,"replicas":[1]}]}', "`int`"),
        (ISR, b'{"x":' + b"[" * 100_000, "levels of nesting"),
        (CHANGE, b'{"entity_path":"topics/../x"}', "no topic may be called so"),
        (znodes.PRODUCER_IDS, b'{"broker":1,"block_start":"5","block_end":"4"}', "block_end"),
        (znodes.PRODUCER_IDS, b'{"broker":1,"block_start":"0","block_end":"9223372036854775807"}', "9223"),
    ],
)
def test_the_sentence_says_what_was_seen(path: str, content: bytes, seen: str) -> None:
    """Rule: an error names path, expected and seen, and what to do."""
    with pytest.raises(znodes.BadZnodeError) as caught:
        DECODERS[path](content)
    assert str(caught.value).startswith(f"{path}: expected ") and seen in caught.value.seen
    assert "mend or remove" in str(caught.value)


def test_names_below_the_brokers_are_numbers() -> None:
    """Rule: an id is ASCII digits of 32 bits; Python would take more for a number."""
    assert [znodes.broker_of(name) for name in ("1", "0", "2147483647")] == [1, 0, 2**31 - 1]
    odd = ("", "-1", "+1", "01", " 1", "1_0", "٣", "2147483648", "9" * 30, "old")
    assert [znodes.broker_of(name) for name in odd] == [None] * len(odd)
    assert znodes.partition_of_state_path(f"{znodes.TOPICS}/t/partitions/x/state") is None
