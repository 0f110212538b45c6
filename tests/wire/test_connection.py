"""One connection as a state machine: golden bytes, the order of answers, and every way in which a request may
end."""

import random

import pytest
from kio.schema.api_versions.v0.request import ApiVersionsRequest as FirstApiVersionsRequest
from kio.schema.api_versions.v3.request import ApiVersionsRequest
from kio.schema.fetch.v11 import request as fetch_v11
from kio.schema.metadata.v1.request import MetadataRequest
from kio.schema.metadata.v1.response import MetadataResponse
from kio.schema.produce.v7 import request as produce_v7
from kio.schema.sasl_authenticate.v1.request import SaslAuthenticateRequest
from kio.schema.sasl_handshake.v0.request import SaslHandshakeRequest as FirstSaslHandshakeRequest
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest
from wire_core import answer, asked, carry_out, connection, request_bytes, sent

from fencepost.impl.log.values import batch_of
from fencepost.impl.messages.broker_api import ProduceRequest
from fencepost.traces.kafka_names.outcomes import ErrorCode
from fencepost.wire.codec import read_response
from fencepost.wire.connection import READ_AHEAD, Close, HangUp, Submit, Wait, Write
from fencepost.wire.frames import framed
from fencepost.wire.hook import PASS, Cut, Delay, Drop, Half, Hold, Last, Replace, Silence
from fencepost.wire.limits import Limits
from fencepost.wire.sasl import Authentication


def milliseconds(number):
    """A time as kio has it."""
    from datetime import timedelta

    return timedelta(milliseconds=number)


def metadata(number, names=("t",)):
    """A request for metadata, version 1."""
    from kio.schema.metadata.v1.request import MetadataRequestTopic

    return request_bytes(
        number, MetadataRequest(topics=tuple(MetadataRequestTopic(name=name) for name in names))
    )


def produce(number, *batches, acks=-1, transactional_id=None):
    """A produce of these (partition, batch) to topic t, version 7."""
    parts = tuple(produce_v7.PartitionProduceData(index=index, records=batch) for index, batch in batches)
    topic = produce_v7.TopicProduceData(name="t", partition_data=parts)
    body = produce_v7.ProduceRequest(
        transactional_id=transactional_id, acks=acks, timeout=milliseconds(1_500), topic_data=(topic,)
    )
    return request_bytes(number, body)


def closed(actions):
    """Why the connection ended, if it did."""
    return [action.reason for action in actions if isinstance(action, Close)]


def number_of(frame):
    """The correlation id of a response."""
    return int.from_bytes(frame[4:8], "big")


# ---- golden bytes

