"""What a correct broker may answer."""

import json
import re

import pytest

from fencepost.conformance.record import recorded
from fencepost.proxy.faults import ALLOWED, Features, RequestFaults, draw, parse, rows, why_illegal
from fencepost.proxy.faults.answers import EVERYWHERE, Row
from fencepost.traces.errors import PlanError
from fencepost.traces.kafka_names.protocol import DOCUMENTED
from fencepost.wire.codec import RequestHeader
from fencepost.wire.hook import PASS
from fencepost.wire.names import api_keys, asks_for_retry, error_names
from fencepost.wire.plain import request


def test_the_table_speaks_of_apis_and_errors_that_exist():
    """Rule: every name is Kafka's; no error is both allowed at any time and only if."""
    assert set(ALLOWED) <= set(api_keys())
    for api, row in ALLOWED.items():
        assert not set(row.any_time) & set(row.only_if), api
        assert {*row.any_time, *row.after, *row.only_if} <= set(error_names())
        assert row.effect or not row.after, f"{api} changes nothing, so nothing comes after its effect"
        assert set(row.when) <= set(row.any_time), f"{api}: a condition of an error that it does not have"
    assert ("Produce", "NOT_ENOUGH_REPLICAS_AFTER_APPEND", "after the effect", True) in set(rows())
    assert asks_for_retry("NOT_COORDINATOR") and not asks_for_retry("INVALID_TXN_STATE")


BETWEEN_BROKERS = frozenset(
    {
        *("AlterPartition", "BeginQuorumEpoch", "EndQuorumEpoch", "Vote", "WriteTxnMarkers"),
        *("DeleteShareGroupState", "InitializeShareGroupState", "ReadShareGroupState"),
        *("ReadShareGroupStateSummary", "WriteShareGroupState"),
    }
)
"""What no client sends."""


def test_what_kafka_documents_is_known():
    """Rule: every error that Kafka documents for a request of clients is in a column of its row, and every
    such request that can be read has a row."""
    clients = set(DOCUMENTED) & set(api_keys()) - BETWEEN_BROKERS
    assert clients <= set(ALLOWED)
    for api in clients:
        row = ALLOWED[api]
        assert DOCUMENTED[api] <= {*row.any_time, *row.after, *row.only_if, *EVERYWHERE}, api


def test_what_apache_kafka_was_recorded_to_answer_is_known():
    """Rule: the errors of every recorded case of one API are in its row; the cases that ask another API for
    what they left behind are named."""
    apis = {re.sub("(?<!^)(?=[A-Z])", "_", api).lower(): api for api in api_keys()}
    seen = 0
    for version, release in recorded().items():
        for case, facts in release.cases.items():
            api = apis.get(case.partition(".")[0])
            if api is None or case.endswith("leaves_nothing"):
                continue
            row = ALLOWED.get(api, Row())
            found = set(re.findall("[A-Z_]{4,}", json.dumps(facts))) & set(error_names())
            assert found <= {*row.any_time, *row.after, *row.only_if, *EVERYWHERE}, (version, case)
            seen += len(found)
    assert seen > 100


TOPIC = {"topics": [{"topic": "t", "name": "t", "partitions": [{"partition": 0, "partition_index": 0}]}]}
SENT = {"topic_data": [{"name": "t", "partition_data": [{"index": 0, "records": b""}]}]}
IN_TRANSACTION = {"transactional_id": "x"}


