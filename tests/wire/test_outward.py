"""Our client cores in Kafka's words: what they ask arrives at a broker core as it was, and what it answers
comes back."""

import pytest
from attrs import evolve
from msgspec import structs
from wire_core import VIEW, answer, asked, connection, sent

from fencepost.impl.log.values import batch_of
from fencepost.impl.messages import broker_api as core
from fencepost.impl.messages import group_api as groups
from fencepost.impl.messages import transaction_api as transactions
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.traces.kafka_names.outcomes import ErrorCode
from fencepost.wire.dialogue import Dialogue, Versions
from fencepost.wire.frames import ProtocolError, framed
from fencepost.wire.outward import TRANSLATIONS, is_answered
from fencepost.wire.versions import APIS

T0, T2 = TopicPartition("t", 0), TopicPartition("t", 2)
PRODUCER = {"transactional_id": "x", "producer_id": 5, "producer_epoch": 2}
MEMBER = {"group_id": "g", "member_id": "m", "group_instance_id": None}
ASKED = {
    3: core.MetadataRequest(correlation_id=71, topics=("t", "no")),
    0: core.ProduceRequest(
        correlation_id=71, partition=T2, acks=-1, records=batch_of((1,)), timeout=1_500_000_000
    ),
    1: core.FetchRequest(
        correlation_id=71,
        replica_id=-1,
        max_wait=20_000_000,
        max_bytes=1_000,
        total_max_bytes=2_000,
        min_bytes=3,
        read_committed=True,
        partitions=(
            core.FetchPartition(partition=T2, offset=5, leader_epoch=3, max_bytes=10),
            core.FetchPartition(partition=T0, offset=6, leader_epoch=3, max_bytes=20),
        ),
    ),
    2: core.ListOffsetsRequest(
        correlation_id=71, partition=T0, leader_epoch=3, timestamp=1_000, read_committed=True
    ),
    22: core.InitProducerIdRequest(correlation_id=71),
    10: groups.FindCoordinatorRequest(correlation_id=71, group_id="g"),
    11: groups.JoinGroupRequest(
        correlation_id=71,
        client_id="fencepost",
        session_timeout_ms=9_000,
        rebalance_timeout_ms=9_000,
        protocol_type="consumer",
        protocols=(("range", b"one"), ("sticky", b"two")),
        **MEMBER,
    ),
    14: groups.SyncGroupRequest(correlation_id=71, generation_id=4, assignments=(("m", b"mine"),), **MEMBER),
    12: groups.HeartbeatRequest(correlation_id=71, generation_id=4, **MEMBER),
    13: groups.LeaveGroupRequest(correlation_id=71, **MEMBER),
    8: groups.OffsetCommitRequest(
        correlation_id=71,
        generation_id=4,
        offsets=(groups.CommittedOffset(partition=T0, offset=9, leader_epoch=3, metadata="why"),),
        **MEMBER,
    ),
    9: groups.OffsetFetchRequest(correlation_id=71, group_id="g", partitions=(T2, T0)),
}
"""A request for each API. Two brokers of the protocol's first version would not tell it apart: what a version
lacks has its default."""

OF_TRANSACTIONS = {
    0: structs.replace(ASKED[0], transactional_id="x"),
    10: groups.FindCoordinatorRequest(correlation_id=71, group_id="x", transactional=True),
    22: transactions.InitProducerIdRequest(correlation_id=71, transaction_timeout_ms=9_000, **PRODUCER),
    24: transactions.AddPartitionsToTxnRequest(correlation_id=71, partitions=(T0, T2), **PRODUCER),
    25: transactions.AddOffsetsToTxnRequest(correlation_id=71, group_id="g", **PRODUCER),
    26: transactions.EndTxnRequest(correlation_id=71, commit=True, **PRODUCER),
    28: transactions.TxnOffsetCommitRequest(
        correlation_id=71,
        generation_id=4,
        offsets=(groups.CommittedOffset(partition=T0, offset=9, leader_epoch=3, metadata="why"),),
        **PRODUCER,
        **MEMBER,
    ),
}
"""What a transactional producer asks in addition, of a broker that has transactions."""
FIRST_OF_SECOND = {0: 12, 26: 5, 28: 5}
"""Versions of requests that say that their producer uses the second version of transactions."""
FIRST_WITH_ALL = {10: 1, 22: 3, 28: 3}
"""Versions before these cannot say all of it; every broker since 2.5 speaks later ones."""
HAS_TRANSACTIONS = evolve(VIEW, transactions=True)

NOT_TOLD = {
    "leader_epoch",
    "coordinator_epoch",
    "appended",
    "log_start_offset",
    "timestamp",
    "instances",
    "controller_id",
}
"""Fields of answers that some version of the protocol, or all of them, do not carry."""


def dialogue(key, version):
    """A client of a broker that speaks this version of the API only."""
    return Dialogue(versions=Versions({key: (version, version)}))


def rounds():
    """(Requests by key, API key, version) of all that our cores ask."""
    return [
        (table, key, version)
        for table in (ASKED, OF_TRANSACTIONS)
        for key in table
        for version in range(
            max(
                APIS[key].lowest,
                APIS[key].lowest_decoded,
                FIRST_WITH_ALL.get(key, 0) if table is OF_TRANSACTIONS else 0,
            ),
            APIS[key].highest + 1,
        )
    ]