GOLDEN = [
    pytest.param(
        "00000010 0012 0000 0000000b 0006 636c69656e74",  # correlation id 11, client id "client"
        "0000006a 0000000b 0000 00000010"  # no error, 16 rows
        "0000 0000 000c  0001 0004 000c  0002 0000 0006  0003 0000 0009"
        "0008 0002 0008  0009 0001 0007  000a 0000 0003  000b 0000 0005"
        "000c 0000 0003  000d 0000 0003  000e 0000 0003  0011 0000 0001"
        "0012 0000 0003  0016 0000 0005  0017 0002 0004  0024 0000 0001",
        id="ApiVersions 0",
    ),
    pytest.param(
        "0000000a 0012 000f 0000000c ffff",  # a version of the far future, no client id
        "00000010 0000000c 0023 00000001 0012 0000 0003",  # UNSUPPORTED_VERSION in the form of version 0
        id="ApiVersions 15",
    ),
    pytest.param(
        "00000012 000a 0001 00000001 ffff 0005 67726f7570 00",  # FindCoordinator 1: key "group", type 0
        "00000021 00000001 00000000 0000 ffff 00000002 000b 74776f2e6578616d706c65 00002385",
        id="FindCoordinator 1",
    ),
    pytest.param(
        "0000001c 000c 0003 00000002 ffff 0001 67 00000005 0001 6d 0006 737461746963",  # Heartbeat 3
        "0000000a 00000002 00000000 001b",  # REBALANCE_IN_PROGRESS
        id="Heartbeat 3",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("sent_bytes", "expected"), GOLDEN)
def test_golden_bytes(sent_bytes, expected):
    """By hand from the protocol's specification, not by any library."""
    it = connection(apis={key: api for key, api in connection().apis.items() if key in ROWS})
    (frame,) = sent(carry_out(it, it.receive(bytes.fromhex(sent_bytes))))
    assert frame.hex() == bytes.fromhex(expected).hex()


ROWS = (0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 17, 18, 22, 23, 36)
"""Those of the first golden answer: the table may grow."""


def test_api_versions_has_the_first_response_header_at_every_version(it):
    """KIP-511: a client that asks in version 3 must be able to read the answer of a broker that knows 0 only,
    so that no tagged fields stand in front."""
    body = ApiVersionsRequest(client_software_name="x", client_software_version="1")
    (frame,) = sent(it.receive(request_bytes(5, body)))
    assert frame[4:8] == (5).to_bytes(4, "big") and frame[8:10] == b"\0\0"
    assert frame[10] == len(it.apis) + 1, "the compact count comes right after the error"


def test_a_client_software_without_a_name_is_an_invalid_request(it):
    """KIP-511 says what a name may be."""
    body = ApiVersionsRequest(client_software_name="", client_software_version="1")
    (frame,) = sent(it.receive(request_bytes(5, body)))
    response = read_response(18, 3, frame[4:], 100)[1]
    assert (response.error_code.name, response.api_keys) == ("invalid_request", ())


# ---- the order of answers


def test_one_request_at_a_time_and_answers_in_order(it):
    """A request waits until the one before it is answered, as Kafka mutes a connection: so answers leave in
    the order of requests."""
    first = it.receive(produce(1, (0, batch_of((1,)))) + metadata(2) + metadata(3))
    assert [type(message).__name__ for message in asked(first)] == ["ProduceRequest"]
    assert sent(first) == []
    done = carry_out(it, first)
    assert [number_of(frame) for frame in sent(done)] == [1, 2, 3]


def test_a_request_of_several_partitions_is_answered_when_all_of_them_are(it):
    """The core knows one partition at a time; its answers may come in any order, the client's come in its
    own."""
    batches = {index: batch_of((index,)) for index in (3, 1, 2)}
    requests = asked(it.receive(produce(9, *batches.items())))
    assert [(each.partition.partition, each.records) for each in requests] == list(batches.items())
    assert len({each.correlation_id for each in requests}) == 3
    assert it.answered(answer(requests[2])) == it.answered(answer(requests[0])) == []
    (frame,) = sent(it.answered(answer(requests[1])))
    (topic,) = read_response(0, 7, frame[4:], 100)[1].responses
    assert [each.index for each in topic.partition_responses] == [3, 1, 2]
    assert {each.base_offset for each in topic.partition_responses} == {7}


def test_an_answer_that_nobody_waits_for_is_ignored(it):
    """An earlier request's, a second one, or one after the end."""
    (request,) = asked(it.receive(metadata(1)))
    assert len(sent(it.answered(answer(request)))) == 1
    assert it.answered(answer(request)) == []


def test_while_one_request_is_carried_out_little_else_is_read(it):
    """What waits, waits in the client's socket. But a request under way in pieces is read on however large it
    is."""
    half = produce(1, (0, batch_of(tuple(range(1_000)))))
    it.receive(half[:-1])
    assert it.reads
    it.receive(half[-1:])
    assert it.reads, "busy, and nothing waits"
    it.receive(metadata(2)[:-1])
    assert it.reads
    it.receive(metadata(2)[-1:])
    assert not it.reads, "a whole request waits"
    other = connection()
    other.receive(metadata(1))
    other.receive(produce(2, (0, b"x" * READ_AHEAD))[:READ_AHEAD])
    assert not other.reads, "more than is read ahead"


def test_a_client_that_does_not_read_is_given_nothing_new(it):
    """So at most one answer waits for it."""
    it.blocked = True
    assert it.receive(metadata(1)) == []
    it.blocked = False
    assert len(asked(it.resume())) == 1


# ---- produce


def test_acks_0_has_no_answer_and_the_next_request_follows(it):
    """The core is asked for acks=1, so that a failure is seen here; the client hears nothing."""
    actions = it.receive(produce(1, (0, batch_of((1,))), acks=0) + metadata(2))
    assert asked(actions)[0].acks == 1
    assert [number_of(frame) for frame in sent(carry_out(it, actions))] == [2]


def test_acks_0_that_fails_closes_the_connection(it):
    """Kafka's only way to tell the client to look for the leader again."""
    (request,) = asked(it.receive(produce(1, (0, batch_of((1,))), acks=0)))
    refused = answer(request).__class__(
        correlation_id=request.correlation_id, error=ErrorCode.NOT_LEADER_OR_FOLLOWER
    )
    assert closed(it.answered(refused)) == ["a produce with acks=0 failed with NOT_LEADER_OR_FOLLOWER"]


BATCH = batch_of((1,))
TRANSACTIONAL = BATCH[:21] + b"\0\x10" + BATCH[23:]
OLD = BATCH[:16] + b"\1" + BATCH[17:]


@pytest.mark.parametrize(
    ("batch", "acks", "transactional_id", "error"),
    [
        (BATCH, 2, None, "invalid_required_acks"),
        (None, -1, None, "invalid_record"),
        (b"", -1, None, "invalid_record"),
        (OLD, -1, None, "invalid_record"),
        (TRANSACTIONAL, -1, None, "invalid_txn_state"),
        (BATCH, -1, "tx", "invalid_txn_state"),
    ],
)
def test_what_a_broker_refuses_before_it_looks_at_the_log(batch, acks, transactional_id, error, it):
    """The other partition of the request goes on; the refused one has its error."""
    done = carry_out(it, it.receive(produce(1, (0, batch), acks=acks, transactional_id=transactional_id)))
    assert asked(done) == []
    (frame,) = sent(done)
    (part,) = read_response(0, 7, frame[4:], 100)[1].responses[0].partition_responses
    assert (part.error_code.name, part.base_offset) == (error, -1)


def test_a_batch_goes_on_byte_for_byte():
    """Whatever is in it."""
    batch = bytearray(batch_of((1, 2)))
    batch[30:40] = random.Random(1).randbytes(10)
    (request,) = asked(connection().receive(produce(1, (0, bytes(batch)))))
    assert isinstance(request, ProduceRequest) and request.records == bytes(batch)


# ---- fetch


def test_a_fetch_session_is_never_there():
    """KIP-227: whoever names one is told so, and goes on without."""
    body = fetch_v11.FetchRequest(
        replica_id=-1, max_wait=milliseconds(0), min_bytes=1, max_bytes=1, isolation_level=0, session_id=5,
        session_epoch=2, topics=(), forgotten_topics_data=(), rack_id="",
    )  # fmt: skip
    (frame,) = sent(connection().receive(request_bytes(1, body)))
    response = read_response(1, 11, frame[4:], 100)[1]
    assert (response.error_code.name, response.session_id) == ("fetch_session_id_not_found", 0)


# ---- ends


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("ffffffff", "expected a length from 0 to"),
        ("7fffffff", "expected a length from 0 to"),
        ("00000002 0012", "expected a request header of at least 10 bytes, saw 2 bytes"),
        ("0000000a 0012 0000 00000001 7fff", "expected a client id inside its frame"),
        ("0000000a 0012 0000 00000001 fffe", "expected a client id inside its frame"),
        ("0000000b 0012 0000 00000001 0001 ff", "expected a client id in UTF-8"),
        ("0000000a 03e7 0000 00000001 ffff", "saw API 999 version 0"),
        ("0000000a 0004 0000 00000001 ffff", "saw API 4 version 0"),
        ("0000000a 0000 0000 00000001 ffff", "saw API 0 version 0"),
        ("0000000a 0001 000d 00000001 ffff", "saw API 1 version 13"),
        ("0000000e 0003 0001 00000001 ffff 7fffffff", "expected an array of at most 0 elements"),
        ("474554202f20485454502f312e310d0a", "expected a length from 0 to"),
    ],
)
def test_what_is_no_request_ends_the_connection(data, reason, it):
    """One reason, for one line in the log, and the client is to blame."""
    (action,) = it.receive(bytes.fromhex(data))
    assert isinstance(action, Close) and action.hostile and reason in action.reason
    assert it.closed and it.idle and len(it.buffer) == 0
    assert it.receive(metadata(1)) == []


