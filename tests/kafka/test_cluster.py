"""fencepost.kafka.cluster(): the handle, its verbs, the record and the verdict, with another people's
client."""

import os
import signal
import socket
import threading

import pytest

import fencepost.kafka
from fencepost.checkers.verdict import Decision
from fencepost.kafka.handle import SIDES
from fencepost.proxy.faults import Features, draw
from fencepost.systems.system import UnsupportedError
from fencepost.traces.errors import EnvironmentError_, FencepostError, PlanError
from fencepost.traces.events import Name
from fencepost.traces.jsonlines import read_traces
from fencepost.traces.operations import Function, Outcome
from fencepost.traces.plan import Fault, TopicOptions
from tests.kafka.clients import appended, consumer, produce, producer
from tests.systems.lab import until


def test_a_healthy_run_under_faults_is_ok():
    """Rule: acknowledged records survive a crash, a pause, a cut, a lost session and a slow broker, and every
    judge says Ok of the record."""
    with fencepost.kafka.cluster() as kafka:
        kafka.create_topic("t", partitions=2, config={"min.insync.replicas": "2"})
        with producer(kafka) as client:
            produce(client, range(20))
            kafka.crash(kafka.leader("t", 0))
            produce(client, range(20, 40))
            kafka.heal()
            kafka.pause(kafka.leader("t", 1), for_ms=700)
            produce(client, range(40, 60))
            kafka.wait_until_healthy()
            kafka.cut_off(kafka.leader("t", 0), "brokers", for_ms=500)
            kafka.slow(kafka.leader("t", 1), 20, for_ms=500)
            produce(client, range(60, 80))
            kafka.expire_session(kafka.controller())
            produce(client, range(80, 100))
        kafka.heal()
        kafka.wait_until_healthy()
        snapshot = kafka.trace()
        assert kafka.verdict().decision is Decision.OK
        trace = kafka.end()
        assert kafka.end() is trace
        assert kafka.verdict().decision is Decision.OK, kafka.verdict()
    began = [event.cause for event in trace.events if event.name is Name.FAULT_BEGAN]
    assert began == ["crash", "pause", "partition", "slow_link", "slow_client_link", "expire_session"]
    assert appended(trace) == set(range(100))
    assert trace.events[: len(snapshot.events) // 2] == snapshot.events[: len(snapshot.events) // 2]
    assert trace.target == "embedded" and not trace.claims.assumption_broken
    checked = [row for row in trace.operations if row.function is Function.POLL and row.process == 0]
    assert {record.value for row in checked for record in row.records} >= set(range(100))


def test_a_planted_bug_is_convicted():
    """Rule: the verdict is no decoration. A follower that truncates to its high watermark (KIP-101) loses
    what was committed."""
    options = {"replica_fetch_wait_max_ms": 5_000}
    with fencepost.kafka.cluster(brokers=2, bugs=("KIP-101",), **options) as kafka:
        kafka.create_topic("t", replication_factor=2)
        with producer(kafka) as client:
            produce(client, range(3))
            follower = next(broker for broker in kafka.brokers if broker != kafka.leader("t"))
            kafka.crash(follower, for_ms=10)
            kafka.wait_until_healthy()
            produce(client, range(3, 6))
        kafka.end()
        verdict = kafka.verdict()
    assert verdict.decision is Decision.ILLEGAL
    assert verdict.anomaly in ("committed_record_truncated", "conformance")


def test_the_same_steps_without_the_bug_are_ok():
    """Rule: what convicts above is the bug alone."""
    with fencepost.kafka.cluster(brokers=2, replica_fetch_wait_max_ms=5_000) as kafka:
        kafka.create_topic("t", replication_factor=2)
        with producer(kafka) as client:
            produce(client, range(3))
            kafka.crash(next(broker for broker in kafka.brokers if broker != kafka.leader("t")), for_ms=10)
            kafka.wait_until_healthy()
            produce(client, range(3, 6))
        kafka.end()
        assert kafka.verdict().decision is Decision.OK, kafka.verdict()


def test_a_group_goes_on_when_its_coordinator_moves_and_crashes():
    """Rule: a consumer group of another people's client consumes everything over both."""
    with fencepost.kafka.cluster() as kafka, producer(kafka) as client:
        kafka.create_topic("t", partitions=2)
        produce(client, range(50))
        with consumer(kafka, "g") as reader:
            seen = reader.read(50)
            moved = kafka.move_coordinator("g")
            assert kafka.coordinator("g") == moved
            produce(client, range(50, 60))
            seen |= reader.read(10)
            before = phases(kafka).count("PreparingRebalance")
            kafka.rebalance("g")
            until(lambda: not reader.poll(50) and settled(kafka, before), "the end of a rebalance")
            with pytest.raises(PlanError, match="group nobody with members at work, saw none"):
                kafka.rebalance("nobody")
            kafka.crash(moved, for_ms=1_500)
            produce(client, range(60, 70))
            seen |= reader.read(10)
        assert seen == set(range(70))
        kafka.end()
        assert kafka.verdict().decision is Decision.OK, kafka.verdict()


def phases(kafka):
    """The states that the group came into."""
    return [event.cause for event in kafka.trace().events if event.name is Name.GROUP_PHASE]


def settled(kafka, before):
    """Whether one more rebalance has begun, and is over."""
    seen = phases(kafka)
    return seen.count("PreparingRebalance") == before + 1 and seen[-1] == "Stable"


def test_a_leader_moves_where_it_is_wanted():
    """Rule: move_leader names who leads then; a replica that cannot lead is refused by name."""
    with fencepost.kafka.cluster() as kafka:
        kafka.create_topic("t", replication_factor=2)
        first = kafka.leader("t")
        second = kafka.move_leader("t")
        assert second != first and kafka.leader("t") == second
        assert kafka.move_leader("t", to=first) == first
        outside = next(broker for broker in kafka.brokers if broker not in (first, second))
        with pytest.raises(
            PlanError, match=f"a replica in sync that does not lead: .*{second}.*, saw {outside}"
        ):
            kafka.move_leader("t", to=outside)


def test_a_leader_that_moves_while_another_broker_is_away_moves_once_it_is_back():
    """Rule: a controller that cannot do it while a replica is away is asked again."""
    with fencepost.kafka.cluster() as kafka:
        kafka.create_topic("t", partitions=2)
        first = kafka.leader("t", 1)
        kafka.fault("expire_session", f"broker {first}", for_ms=100)
        moving = threading.Thread(target=kafka.move_leader, args=("t", 1), daemon=True)
        moving.start()
        moving.join(30)
        assert not moving.is_alive() and kafka.leader("t", 1) != first


def test_a_new_leader_is_waited_for_until_it_knows_what_was_shown():
    """Rule (KIP-207): its high watermark lags at first, and a record that was acknowledged is not missing."""
    with fencepost.kafka.cluster() as kafka:
        kafka.create_topic("t", replication_factor=3)
        with producer(kafka) as client:
            for number in range(1, 13):
                produce(client, [number])
                kafka.move_leader("t")
                assert [int(one.value) for one in kafka.records("t")] == list(range(1, number + 1))


def test_a_wrong_topic_or_partition_is_named():
    """Rule: a fault on a partition that there is not is refused with what was named and what there is."""
    with fencepost.kafka.cluster(listen=False) as kafka:
        kafka.create_topic("orders", partitions=2)
        there = "expected a partition that exists: orders-0, orders-1"
        for wrong, seen in (("leader of order-0", "order-0"), ("follower 1 of orders-2", "orders-2")):
            with pytest.raises(PlanError, match=f"the target '{wrong}' of a fault: {there}, saw {seen}"):
                kafka.fault("pause", wrong)
        with pytest.raises(PlanError, match=f"the move of a leader: {there}, saw order-0"):
            kafka.move_leader("order")
        with pytest.raises(PlanError, match="saw 'broker -1'; -1 is the leader of a partition that has none"):
            kafka.crash(kafka.leader("order"))
        with pytest.raises(PlanError, match="create_topic can hit topic bills, saw bills was created when"):
            kafka.fault("create_topic", "topic bills")


@pytest.mark.parametrize("side", SIDES)
def test_a_broker_is_cut_off_and_healed(side):
    """Rule: every side can be cut off and healed; the record says which faults it was."""
    with fencepost.kafka.cluster(listen=False) as kafka:
        kafka.create_topic("t")
        kafka.cut_off(2, side)
        assert kafka.status()["active"] == [f"{kind} of broker 2" for kind in SIDES[side]]
        kafka.heal(2)
        assert kafka.status()["active"] == []
        kafka.wait_until_healthy()
        names = [event.name for event in kafka.trace().events]
        assert names.count(Name.FAULT_BEGAN) == names.count(Name.FAULT_ENDED) == len(SIDES[side])


def test_restart_wins_over_an_earlier_planned_restart():
    """Rule: a crash for a while that was ended early does not start the broker again in the middle of the
    next one."""
    with fencepost.kafka.cluster(brokers=1, listen=False) as kafka:
        kafka.crash(1, for_ms=400)
        kafka.restart(1)
        kafka.crash(1)
        begun = kafka.status()["time_ms"]
        until(lambda: kafka.status()["time_ms"] > begun + 600, "the time of the first restart")
        assert kafka.status()["running"] == []
        kafka.restart(1)
        kafka.wait_until_healthy()


def test_stop_resume_power_off_and_any_fault_of_the_table():
    """Rule: a broker that stopped stays down until restart; a power loss and a full disk are faults like
    others."""
    with fencepost.kafka.cluster(listen=False) as kafka:
        kafka.create_topic("t")
        kafka.stop(1)
        until(lambda: 1 not in kafka.status()["running"], "the end of broker 1")
        kafka.restart(1)
        kafka.pause(2)
        assert 2 not in kafka.status()["running"]
        kafka.resume(2)
        kafka.power_off(3)
        until(lambda: 3 not in kafka.status()["running"], "the power loss")
        kafka.heal()
        number = kafka.fault("clock_jump", "broker 1", parameter=2_000)
        kafka.end_fault(number)
        kafka.wait_until_healthy()
        kafka.end()
        assert kafka.verdict().decision is Decision.OK, kafka.verdict()


@pytest.mark.parametrize("seed", range(3))
def test_chaos_is_within_the_budget_and_its_record_is_ok(seed):
    """Rule: faults of a seed, drawn as a campaign draws them, leave a healthy cluster Ok."""
    with fencepost.kafka.cluster(brokers=3) as kafka, producer(kafka) as client:
        kafka.create_topic("t")
        kafka.chaos(seed, for_ms=1_500, level="cluster", topic="t")
        produce(client, range(30), patience_s=1)
        begun = kafka.status()["time_ms"]
        until(lambda: kafka.status()["time_ms"] > begun + 1_500, "the end of the chaos")
        kafka.end()
        assert kafka.verdict().decision is Decision.OK, kafka.verdict()


def crashes(at_ms):
    return tuple(
        Fault(fault_id=number, kind="crash", at_ms=at_ms, duration_ms=5_000, target=f"broker {number}")
        for number in (1, 2, 3)
    )


def began(kafka):
    events = kafka.run.cluster.system.do(lambda: list(kafka.run.cluster.events))
    return sum(event.name is Name.FAULT_BEGAN for event in events)


def test_chaos_asks_the_budget_and_a_person_does_not():
    """Rule: of three crashes at once chaos begins fewer, so that partitions keep a leader; three that are
    asked for by name all begin."""
    with fencepost.kafka.cluster(brokers=3) as kafka:
        kafka.create_topic("t")
        kafka.run.cluster.system.do(kafka.run.cluster.chaos, crashes(0))
        time_ms = kafka.status()["time_ms"]
        until(lambda: kafka.status()["time_ms"] > time_ms + 50, "the faults")
        assert 0 < began(kafka) < 3
        kafka.heal()
        before = began(kafka)
        for broker in (1, 2, 3):
            kafka.crash(broker)
        assert began(kafka) == before + 3


GIVING_UP = {
    394: "answer UNKNOWN_SERVER_ERROR to Produce",
    142: "answer UNKNOWN_SERVER_ERROR to Produce",
    629: "answer UNKNOWN_SERVER_ERROR to InitProducerId",
}
"""Seeds that draw such an answer."""


@pytest.mark.parametrize("seed", GIVING_UP)
def test_chaos_answers_nothing_that_makes_a_producer_give_up(seed):
    """Rule: a script with an unknown error in answer to Produce, before or after its effect, or to
    InitProducerId, is drawn without it."""
    with fencepost.kafka.cluster(brokers=1) as kafka:
        kafka.create_topic("t")
        drawn = [str(fault) for fault in draw(seed, Features(topics={"t": 1}, for_ms=2_000))]
        kept = [text for text in drawn if not text.startswith(GIVING_UP[seed])]
        assert kept != drawn
        kafka.chaos(seed, for_ms=2_000, level="cluster", topic="t")
        assert [fault["fault"] for fault in kafka.request_faults()] == kept


@pytest.mark.parametrize("seed", [0, 16, 18])
def test_chaos_draws_at_least_one_fault(seed):
    """Rule: a test under chaos has a fault of a broker, a link or a disk."""
    with fencepost.kafka.cluster() as kafka:
        kafka.create_topic("t")
        assert kafka.chaos(seed, for_ms=2_000, level="cluster", topic="t", requests=False) >= 1


def test_chaos_keeps_what_was_acknowledged():
    """Rule: while one broker is cut off from ZooKeeper the power of one other may fail, not of both; the host
    is back later, and every record that was acknowledged is there."""
    cut = Fault(fault_id=0, kind="isolate_zookeeper", at_ms=0, duration_ms=2_500, target="broker 3")
    failing = [
        Fault(
            fault_id=number, kind="power_loss", at_ms=100 * number, duration_ms=10, target=f"broker {number}"
        )
        for number in (1, 2)
    ]
    with fencepost.kafka.cluster() as kafka, producer(kafka) as client:
        kafka.create_topic("t")
        produce(client, range(30))
        kafka.run.cluster.system.do(kafka.run.cluster.chaos, (cut, *failing))
        time_ms = kafka.status()["time_ms"]
        until(lambda: kafka.status()["time_ms"] > time_ms + 300, "the faults")
        assert began(kafka) == 2 and 1 not in kafka.status()["running"]
        kafka.heal()
        kafka.wait_until_healthy()
        kafka.assert_no_loss()
        assert {int(record.value) for record in kafka.records("t")} == set(range(30))


def test_what_chaos_has_not_begun_is_healed_too():
    """Rule: after heal no fault of an earlier chaos begins."""
    with fencepost.kafka.cluster(brokers=3) as kafka:
        kafka.create_topic("t")

        def drawn_and_healed():
            """Within one step of the cluster: a crowded machine may take longer than 300 ms between two."""
            kafka.run.cluster.chaos(crashes(300))
            kafka.run.cluster.heal()

        kafka.run.cluster.system.do(drawn_and_healed)
        time_ms = kafka.status()["time_ms"]
        until(lambda: kafka.status()["time_ms"] > time_ms + 600, "the time of the faults")
        assert began(kafka) == 0


def test_one_broker_is_enough():
    """Rule: brokers=1 works: topics with one replica, groups, faults."""
    with fencepost.kafka.cluster(brokers=1) as kafka, producer(kafka) as client:
        assert kafka.create_topic("t") == {0: (1,)}
        produce(client, range(5))
        kafka.slow(1, 1)
        kafka.crash(1, for_ms=100)
        produce(client, range(5, 10))
        with consumer(kafka, "g") as reader:
            assert reader.read(10) == set(range(10))


def test_a_topic_is_created_when_somebody_writes_to_it():
    """Rule: auto.create.topics.enable is on, as in Kafka: a producer's first record makes the topic."""
    with fencepost.kafka.cluster(brokers=2) as kafka, producer(kafka) as client:
        produce(client, range(3), "made")
        assert kafka.leader("made") in kafka.brokers
        trace = kafka.end()
        assert kafka.verdict().decision is Decision.OK, kafka.verdict()
    assert appended(trace) == set(range(3))


def test_real_files_in_a_directory(tmp_path):
    """Rule: directory= keeps the brokers' logs as files; faults that files cannot have are refused by
    name."""
    with fencepost.kafka.cluster(brokers=1, directory=tmp_path) as kafka, producer(kafka) as client:
        kafka.create_topic("t")
        produce(client, range(5))
        for kind in ("power_loss", "bit_rot", "lying_fsync"):
            with pytest.raises(UnsupportedError, match=f"saw {kind}"):
                kafka.fault(kind, "broker 1")
        kafka.end()
        assert kafka.verdict().decision is Decision.OK
    assert list((tmp_path / "broker-1").glob("t-0/*.log"))


def test_records_without_value_ids_are_judged_by_their_content():
    """Rule: keys and values of any bytes are followed; a header of ours is not needed."""
    with fencepost.kafka.cluster(brokers=1) as kafka, producer(kafka, request_timeout_ms=240_000) as client:
        kafka.create_topic("t")
        sent = [client.send("t", key=b"k%d" % n, value=b"order number %d" % n) for n in range(5)]
        assert [future.get(600).offset for future in sent] == [0, 1, 2, 3, 4]
        trace = kafka.end()
        assert kafka.verdict().decision is Decision.OK
    rows = [row for row in trace.operations if row.function is Function.APPEND and row.process]
    assert [row.key for row in rows] == ["k0", "k1", "k2", "k3", "k4"]
    assert len({record.value for row in rows for record in row.records}) == 5 and trace.unique_values


def test_a_full_record_is_a_whole_run_up_to_there(caplog):
    """Rule: the bound of the record is named when it is met; what was recorded before is judged."""
    with fencepost.kafka.cluster(brokers=1, most_events=60) as kafka, producer(kafka) as client:
        kafka.create_topic("t")
        for value in range(40):
            produce(client, (value,))
        assert kafka.status()["full_at_ms"] is not None
        trace = kafka.end()
        assert kafka.verdict().decision is Decision.OK, kafka.verdict()
    names = (Name.CONNECTION, Name.RECORD_TEXTS)  # are for people, and no protocol events
    assert sum(event.name not in names for event in trace.events) == 60
    assert "60 events" in caplog.text


def test_a_saved_trace_is_the_trace(tmp_path):
    """Rule: save_trace writes what trace answers."""
    with fencepost.kafka.cluster(brokers=1, listen=False) as kafka:
        trace = kafka.end()
        kafka.save_trace(tmp_path / "trace.jsonl")
    assert list(read_traces(tmp_path / "trace.jsonl")) == [trace]


def test_after_the_end_nobody_is_served():
    """Rule: the last phases of a run have the cluster to themselves: a connection is closed before it can ask
    for anything."""
    with fencepost.kafka.cluster(brokers=1) as kafka:
        kafka.create_topic("t")
        with producer(kafka) as client:
            produce(client, range(1))
        host, _, port = kafka.bootstrap_servers.partition(":")
        with socket.create_connection((host, int(port)), timeout=600) as before:
            trace = kafka.end()
            assert closed_by_peer(before)
        with socket.create_connection((host, int(port)), timeout=600) as after:
            assert closed_by_peer(after)
    assert appended(trace) == {0}


def closed_by_peer(connection):
    """Whether the other side has hung up."""
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


def test_what_cannot_be_is_a_sentence():
    """Rule: mistakes are sentences and change nothing."""
    with fencepost.kafka.cluster(brokers=1, listen=False) as kafka:
        kafka.create_topic("t")
        for call, words in (
            (lambda: kafka.crash(7), "nobody is broker 7 now"),
            (lambda: kafka.restart(7), "expected a broker from 1 to 1, saw 7"),
            (lambda: kafka.cut_off(1, "moon"), "brokers, zookeeper, clients, everybody"),
            (lambda: kafka.fault("meteor", "broker 1"), "saw 'meteor'"),
            (lambda: kafka.fault("crash", "somebody"), "a role"),
            (lambda: kafka.crash(1, for_ms=-5), "duration_ms"),
            (lambda: kafka.create_topic("t"), "expected a new topic"),
            (lambda: kafka.create_topic("a b"), "expected a name"),
            (lambda: kafka.create_topic("u", replication_factor=2), "replication factor"),
            (lambda: kafka.create_topic("u", config={"colour": "red"}), "one of the settings"),
        ):
            with pytest.raises(FencepostError, match=words):
                call()
        assert kafka.status()["healthy"] and kafka.status()["active"] == []
    for options, words in (({"brokers": 17}, "brokers"), ({"colour": 1}, "colour"), ({"bugs": ("X",)}, "X")):
        with pytest.raises(FencepostError, match=words):
            fencepost.kafka.cluster(**options)


def test_a_taken_port_is_a_sentence():
    """Rule: a port that somebody has is named, and nothing is left behind."""
    threads = set(threading.enumerate())
    with fencepost.kafka.cluster(brokers=1) as kafka:
        port = int(kafka.bootstrap_servers.rpartition(":")[2])
        with pytest.raises(EnvironmentError_, match=f"expected port {port} to be free"):
            fencepost.kafka.cluster(brokers=1, port=port)
    with fencepost.kafka.cluster(brokers=1, port=port) as kafka:
        assert kafka.bootstrap_servers == f"127.0.0.1:{port}"
    assert set(threading.enumerate()) == threads


def test_a_cluster_in_a_child_process_has_the_same_handle():
    """Rule: process=True: clients, faults, mistakes, the trace and the verdict cross the pipe; the process is
    gone afterwards."""
    with fencepost.kafka.cluster(process=True) as kafka:
        process = kafka._process
        assert kafka.create_topic("t", config={"min.insync.replicas": "2"}) == {0: (1, 2, 3)}
        with producer(kafka) as client:
            produce(client, range(10))
            kafka.crash(kafka.leader("t"), for_ms=500)
            produce(client, range(10, 20))
        with pytest.raises(PlanError, match="saw 'meteor'"):
            kafka.fault("meteor", "broker 1")
        kafka.wait_until_healthy()
        assert appended(kafka.end()) == set(range(20))
        assert kafka.verdict().decision is Decision.OK
    assert process.poll() == 0
    with pytest.raises(EnvironmentError_, match="that it has ended"):
        kafka.status()
    kafka.close()
    with pytest.raises(FencepostError, match="saw 'X'"):
        fencepost.kafka.cluster(process=True, bugs=("X",))


def test_a_child_survives_the_ctrl_c_of_its_parent():
    """Rule: the child ignores a Ctrl-C; what it has recorded can still be asked for."""
    with fencepost.kafka.cluster(process=True, brokers=1, listen=False) as kafka:
        kafka.create_topic("t")
        for _ in range(3):
            os.kill(kafka._process.pid, signal.SIGINT)
            assert kafka.leader("t") == 1
        assert kafka.end().events
    assert kafka._process.poll() == 0


def test_a_child_that_dies_is_a_sentence():
    """Rule: a process that ends by itself is named."""
    with fencepost.kafka.cluster(process=True, brokers=1, listen=False) as kafka:
        kafka._process.kill()
        with pytest.raises(EnvironmentError_, match=f"process {kafka._process.pid}"):
            kafka.status()


def test_many_clusters_leave_nothing_behind():
    """Rule: twenty clusters one after another leave no thread, and no port stays bound."""
    threads, ports = set(threading.enumerate()), set()
    for _ in range(20):
        with fencepost.kafka.cluster(brokers=2) as kafka:
            ports.add(kafka.bootstrap_servers)
    assert set(threading.enumerate()) == threads
    assert len(ports) >= 1


def in_sync(kafka):
    """The ISR of t-0, as ZooKeeper had it last."""
    states = (event for event in kafka.trace().events if event.name is Name.PARTITION_STATE)
    return [event.isr for event in states if event.topic == "t"][-1]


def test_an_acks_all_record_needs_its_replicas():
    """Rule: faults are real to a client: with min.insync.replicas=2 and one broker of two down nothing is
    acknowledged, with it back everything is."""
    with fencepost.kafka.cluster(brokers=2) as kafka, producer(kafka, retries=0) as client:
        kafka.create_topic("t", replication_factor=2, config={"min.insync.replicas": "2"})
        produce(client, range(1))
        follower = next(broker for broker in kafka.brokers if broker != kafka.leader("t"))
        kafka.crash(follower)
        until(lambda: len(in_sync(kafka)) == 1, "an ISR without it")
        with pytest.raises(Exception, match=r"(?i)not.?enough.?replicas|timeout"):
            client.send("t", b"1", partition=0).get(30)
        kafka.restart(follower)
        kafka.wait_until_healthy()
        produce(client, range(2, 4))
        rows = [row for row in kafka.end().operations if row.function is Function.APPEND and row.process]
        assert {row.outcome for row in rows} >= {Outcome.OK}
        assert kafka.verdict().decision is Decision.OK


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"seed": "x"}, "cluster: seed: expected a whole number from 0 on, saw 'x'"),
        ({"seed": -1}, "cluster: seed: expected a whole number from 0 on, saw -1"),
        ({"brokers": "3"}, "options of a cluster"),
        ({"topics": {"t": 1}}, "'topics' must be a tuple of TopicOptions"),
        ({"topics": (TopicOptions(name="a b"),)}, "letters, digits, dots, underscores and hyphens: 'a b'"),
    ],
)
def test_a_wrong_option_is_one_sentence(options, says):
    """Rule: a mistake of the caller is a PlanError in the words of the caller, not of the library below."""
    with pytest.raises(PlanError) as caught:
        fencepost.kafka.cluster(**options)
    assert says in str(caught.value) and "Attribute(" not in str(caught.value)
