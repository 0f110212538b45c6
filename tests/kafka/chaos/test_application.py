"""Chaos at applications on a cluster: whom it strikes, what it records, and when it ends."""

import sys
from collections import Counter
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaException, Producer

import fencepost.kafka
from fencepost.kafka.chaos import application, draw, hands
from fencepost.kafka.chaos import moments as when
from fencepost.kafka.chaos.draw import Answers, Seen, Strike, decide
from fencepost.kafka.chaos.hands import (
    BLOCK,
    COSTLY,
    FAIL,
    FAIL_ALL,
    FAMILIES,
    FOR_GOOD,
    HAND,
    KILL,
    OF_MEMBERS,
    PAUSE,
    PROCESS,
    REBALANCE,
    REFUSE,
    REFUSE_ALL,
    REPLACE,
    SILENCE_ALL,
    TAKE_OVER,
    Shows,
    hand,
)
from fencepost.kafka.chaos.service_processes import Processes
from fencepost.proxy.faults.allowed import may_answer
from fencepost.sim.scheduler import MILLISECOND
from fencepost.traces.errors import PlanError
from fencepost.traces.plan import TransactionOptions
from fencepost.wire.names import asks_for_retry

SENDS = """
import os
from confluent_kafka import KafkaException, Producer
producer = Producer({"bootstrap.servers": os.environ["BOOTSTRAP_SERVERS"], "enable.idempotence": True})
while True:
    producer.produce("t", b"x")
    producer.flush()
"""


@pytest.fixture
def kafka():
    with fencepost.kafka.cluster(brokers=1) as cluster:
        cluster.create_topic("t")
        yield cluster


def send(kafka, count):
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})
    for _ in range(count):
        producer.produce("t", b"own")
        producer.flush(60)


def test_only_the_service_is_struck_and_it_goes_on(kafka, monkeypatch):
    """Rule: a client of the test is spared while there is a service; one that was killed runs again."""
    monkeypatch.setattr(draw, "decide", one_strike(when.RESULT, KILL))
    kafka.heal()
    kafka.chaos(1)
    with kafka.service([sys.executable, "-c", SENDS]) as service:
        first = service.pid
        kafka.until(lambda: service.pid != first)
        kafka.heal()
        ends = len(kafka.records("t"))
        kafka.until(lambda: len(kafka.records("t")) > ends)
    assert "kill" in str(kafka.reached()["strikes"])
    causes = {event.cause for event in kafka.trace().events}
    assert "service_kill" in causes


def one_strike(kind, act, **fields):
    """A draw of one strike, at the second moment of a kind."""

    def decide(seed, at, answers, seen):
        wanted = at == kind and seen.since[kind] > 1 and not seen.strikes
        return Strike(kind=kind, act=act, **fields) if wanted else None

    return decide


def test_a_paused_service_goes_on(kafka, monkeypatch):
    """Rule: it is silent for longer than its session, no other one takes over, and it is the same process."""
    monkeypatch.setattr(draw, "decide", one_strike(when.RESULT, PAUSE))
    kafka.chaos(1)
    with kafka.service([sys.executable, "-c", SENDS]) as service:
        status, first = Path(f"/proc/{service.pid}/status"), service.pid
        kafka.until(lambda: "State:\tT" in status.read_text())
        ends = len(kafka.records("t"))
        kafka.until(lambda: len(kafka.records("t")) > ends)
        assert service.pid == first and service.starts == 1


@pytest.mark.parametrize("act, error", [(REFUSE_ALL, "NOT_LEADER_OR_FOLLOWER"), (SILENCE_ALL, "")])
def test_what_fails_for_good_outlasts_the_patience_of_its_client(kafka, monkeypatch, act, error):
    """Rule: a delivery fails though the client repeats it; one to another partition does not, and none does
    after it."""
    monkeypatch.setattr(draw, "decide", one_strike(when.RESULT, act, error=error))
    monkeypatch.setattr(application, "FOR_GOOD_MS", 60_000)
    kafka.create_topic("other")
    kafka.chaos(1)
    send(kafka, 1)
    patience = {"message.timeout.ms": 1_500, "socket.timeout.ms": 1_000}
    producer, reports = Producer({"bootstrap.servers": kafka.bootstrap_servers, **patience}), []
    for topic in ("t", "other"):
        producer.produce(
            topic, b"x", on_delivery=lambda error, record: reports.append((record.topic(), error))
        )
        producer.flush(60)
    assert [(topic, error is None) for topic, error in reports] == [("t", False), ("other", True)]
    kafka.heal()
    send(kafka, 1)