def test_a_core_that_does_not_answer_ends_the_connection():
    """Beyond what the request itself may wait: 1.5 s here, and the bound of the listener."""
    it = connection(limits=Limits(request_timeout_ms=2_000))
    it.receive(produce(1, (0, batch_of((1,)))))
    assert [closed(it.tick(1_000)) for _ in range(3)] == [[], [], []]
    assert closed(it.tick(1_000)) == ["no answer of the core to produce version 7"]


def test_idle_connections_end():
    """Half a frame is no request; one that is answered begins the time anew."""
    it = connection(limits=Limits(idle_ms=3_000))
    assert it.tick(3_000) == []
    carry_out(it, it.receive(metadata(1)))
    assert it.tick(3_000) == []
    assert closed(it.tick(1_000)) == ["idle for 4 s"]


def test_a_mistake_of_ours_ends_one_connection(caplog):
    """Not the broker: the log has the traceback, the client a closed connection."""

    def broken(call, request):
        yield ()
        raise ZeroDivisionError

    apis = dict(connection().apis)
    apis[3] = type(apis[3])(3, "metadata", 0, 9, broken)
    assert closed(connection(apis=apis).receive(metadata(1))) == ["metadata version 1 failed here"]
    assert "a mistake in fencepost itself, at metadata version 1" in caplog.text


