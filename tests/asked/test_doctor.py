"""`fencepost doctor`: a cluster that is well, one that is not, and how it is asked."""

import asyncio
import json
import socket

import pytest
from confluent_kafka import Consumer, Producer

import fencepost.kafka
from fencepost.asked import live
from fencepost.asked.broker_connections import Links
from fencepost.asked.live import Watch, Watched, watch
from fencepost.cli import run
from fencepost.cli.doctor.command_config import access_of
from fencepost.cli.doctor.doctor_command import Report
from fencepost.traces.errors import EnvironmentError_, FencepostError
from fencepost.traces.events import Question
from fencepost.traces.plan import TransactionOptions
from fencepost.traces.store import TraceStore
from fencepost.wire.client import Access

PATIENCE_S = 600


@pytest.fixture(scope="module")
def kafka():
    """A cluster of three, with one topic and a producer that sent a record."""
    with fencepost.kafka.cluster(transactions=TransactionOptions(state_topic_partitions=2)) as cluster:
        cluster.create_topic("well", partitions=2, config={"min.insync.replicas": "2"})
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
        producer.produce("well", b"1")
        producer.flush(PATIENCE_S)
        yield cluster


@pytest.fixture
def doctor(capsys):
    """doctor(cluster, options) -> exit code, the JSON object."""

    def call(cluster, *options):
        capsys.readouterr()
        code = run(["doctor", "--bootstrap", cluster.bootstrap_servers, "--json", *map(str, options)])
        return int(code), json.loads(capsys.readouterr().out)

    return call


def test_a_healthy_cluster_has_no_finding_and_is_not_changed(kafka, doctor, tmp_path):
    """It is asked about what it has, and has no topic more afterwards; `check` says the same of the trace."""
    code, told = doctor(kafka, "--seconds", 3, "--requests-per-second", 200, "--record", tmp_path / "day")
    assert (code, told["findings"], told["exit_code"]) == (0, [], 0)
    assert (told["brokers"], told["topics"], told["groups"]) == ([1, 2, 3], ["well"], [])
    assert told["rounds"] >= 1 and any("group_rebalances: needs 330 s" in line for line in told["not_judged"])
    assert run(["check", str(tmp_path / "day")]) == 0
    assert run(["show", str(tmp_path / "day"), "--html", str(tmp_path / "page.html")]) == 0


def stop_after(monkeypatch, names):
    """Interrupt the watch, as Ctrl-C does, once these findings were said."""
    say, over = Report.say_new, []

    def say_new(self):
        found = say(self)
        if not over and names <= {one.row.name for one in found}:
            over.append(True)
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(Report, "say_new", say_new)


def test_a_broker_that_is_gone_is_found_in_its_partitions(doctor, monkeypatch, tmp_path, capsys):
    """No leader where it was alone, too few in sync where it was the third; an open transaction is a note,
    for its coordinator says Ongoing."""
    with fencepost.kafka.cluster(transactions=TransactionOptions(state_topic_partitions=2)) as cluster:
        cluster.create_topic("alone", replication_factor=1)
        cluster.create_topic("three", config={"min.insync.replicas": "3"})
        cluster.create_topic("open")
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": "x"})
        producer.init_transactions(PATIENCE_S)
        producer.begin_transaction()
        producer.produce("open", b"1", partition=0)
        producer.flush(PATIENCE_S)
        gone = cluster.leader("alone")
        cluster.crash(gone)
        stop_after(monkeypatch, {"partition_without_leader", "below_min_isr"})
        code, told = doctor(cluster, "--watch", "--requests-per-second", 500, "--record", tmp_path / "day")
    places = {(one["name"], one["topic"], one["partition"]) for one in told["findings"]}
    assert code == 1
    assert places == {("partition_without_leader", "alone", 0), ("below_min_isr", "three", 0)}
    assert all(one["command"] and one["since"] and one["by"] != gone for one in told["findings"])
    (held,) = [one for one in told["notes"] if one["name"].startswith("an open transaction")]
    assert (held["topic"], held["offset"]) == ("open", 0) and "coordinator of x says Ongoing" in held["seen"]
    assert ("a broker is away", None) in {(one["name"], one["topic"]) for one in told["notes"]}
    assert any(f"of broker {gone}" in line for line in told["not_judged"])
    (kept,) = list(TraceStore.open(tmp_path / "day"))
    assert kept.target == "kafka" and {event.cause for event in kept.events} >= {Question.PRODUCERS}
    capsys.readouterr()
    assert run(["check", str(tmp_path / "day")]) == 1
    out = capsys.readouterr().out
    assert "partition_without_leader" in out and "below_min_isr" in out


def test_of_each_log_the_leader_is_asked_and_who_is_out_of_sync(kafka):
    """No load that a cluster would feel: questions one by one with a pause between them, no record read."""
    (host, port) = kafka.bootstrap_servers.split(",")[0].rsplit(":", 1)
    watched = Watched()
    order = Watch(
        bootstrap=((host, int(port)),), access=Access(), seconds=2.0, per_second=100.0, topics=("we*", "none")
    )
    watch(order, watched)
    asked = [json.loads(event.detail)["asked"] for event in watched.events if event.cause == Question.LOG]
    logs = {(event.node, event.leader) for event in watched.events if event.cause == Question.LOG}
    assert asked and all(node == leader for node, leader in logs)
    assert {event.cause for event in watched.events} <= {*Question} - {
        Question.CONTENT,
        Question.OFFSET_RECORDS,
    }
    settings = {event.node for event in watched.events if event.cause == Question.SETTINGS}
    assert settings == {1, 2, 3} and watched.bytes > 0
    times = [event.time for event in watched.events]
    assert times == sorted(times) and watched.questions / 100 <= (times[-1] - times[0]) / 1e9 + 2