def test_a_transactional_producer_is_fenced_by_another_one_of_its_id(monkeypatch):
    """Rule: what it has written in its transaction is aborted, and it is told so."""
    monkeypatch.setattr(draw, "decide", one_strike(when.COMMIT, TAKE_OVER))
    options = TransactionOptions(state_topic_partitions=1)
    with fencepost.kafka.cluster(brokers=1, transactions=options) as kafka:
        kafka.create_topic("t")
        kafka.chaos(1)
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": "shop"})
        producer.init_transactions(60)
        for value in (b"before", b"fenced"):
            producer.begin_transaction()
            producer.produce("t", value)
            producer.flush(60)
            if value == b"before":
                producer.commit_transaction(60)
        with pytest.raises(KafkaException) as error:
            producer.commit_transaction(60)
        assert error.value.args[0].fatal()
        kafka.until(
            lambda: [one.value for one in kafka.records("t", isolation="read_committed")] == [b"before"]
        )
        assert kafka.reached()["strikes"] == [f"{TAKE_OVER}, {when.COMMIT}"]


def test_clients_of_the_test_are_spared_while_there_is_a_service(kafka):
    """Rule: what the test itself sends is none of the moments."""
    kafka.chaos(1)
    with kafka.service([sys.executable, "-c", "import time; time.sleep(1e6)"]):
        send(kafka, 20)
        assert kafka.reached()["moments"] == {} and kafka.reached()["strikes"] == []


def test_without_a_service_every_client_is_under_test(kafka):
    """Rule: then requests are struck, and nothing is killed."""
    kafka.chaos(9)  # a failure comes first, which its client hears of at once
    send(kafka, 1)
    kafka.until(lambda: send(kafka, 5) or kafka.reached()["strikes"])
    assert not any(word in str(kafka.reached()["strikes"]) for word in ("kill", "replace"))


def test_nothing_is_struck_before_it_is_asked_for_or_after_heal(kafka):
    """Rule: a test that asks for no chaos gets none."""
    send(kafka, 5)
    assert kafka.reached() == {"moments": {}, "strikes": [], "names": [], "over": True}
    kafka.chaos(1)
    kafka.heal()
    send(kafka, 20)
    assert kafka.reached()["strikes"] == [] and kafka.reached()["over"]


def test_parameters_of_the_other_level_get_a_sentence(kafka):
    """Rule: a parameter that would be ignored is refused."""
    with pytest.raises(PlanError, match='expected level="application" without, or level="cluster"'):
        kafka.chaos(1, topic="orders")
    with pytest.raises(PlanError, match="saw level='brokers'"):
        kafka.chaos(1, level="brokers")


def asked(api):
    body = SimpleNamespace(session_timeout=0)
    return SimpleNamespace(api=api, group="g", partitions=(), body=body)


@pytest.mark.parametrize("joins", [True, False])
def test_a_rebalance_has_its_time(monkeypatch, joins):
    """Rule: the next round begins, and chaos is over, once the service has joined again and committed, or has
    had time for it; only the rebalance itself is struck before."""
    decided, clock = [], [0]

    def decide(seed, kind, answers, seen):
        decided.append(kind)
        return Strike(kind=kind, act=REBALANCE) if len(decided) == 1 else None

    def shows(api):
        """Whether a moment that this request shows may be struck."""
        clock[0] += application.GAP_MS * MILLISECOND
        before = len(decided)
        chaos.on_request(1, asked(api))
        return len(decided) > before

    def nothing(*_):
        return 0

    monkeypatch.setattr(draw, "decide", decide)
    monkeypatch.setattr(application, "_answers", nothing)
    monkeypatch.setattr(hands, "HAND", 1)
    verbs = ("after", "port_of", "arm", "disarm", "rebalance", "take_over", "lose_leader", "note")
    chaos = application.ApplicationChaos(
        seed=1, now=lambda: clock[0], processes=Processes(), **dict.fromkeys(verbs, nothing)
    )
    assert shows("Produce") and not shows("Produce") and not chaos.over
    if joins:
        chaos.on_answer(1, asked("OffsetCommit"), None)  # of what it had before
        assert not shows("Produce") and not chaos.over
        assert shows("SyncGroup")
        chaos.on_answer(1, asked("OffsetCommit"), None)
    else:
        clock[0] += application.SETTLES_MS * MILLISECOND
    assert chaos.over and shows("Produce")