# ---- the hook


class Judge:
    """A hook with one verdict for requests and one for answers; notes what it saw."""

    def __init__(self, request=PASS, answer=PASS):
        self.request, self.answer, self.seen = request, answer, []

    def on_request(self, source, header, body):
        self.seen.append((source, header.correlation_id, type(body).__name__))
        return self.request

    def on_answer(self, source, header, body, response):
        self.seen.append((source, header.correlation_id, type(response).__name__))
        return self.answer


EMPTY = MetadataResponse(brokers=(), controller_id=1, topics=())


def test_a_hook_sees_each_request_and_its_answer():
    """In their order, with the connection and the correlation id."""
    judge = Judge()
    it = connection(hook=judge, source=77)
    carry_out(it, it.receive(metadata(1) + metadata(2)))
    assert judge.seen == [
        (77, number, name) for number in (1, 2) for name in ("MetadataRequest", "MetadataResponse")
    ]


@pytest.mark.parametrize(
    ("judge", "requests", "answers", "ends"),
    [
        (Judge(request=Cut()), 0, 0, ["cut before a request"]),
        (Judge(answer=Cut()), 1, 0, ["cut before an answer"]),
        (Judge(request=Drop()), 0, 0, []),
        (Judge(answer=Drop()), 2, 0, []),
        (Judge(request=Replace(EMPTY)), 0, 2, []),
        (Judge(answer=Replace(EMPTY)), 2, 2, []),
        (Judge(request=Replace(MetadataRequest(topics=()))), 2, 2, []),
        (Judge(answer=Last()), 1, 1, ["cut after an answer"]),
        (Judge(answer=Half(500)), 1, 1, ["cut within an answer"]),
        (Judge(request=Silence()), 0, 0, []),
        (Judge(answer=Silence()), 1, 0, []),
    ],
    ids=[
        *("cut", "cut after", "drop", "drop answer", "answer at once", "replace answer", "replace"),
        *("last answer", "half an answer", "silence", "silence after"),
    ],
)
def test_what_a_hook_decides_is_done(judge, requests, answers, ends):
    """Two requests: how many the core hears, how many answers leave, and whether the connection lives."""
    it = connection(hook=judge)
    done = carry_out(it, it.receive(metadata(1) + metadata(2)))
    assert (len(asked(done)), len(sent(done)), closed(done)) == (requests, answers, ends)
    replaced = judge.answer if isinstance(judge.answer, Replace) else judge.request
    if isinstance(replaced, Replace) and replaced.body is EMPTY:
        assert read_response(3, 1, sent(done)[0][4:], 100)[1] == EMPTY
    elif isinstance(replaced, Replace):
        assert all(request.topics == () for request in asked(done))


def test_a_delayed_request_holds_back_what_comes_behind_it():
    """And is carried out when the time is over."""
    it = connection(hook=Judge(request=Delay(250)))
    (action,) = it.receive(metadata(1) + metadata(2))
    assert action == Wait(250)
    first = carry_out(it, it.woken())
    assert [number_of(frame) for frame in sent(first)] == [1]
    assert first[-1] == Wait(250)
    assert [number_of(frame) for frame in sent(carry_out(it, it.woken()))] == [2]


@pytest.mark.parametrize("ends", [True, False])
def test_a_held_request_is_carried_out_after_its_client_has_gone(ends):
    """The hook ends the client's side at once or leaves that to the client; what came after the request is
    carried out, too, up to the first answer that nobody gets."""
    it = connection(hook=Judge(request=Hold(250, ends=ends)))
    assert it.receive(metadata(1)) == [Wait(250), *([HangUp()] if ends else [])]
    it.left = True  # as the host says once the socket is closed
    assert not it.closed and not it.idle
    assert len(asked(carry_out(it, it.woken()))) == 1 and it.idle


def test_a_delayed_answer_leaves_after_its_effect():
    """The core has carried the request out already."""
    it = connection(hook=Judge(answer=Delay(90)))
    done = carry_out(it, it.receive(metadata(1)))
    assert len(asked(done)) == 1 and sent(done) == [] and done[-1] == Wait(90)
    assert len(sent(it.woken())) == 1