@pytest.mark.parametrize(
    ("text", "version", "values", "struck"),
    [
        ("answer NOT_LEADER_OR_FOLLOWER to Produce", 3, SENT | {"acks": 1}, True),
        ("answer UNKNOWN_TOPIC_ID to Produce", 12, SENT | {"acks": 1}, False),
        ("answer UNKNOWN_TOPIC_ID to Produce", 13, SENT | {"acks": 1}, True),
        ("answer CONCURRENT_TRANSACTIONS to Produce", 12, SENT | {"acks": -1}, False),
        ("answer CONCURRENT_TRANSACTIONS to Produce", 12, SENT | IN_TRANSACTION | {"acks": -1}, True),
        ("answer CONCURRENT_TRANSACTIONS to Produce", 9, SENT | IN_TRANSACTION | {"acks": -1}, False),
        ("answer REQUEST_TIMED_OUT to Produce, after effect", 9, SENT | {"acks": -1}, True),
        ("answer REQUEST_TIMED_OUT to Produce, after effect", 9, SENT | {"acks": 1}, False),
        ("answer UNKNOWN_SERVER_ERROR to Produce, after effect", 9, SENT | {"acks": 1}, True),
        ("answer FETCH_SESSION_ID_NOT_FOUND to Fetch", 11, TOPIC | {"session_id": 0}, False),
        ("answer FETCH_SESSION_ID_NOT_FOUND to Fetch", 11, TOPIC | {"session_id": 7}, True),
        ("answer FETCH_SESSION_ID_NOT_FOUND to Fetch", 6, TOPIC, False),
        ("answer KAFKA_STORAGE_ERROR to Fetch", 5, TOPIC, False),
        ("answer OFFSET_NOT_AVAILABLE to Fetch", 10, TOPIC, False),
        ("answer OFFSET_NOT_AVAILABLE to ListOffsets", 4, TOPIC, False),
        ("answer OFFSET_NOT_AVAILABLE to ListOffsets", 5, TOPIC, True),
        ("answer LEADER_NOT_AVAILABLE to ListOffsets", 4, TOPIC, True),
        ("answer LEADER_NOT_AVAILABLE to ListOffsets", 5, TOPIC, False),
        ("answer LEADER_NOT_AVAILABLE to ListOffsets, illegal", 5, TOPIC, True),
        ("answer UNSTABLE_OFFSET_COMMIT to OffsetFetch", 7, {"require_stable": False} | TOPIC, False),
        ("answer NOT_COORDINATOR to InitProducerId", 4, {}, False),
        ("answer NOT_COORDINATOR to InitProducerId", 4, IN_TRANSACTION, True),
        ("answer COORDINATOR_LOAD_IN_PROGRESS to InitProducerId", 4, {}, True),
        ("answer NOT_COORDINATOR to InitProducerId, after effect", 4, {}, False),
        ("answer NOT_COORDINATOR to InitProducerId, after effect", 4, IN_TRANSACTION, True),
        ("answer NOT_COORDINATOR to LeaveGroup, after effect", 3, {}, True),
    ],
)
def test_a_request_is_answered_only_what_its_client_may_see(text, version, values, struck):
    """Rule: an error of later versions, of transactions, of fetch sessions or of replication strikes only
    requests that a correct broker may answer so; the others pass and are not counted."""
    fault, faults = parse(text), RequestFaults()
    faults.arm(fault, 0)
    key = api_keys()[fault.api]
    header = RequestHeader(api_key=key, version=version, correlation_id=1, client_id="c", body=0)
    verdict = faults.request(0, 1, 1, header, request(key, version, values))
    if fault.after_effect:
        assert bool(faults._plans) is struck
    else:
        assert (verdict is not PASS) is struck
        assert [hits for _, _, hits in faults.active()] == [int(struck)]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("answer NOT_LEADER_OR_FOLLOWER to Produce", ""),
        ("answer REQUEST_TIMED_OUT to Produce, after effect", ""),
        ("answer UNKNOWN_TOPIC_ID to Fetch", ""),
        ("answer NOT_COORDINATOR to ConsumerGroupHeartbeat", ""),
        ("answer STALE_MEMBER_EPOCH to TxnOffsetCommit", "only in a state"),
        ("answer FENCED_MEMBER_EPOCH to ConsumerGroupHeartbeat", "only in a state"),
        ("answer REQUEST_TIMED_OUT to Produce", "never answered REQUEST_TIMED_OUT without an effect"),
        ("answer OFFSET_OUT_OF_RANGE to Fetch", "only in a state that the fault does not bring about"),
        ("answer UNKNOWN_MEMBER_ID to Heartbeat", "only in a state"),
        ("answer NOT_COORDINATOR to any request", "not every request"),
        ("answer UNKNOWN_SERVER_ERROR to any request", ""),
        ("skip answer to Fetch", "in their order"),
        ("reshape Fetch to control batch", "an offset of its own"),
        ("reshape Fetch to earlier batch", ""),
        ("forget member of group g", ""),
    ],
)
def test_what_is_legal(text, reason):
    """Rule: what a correct broker never does is refused, with the reason, unless it says that it is
    illegal."""
    fault, faults = parse(text), RequestFaults()
    assert (reason in why_illegal(fault)) and bool(reason) is bool(why_illegal(fault))
    if reason:
        with pytest.raises(PlanError, match="add `, illegal`"):
            faults.arm(fault, 0)
        faults.arm(parse(f"{text}, illegal"), 0)
    else:
        faults.arm(fault, 0)
    assert len(faults.active()) == 1


FEATURES = Features(topics={"orders": 3, "a-1": 1}, groups=("billing",), for_ms=5_000, silences=True)


def test_scripts_are_legal_and_of_their_seed_alone():
    """Rule: 500 seeds give legal scripts that can be written and read; the same seed gives the same; all
    verbs, many errors and all legal shapes come."""
    verbs, errors, shapes = set(), set(), set()
    for seed in range(500):
        script = draw(seed, FEATURES)
        assert script == draw(seed, FEATURES) and 1 <= len(script) <= 6
        for fault in script:
            assert not why_illegal(fault) and fault.legal and parse(str(fault)) == fault
            assert 0 < fault.most <= FEATURES.most
            verbs.add(fault.verb)
            errors.add(fault.error)
            shapes.add(fault.shape)
    assert len(verbs) == 15 and len(errors) > 12
    assert shapes == {"", "empty", "one batch", "partial batch", "earlier batch", "empty batch"}
    assert len({draw(seed, FEATURES) for seed in range(100)}) == 100


def test_a_script_only_has_what_there_is():
    """Rule: no group without groups, no topic without topics, no silence unless it is asked for, no API that
    nobody uses."""
    script = [fault for seed in range(200) for fault in draw(seed, Features(apis=frozenset({"Produce"})))]
    assert {fault.api for fault in script} <= {"Produce", "any"}
    assert {fault.topic for fault in script} == {fault.group for fault in script} == {""}
    assert not any(fault.verb.startswith("silence") or "move" in fault.verb for fault in script)
    with pytest.raises(PlanError, match="requests that can be broken"):
        draw(1, Features(apis=frozenset()))