def test_moments_follow_from_requests():
    """Rule: each kind has its request; idle and the end are said once, and not before the first work."""
    moments, idle, end = when.Moments(), when.IDLE_MS * MILLISECOND, when.END_MS * MILLISECOND
    assert moments.request(0, 7, asked("Fetch")) == when.START
    assert moments.request(end, 7, asked("Fetch")) == ""
    assert moments.request(end, 7, asked("Produce")) == when.RESULT
    assert moments.request(end, 7, asked("OffsetCommit")) == when.COMMIT
    assert moments.answer(end, asked("OffsetCommit"), None) == when.BETWEEN
    assert moments.request(end + idle - 1, 7, asked("Heartbeat")) == ""
    assert [moments.request(end + idle, 7, asked("Heartbeat")) for _ in range(2)] == [when.IDLE, ""]
    assert [moments.request(2 * end, 7, asked("Heartbeat")) for _ in range(2)] == [when.END, ""]
    assert moments.request(2 * end, 8, asked("Fetch")) == when.START
    assert moments.request(4 * end, 8, asked("Heartbeat")) == ""  # it has not worked yet
    assert moments.request(4 * end, 9, asked("Metadata")) == ""  # it has not even started
    assert when.HANDED_OUT != moments.answer(2 * end, asked("Heartbeat"), None) == ""


# What chaos does to applications is a function of its seed and of what was seen.


API = {when.START: "JoinGroup", when.JOINING: "JoinGroup", when.HANDED_OUT: "Fetch", when.RESULT: "Produce"}
WORK = [when.HANDED_OUT, *[when.RESULT, when.COMMIT, when.BETWEEN] * 8]
SERVICE = [
    when.START,
    when.JOINING,
    when.JOINING,
    *WORK,
    when.IDLE,
    when.END,
    *[when.JOINING, *WORK, when.IDLE, when.END] * 5,
]
SEEDS = range(200)
BLOCKS = [range(first, first + BLOCK) for first in SEEDS[::BLOCK]]
EVERY_PAIR = {pair for family in FAMILIES.values() for pair in family}


def api_of(kind):
    return API.get(kind, "OffsetCommit" if kind in (when.COMMIT, when.BETWEEN) else "Heartbeat")


def answers_of(kind):
    before, after = (may_answer(api_of(kind), after_effect=after) for after in (False, True))
    return Answers(before=before, after=after)


@cache
def struck(seed):
    """By a seed, in a run of the service that shows every moment."""
    return strikes(seed, SERVICE)


def strikes(seed, moments, **facts):
    """Of a seed, in a run that shows these moments."""
    found, since, shown = [], Counter(), Counter()
    for kind in moments:
        since[kind] += 1
        shown[kind] += 1
        strike = decide(
            seed, kind, answers_of(kind), Seen(since=since, shown=shown, strikes=tuple(found), **facts)
        )
        if strike is not None:
            found.append(strike)
            since.clear()
    return found


def test_the_same_seed_and_the_same_moments_give_the_same_strikes():
    """Rule: a seed repeats what it did, and seeds differ."""
    assert [struck(seed) for seed in SEEDS[:40]] == [strikes(seed, SERVICE) for seed in SEEDS[:40]]
    assert len({tuple(struck(seed)) for seed in SEEDS}) > len(SEEDS) * 0.9