@pytest.mark.parametrize(("table", "key", "version"), rounds())
def test_a_request_goes_there_and_its_answer_comes_back(table, key, version):
    """Both translations against each other, at every version: outward.py asks, apis/ hears and answers,
    outward.py hears."""
    request = table[key]
    if table is OF_TRANSACTIONS and version >= FIRST_OF_SECOND.get(key, 99):
        second = {"version": 2} if key == 26 else {"adds_partition": True}
        request = structs.replace(request, **second)
    if key == 1 and version >= 11:  # from then on a client does not mind who answers (KIP-392)
        request = structs.replace(request, from_follower=True)
    if key == 11 and version < 4:
        request = structs.replace(request, member_id="m")
    translation, to = TRANSLATIONS[type(request)], dialogue(key, version)
    _, data = to.ask(translation.ask(to, request))
    it = connection(broker=HAS_TRANSACTIONS)
    heard, actions = [], it.receive(data)
    while requests := asked(actions):
        heard += requests
        (request_of_core,) = requests
        answered = answer(request_of_core)
        actions = it.answered(answered)
    same(request, heard[-1], version)
    ((_, body),) = to.receive(sent(actions)[0])
    expected = answer(request)
    if key == 3:  # broker 3 does not live: a client hears of no leader
        living = [
            structs.replace(each, leader=each.leader if each.leader < 3 else -1)
            for each in expected.partitions
        ]
        expected = structs.replace(expected, partitions=tuple(living))
    told = translation.tell(request, body)
    assert told.correlation_id == 71
    same(expected, told, version)


def same(expected, seen, version):
    """Equal but for what this version does not carry, which has its default then."""
    assert type(seen) is type(expected)
    for name in expected.__struct_fields__:
        if name in ("correlation_id", "client_id"):
            continue
        one, other = getattr(expected, name), getattr(seen, name)
        if one == other or other == default_of(expected, name):
            assert one == other or name in NOT_TOLD | {
                "read_committed",
                "max_bytes",
                "allow_auto_topic_creation",
            }, name
        elif isinstance(one, tuple) and one and hasattr(one[0], "__struct_fields__"):
            assert len(one) == len(other)
            for before, after in zip(one, other, strict=True):
                same(before, after, version)
        else:
            assert name in NOT_TOLD | {"max_bytes", "allow_auto_topic_creation", "may_skip_assignment"}, (
                name,
                one,
                other,
            )


def default_of(value, name):
    """What a field has if nobody says."""
    defaults = type(value).__struct_defaults__
    names = type(value).__struct_fields__
    place = names.index(name) - (len(names) - len(defaults))
    return defaults[place] if place >= 0 else object()


def test_a_produce_without_acks_has_no_answer():
    """Nothing is waited for."""
    request = structs.replace(ASKED[0], acks=0)
    assert not is_answered(request) and is_answered(ASKED[0])
    to = dialogue(0, 7)
    to.ask(TRANSLATIONS[core.ProduceRequest].ask(to, request), answered=False)
    assert to.waiting == {}


def test_the_highest_common_version_is_spoken():
    """Of the broker's range and ours; none is one sentence."""
    assert Versions({1: (0, 17)}).common(1) == 12
    assert Versions({1: (0, 11)}).common(1) == 11
    for seen in ({1: (13, 17)}, {1: (0, 3)}, {}):
        with pytest.raises(ProtocolError, match="expected a broker that speaks fetch version 4 to 12"):
            Versions(seen).common(1)
    with pytest.raises(ProtocolError, match="produce"):
        Versions({0: (0, 2)}).common(0)


def test_an_error_that_the_core_has_no_word_for_is_unknown():
    """It decides nothing: whatever was asked may have happened."""
    from kio.schema.errors import ErrorCode as WireError

    from fencepost.traces.kafka_names.outcomes import NOTHING_HAPPENED
    from fencepost.wire.outward import error_of

    assert (
        error_of(WireError.sasl_authentication_failed)
        is ErrorCode.UNKNOWN_SERVER_ERROR
        not in NOTHING_HAPPENED
    )
    assert error_of(WireError.not_leader_or_follower) is ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize("frame", [b"", b"\0\0\0", b"\0\0\0\x09", b"\0\0\0\1\xff"])
def test_a_broker_that_says_something_else_is_refused(frame):
    """An answer to nothing, one that is too short, one that is none."""
    to = Dialogue()
    to.ask_versions()
    with pytest.raises(ProtocolError):
        to.receive(framed(frame))


def test_a_commit_of_unknown_fate_is_one_that_may_be_written():
    """Kafka's coordinator gives these errors after its append, too."""
    request = ASKED[8]
    tell = TRANSLATIONS[groups.OffsetCommitRequest].tell
    for error, appended in ((ErrorCode.NOT_COORDINATOR, True), (ErrorCode.ILLEGAL_GENERATION, False)):
        it, to = connection(), dialogue(8, 7)
        _, data = to.ask(TRANSLATIONS[groups.OffsetCommitRequest].ask(to, request))
        actions = it.answered(answer(asked(it.receive(data))[0]))
        refused = groups.OffsetCommitResponse(correlation_id=asked(actions)[0].correlation_id, error=error)
        ((_, body),) = to.receive(sent(it.answered(refused))[0])
        assert (tell(request, body).error, tell(request, body).appended) == (error, appended)