@pytest.mark.parametrize(("per_mille", "kept"), [(0, 1), (1000, -1), (500, None)])
def test_half_an_answer_is_at_least_a_byte_and_never_all(per_mille, kept):
    """A client must see that something is missing."""
    (whole,) = sent(carry_out(it := connection(), it.receive(metadata(1))))
    (half,) = sent(carry_out(it := connection(hook=Judge(answer=Half(per_mille))), it.receive(metadata(1))))
    assert half == whole[: len(whole) // 2 if kept is None else kept]


def test_a_delay_may_change_what_goes_on():
    """A throttled answer is late, and says so in its body."""
    it = connection(hook=Judge(answer=Delay(90, EMPTY)))
    carry_out(it, it.receive(metadata(1)))
    (frame,) = sent(it.woken())
    assert read_response(3, 1, frame[4:], 100)[1] == EMPTY


def test_a_silent_connection_ends_with_its_client_or_when_it_was_idle_for_too_long():
    """It does not end because the core does not answer; it counts as idle, so that a client that goes takes
    it along."""
    it = connection(hook=Judge(answer=Silence()))
    carry_out(it, it.receive(metadata(1)))
    assert it.silent and it.idle and it.receive(metadata(2)) == []
    assert it.tick(it.limits.request_timeout_ms * 2) == []
    assert [type(each) for each in it.tick(it.limits.idle_ms)] == [Close]


# ---- SASL/PLAIN

USERS = {"alice": "secret"}


def handshake(number, mechanism="PLAIN"):
    """Version 1."""
    return request_bytes(number, SaslHandshakeRequest(mechanism=mechanism))


def authenticate(number, token=b"\0alice\0secret"):
    """Version 1."""
    return request_bytes(number, SaslAuthenticateRequest(auth_bytes=token))


def asked_for_a_name():
    """A connection whose client must say who it is."""
    return connection(authentication=Authentication(USERS))


def test_a_known_client_is_served():
    """ApiVersions may come first; then handshake, token, and everything."""
    it = asked_for_a_name()
    stream = request_bytes(1, FirstApiVersionsRequest()) + handshake(2) + authenticate(3) + metadata(4)
    done = carry_out(it, it.receive(stream))
    assert [number_of(frame) for frame in sent(done)] == [1, 2, 3, 4] and not closed(done)
    assert it.authentication.principal == "alice"


@pytest.mark.parametrize(
    "token",
    [b"\0alice\0wrong", b"\0bob\0secret", b"bob\0alice\0secret", b"", b"\xff", b"\0alice\0secret\0", b"\0\0"],
)
def test_a_wrong_token_is_told_so_and_closed(token):
    """The error says nothing about which part was wrong."""
    it = asked_for_a_name()
    done = it.receive(handshake(1) + authenticate(2, token) + metadata(3))
    assert [number_of(frame) for frame in sent(done)] == [1, 2]
    assert read_response(36, 1, sent(done)[1][4:], 10)[1].error_code.name == "sasl_authentication_failed"
    assert closed(done) == ["authentication failed"]


def test_nobody_is_served_before_he_is_known():
    """Nor is a token taken without a handshake."""
    assert (
        "expected a SASL handshake, saw metadata version 1"
        in closed(asked_for_a_name().receive(metadata(1)))[0]
    )
    assert closed(asked_for_a_name().receive(authenticate(1))) == [
        "SaslAuthenticate without a handshake before it"
    ]


def test_an_unknown_mechanism_is_answered_with_the_known_ones():
    """Then Kafka closes."""
    done = asked_for_a_name().receive(handshake(1, "GSSAPI"))
    response = read_response(17, 1, sent(done)[0][4:], 10)[1]
    assert (response.error_code.name, response.mechanisms) == ("unsupported_sasl_mechanism", ("PLAIN",))
    assert closed(done) == ["authentication failed"]


def test_old_clients_send_tokens_without_headers():
    """After SaslHandshake 0 (KIP-43); the answer is an empty frame."""
    it = asked_for_a_name()
    done = it.receive(
        request_bytes(1, FirstSaslHandshakeRequest(mechanism="PLAIN")) + framed(b"\0alice\0secret")
    )
    assert sent(done)[1] == b"\0\0\0\0" and it.authentication.done
    other = asked_for_a_name()
    done = other.receive(
        request_bytes(1, FirstSaslHandshakeRequest(mechanism="PLAIN")) + framed(b"\0alice\0no")
    )
    assert closed(done) == ["authentication failed"]


def test_passwords_are_in_no_text():
    """A log line may show the object."""
    assert "secret" not in repr(Authentication(USERS))


def test_actions_say_what_they_are():
    """What a host switches on."""
    actions = connection().receive(metadata(1))
    assert isinstance(actions[0], Submit) and not any(isinstance(action, Write) for action in actions)