def test_offsets_are_compared_with_those_that_are_stored(kafka, doctor, tmp_path):
    """The last records of the group's partition are read, members by their client; nothing is told apart."""
    settings = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": "g", "client.id": "reader"}
    reader = Consumer(settings | {"auto.offset.reset": "earliest", "auto.commit.interval.ms": 100})
    reader.subscribe(["well"])
    assert reader.poll(PATIENCE_S) is not None
    reader.commit(asynchronous=False)
    more = ("--seconds", 3, "--requests-per-second", 500, "--record", tmp_path / "day")
    code, told = doctor(kafka, *more)
    reader.close()
    (trace,) = list(TraceStore.open(tmp_path / "day"))
    said = [json.loads(one.detail) for one in trace.events if one.cause == Question.OFFSET_RECORDS]
    assert (code, told["groups"], told["findings"]) == (0, ["g"], [])
    assert {(one["group"], one["of"][0], one["records"][-1][1]) for one in said} >= {("g", "well", 1)}
    groups = [json.loads(one.detail) for one in trace.events if one.cause == Question.GROUP]
    assert any(client.startswith("reader ") for one in groups for client in one["clients"].values())


def test_every_bootstrap_server_of_the_cluster_is_asked_who_is_there(monkeypatch):
    """A broker that is cut off is named by itself only; one of another cluster is none of ours."""
    ours = {1: ("a", 1), 2: ("b", 1)}
    answers = {("a", 1): ours, ("c", 1): {**ours, 3: ("c", 1)}, ("x", 1): {1: ("x", 1), 4: ("y", 1)}}

    async def look_around(bootstrap, access):
        if bootstrap[0] not in answers:
            raise EnvironmentError_(expected="a broker", seen="none", where="here")
        return answers[bootstrap[0]], None

    monkeypatch.setattr(live, "look_around", look_around)
    order = Watch(bootstrap=(*answers, ("gone", 1)), access=Access(), seconds=1.0, per_second=1.0)
    assert asyncio.run(live._addresses(order)) == {**ours, 3: ("c", 1)}


def test_an_address_is_that_of_the_broker_that_was_named_last():
    """Rule: who took the place of a broker does not answer for it."""
    links = Links({1: ("a", 1), 3: ("c", 1), 4: ("d", 1)})
    links.learn({1: ("a", 1), 2: ("b", 1), 5: ("c", 1)})
    assert links.addresses == {1: ("a", 1), 2: ("b", 1), 4: ("d", 1), 5: ("c", 1)}


def test_a_topic_that_there_is_not_is_said(kafka, doctor):
    """Exit code 3: a misspelt pattern is no healthy cluster."""
    code, told = doctor(kafka, "--seconds", 1, "--topic", "wel")
    assert (code, told["topics"]) == (3, []) and told["not_judged"][0] == "no topic is like wel"


def test_nothing_that_answers_is_one_sentence(capsys):
    """Exit code 2."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        assert run(["doctor", "--bootstrap", f"127.0.0.1:{taken.getsockname()[1]}", "--seconds", "1"]) == 2
    told = capsys.readouterr()
    assert "expected a Kafka broker that answers" in told.err and "Traceback" not in told.err


LOGIN = """
# a comment
security.protocol: SASL_PLAINTEXT
sasl.mechanism = SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\
    username="al\\\\"ice" \\
    password='s3=cret';
client.id=x
"""


def test_a_file_of_kafkas_own_tools_is_understood(tmp_path):
    """Java's format, with lines that go on and escapes."""
    file = tmp_path / "client.properties"
    file.write_text(LOGIN)
    access = access_of(file)
    assert (access.mechanism, access.user, access.password, access.tls) == (
        "SCRAM-SHA-512",
        'al"ice',
        "s3=cret",
        None,
    )
    file.write_text("security.protocol=SSL\nssl.endpoint.identification.algorithm=\n")
    tls = access_of(file).tls
    assert tls is not None and not tls.check_hostname
    assert access_of(None) == Access()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "sasl.oauthbearer.token.endpoint.url=https://x",
            "sasl.oauthbearer.token.endpoint.url, which is not",
        ),
        ("security.protocol=TLS", "PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ("security.protocol=SASL_SSL", "saw GSSAPI"),
        ("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN", 'sasl.jaas.config with username="..."'),
        ("security.protocol=SSL\nssl.truststore.location=a.jks", "keytool -exportcert -rfc"),
        ("security.protocol=SSL\nssl.ca.location=missing.pem", "expected the text of missing.pem"),
        ("security.protocol=SSL\nssl.truststore.certificates=x", "certificates in PEM"),
    ],
)
def test_what_is_not_understood_is_refused_by_name(tmp_path, text, says):
    """Rule: no setting of a login is passed over."""
    file = tmp_path / "client.properties"
    file.write_text(text)
    with pytest.raises(FencepostError) as raised:
        access_of(file)
    assert says in str(raised.value) and "saw" in str(raised.value)


def test_a_large_answer_lengthens_the_pause(kafka, monkeypatch):
    """Bytes are bounded as questions are: at 500 a second few of them are put, although a thousand may."""
    (host, port) = kafka.bootstrap_servers.split(",")[0].rsplit(":", 1)
    monkeypatch.setattr(live, "BYTES_PER_SECOND", 500)
    watched = Watched()
    order = Watch(bootstrap=((host, int(port)),), access=Access(), seconds=3.0, per_second=1_000.0)
    watch(order, watched)
    times = [event.time for event in watched.events]
    assert watched.rounds and watched.bytes <= 500 * ((times[-1] - times[0]) / 1e9 + 1) + 1_024