def test_a_run_has_a_few_strikes_and_never_none():
    """Rule: a service is struck, also one that comes to an end at once, and no pair is played twice."""
    for seed in SEEDS:
        found = struck(seed)
        assert 0 < len(found) <= HAND, seed
        assert len({(one.kind, one.act) for one in found}) == len(found), seed
        assert strikes(seed, [when.START, when.HANDED_OUT, when.RESULT, when.IDLE, when.END]), seed


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_ten_seeds_have_every_pair(block):
    """Rule: what is possible is in hand once in each block, and what shows most, several times."""
    hands = [hand(seed, Shows()) for seed in block]
    assert {pair for each in hands for pair in each} == EVERY_PAIR
    assert all(len(each) == len(set(each)) == HAND for each in hands)
    counts = Counter(pair.act for each in hands for pair in each if pair.kind == when.RESULT)
    assert counts[FAIL] >= 4 and counts[KILL] >= 3


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_ten_seeds_strike_with_nearly_every_pair(block):
    """Rule: what is in hand is played, by a service that shows every moment, often enough."""
    found = {(one.kind, one.act) for seed in block for one in struck(seed)}
    assert len({(pair.kind, pair.act) for pair in EVERY_PAIR} - found) <= 3


@pytest.mark.parametrize("missing", [{when.RESULT}, {when.JOINING, when.START}, {when.COMMIT, when.BETWEEN}])
@pytest.mark.parametrize("block", BLOCKS[:5], ids=str)
def test_a_block_of_a_service_that_shows_less_has_every_pair_that_is_left(block, missing):
    """Rule: a pair that cannot come gives its place to one that can."""
    shows = Shows(kinds=frozenset(when.KINDS) - missing, transactional=False)
    hands = [hand(seed, shows) for seed in block]
    dealt = {pair for each in hands for pair in each}
    assert dealt == {one for one in EVERY_PAIR if shows.has(one)}
    assert not {pair.kind for pair in dealt} & missing
    assert all(len(each) == HAND for each in hands)


def test_what_the_service_never_does_is_not_struck():
    """Rule: a service without results is struck at its commits and at what it is handed out."""
    without = [kind for kind in SERVICE if kind != when.RESULT]
    found = [strikes(seed, without) for seed in SEEDS[:40]]
    assert {one.kind for each in found for one in each} == set(when.KINDS) - {when.RESULT} and all(found)


def test_without_a_process_only_requests_are_struck():
    """Rule: a test that runs its clients itself is not killed."""
    found = [one for seed in SEEDS[:40] for one in strikes(seed, SERVICE, process=False)]
    assert found and not {one.act for one in found} & PROCESS


def test_a_crash_comes_after_a_failure():
    """Rule: what was not committed shows after the next start."""
    for seed in SEEDS:
        acts = [pair.act for pair in hand(seed, Shows()) if pair.kind in (when.RESULT, when.COMMIT)]
        failures = [place for place, act in enumerate(acts) if act in {FAIL, FAIL_ALL, REFUSE_ALL}]
        crashes = [place for place, act in enumerate(acts) if act in COSTLY]
        assert not crashes or not failures or failures[0] < crashes[0]


def test_errors_are_those_of_a_correct_broker():
    """Rule: a failure is for good, a refusal asks for another attempt, and a broker may give both. What fails
    again and again has no effect."""
    for seed in SEEDS:
        for one in struck(seed):
            if one.act in (FAIL, REFUSE, FAIL_ALL, REFUSE_ALL):
                assert one.error in may_answer(api_of(one.kind), after_effect=one.after_effect)
                assert asks_for_retry(one.error) is (one.act in (REFUSE, REFUSE_ALL))
                assert not (one.after_effect and one.act in FOR_GOOD)
    assert any(one.act == KILL and one.milliseconds for seed in SEEDS for one in struck(seed))


def test_a_request_that_knows_no_such_error_is_not_struck_with_one():
    """Rule: a strike is one that its client hears of."""
    seen = Seen(since={when.RESULT: 3, when.IDLE: 1}, shown={when.RESULT: 3, when.IDLE: 1})
    for seed in SEEDS:
        strike = decide(seed, when.RESULT, Answers(), seen)
        assert strike is None or not strike.error


def test_a_process_that_nothing_fences_is_not_replaced():
    """Rule: two at a time without a group or a transactional id are a mistake of whoever starts them, and
    only a member feels what happens to its group."""
    alone = {"member": False, "transactional": False}
    acts = {one.act for seed in SEEDS[:40] for one in strikes(seed, SERVICE, **alone)}
    assert KILL in acts and not acts & {REPLACE, TAKE_OVER, *OF_MEMBERS}
    assert REPLACE in {one.act for seed in SEEDS for one in struck(seed)}
