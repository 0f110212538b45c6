"""The second version of transactions (KIP-890) and what operators ask of transactions (KIP-664), over Kafka's
protocol."""

import struct

import pytest
from kafka import KafkaAdminClient, TopicPartition

import fencepost.kafka
from fencepost.torture.driver_process import Driver
from fencepost.torture.protocol import encoded
from fencepost.traces.events import Name
from fencepost.traces.plan import TransactionOptions
from fencepost.wire.codec import write_request
from tests.kafka.clients import PATIENCE_S
from tests.kafka.transaction_session import ID, PARTITION, TOPIC, Connection, Session
from tests.torture.built_client import built_or_skipped

DESCRIBE_PRODUCERS, DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS, API_VERSIONS = 61, 65, 66, 18


def cluster(version):
    """One broker with transactions."""
    options = TransactionOptions(state_topic_partitions=1, abort_check_ms=200, version=version)
    return fencepost.kafka.cluster(brokers=1, transactions=options)


def port_of(kafka):
    """Of the only broker."""
    return int(kafka.bootstrap_servers.rpartition(":")[2])


def connection(kafka):
    """Speaks the newest version of what is asked here."""
    return Connection(
        port_of(kafka),
        {DESCRIBE_PRODUCERS: 0, DESCRIBE_TRANSACTIONS: 0, LIST_TRANSACTIONS: 1, API_VERSIONS: 3},
    )


@pytest.fixture(scope="module")
def driver():
    """Java's client; skipped by name without Maven and a JDK."""
    built = built_or_skipped("kafka-clients")
    with Driver.start(built) as started:
        yield started


def opened(driver, kafka, client):
    """A transactional producer; one of this name before is closed."""
    config = {"bootstrap": kafka.bootstrap_servers, "transactional_id": "java"}
    return driver.call("open", client, role="producer", config=config)


def transaction(driver, client, values, commit):
    """One transaction with these values in t-0."""
    driver.call("begin", client)
    sent = [
        driver.send("append", client, topic="t", partition=0, key=None, value=encoded(b"%d" % n), headers=[])
        for n in values
    ]
    assert driver.wait(sent)
    driver.call("commit_transaction" if commit else "abort_transaction", client)


@pytest.mark.parametrize("version", [1, 2])
def test_javas_producer_uses_the_version_that_is_announced(driver, version):
    """Rule (KIP-890): with transaction.version 2 it adds nothing itself, and goes on in the epoch of each
    answer to EndTxn; with 1 it keeps its epoch. Readers of committed records see the same."""
    client = f"p{version}"
    with cluster(version) as kafka:
        kafka.create_topic("t", partitions=1)
        opened(driver, kafka, client)
        for nth, commit in enumerate((True, False, True)):
            transaction(driver, client, range(2 * nth, 2 * nth + 2), commit)
        driver.call("close", client, timeout_ms=10_000)
        driver.call(
            "open",
            f"c{version}",
            role="consumer",
            config={
                "bootstrap": kafka.bootstrap_servers,
                "offset_reset": "earliest",
                "isolation": "read_committed",
            },
        )
        driver.call("assign", f"c{version}", partitions=[{"topic": "t", "partition": 0, "offset": -2}])
        read: list[str] = []
        for _ in range(int(PATIENCE_S)):
            polled = driver.call("poll", f"c{version}", timeout_ms=500, max_records=500)
            read += [row["value"] for row in polled["records"]]
            if len(read) >= 4:
                break
        assert read == [encoded(b"%d" % value) for value in (0, 1, 4, 5)]
        trace = kafka.end()
        ends = [
            event.detail.split('"producer_epoch":')[1].split(",")[0]
            for event in trace.events
            if event.name is Name.TRANSACTION_PHASE and event.cause.startswith("Complete")
        ]
        assert ends == (["1", "2", "3"] if version == 2 else ["0", "0", "0"])
        assert kafka.verdict().decision.value == "ok"


@pytest.mark.parametrize("version", [1, 2])
def test_the_feature_is_announced(version):
    """Rule (KIP-584): what every client of the second version looks for; a cluster of the first has no
    feature, as one with ZooKeeper."""
    with cluster(version) as kafka:
        line = connection(kafka)
        names = {"client_software_name": "test", "client_software_version": "1"}
        answer = line.ask(API_VERSIONS, line.make(API_VERSIONS, **names))
        line.close()
    found = [
        (each.name, each.min_version_level, each.max_version_level) for each in answer.finalized_features
    ]
    assert found == ([("transaction.version", 2, 2)] if version == 2 else [])
    assert answer.finalized_features_epoch == (0 if version == 2 else -1)


def test_transactions_and_producers_are_described():
    """Rule (KIP-664): an open transaction with its partitions and its first offset; what is not there; and
    filters."""
    with cluster(2) as kafka:
        session, line = Session(port_of(kafka), True), connection(kafka)
        make = line.make
        try:
            session.begin()
            session.write(1)
            asked = make(DESCRIBE_TRANSACTIONS, transactional_ids=(ID, "no", ""))
            states = line.ask(DESCRIBE_TRANSACTIONS, asked).transaction_states
            mine, unknown, empty = states
            assert (mine.error_code.name, mine.transaction_state) == ("none", "Ongoing")
            assert [(each.topic, each.partitions) for each in mine.topics] == [(TOPIC, (PARTITION,))]
            assert (mine.producer_id, mine.producer_epoch) == (session.producer_id, session.epoch)
            assert mine.transaction_timeout.total_seconds() == 60
            assert unknown.error_code.name == "transactional_id_not_found"
            assert empty.error_code.name == "invalid_request"
            assert producers(line, 0)[0].current_txn_start_offset == 0
            session.end(session.end_request(commit=True))
            session.write(2)
            session.end(session.end_request(commit=False))
            (one,) = producers(line, 0)
            assert (one.producer_id, one.producer_epoch) == (session.producer_id, 2)
            assert (one.current_txn_start_offset, one.coordinator_epoch, one.last_sequence) == (-1, 0, -1)
            assert producers(line, 7) == "unknown_topic_or_partition"
            known = (ID, session.producer_id, "CompleteAbort")
            assert listed(line) == ([known], ())
            assert listed(line, state_filters=("CompleteAbort", "Odd")) == ([known], ("Odd",))
            assert listed(line, state_filters=("Ongoing",)) == ([], ())
            assert listed(line, producer_id_filters=(session.producer_id + 1,)) == ([], ())
            assert listed(line, duration_filter=3_600_000) == ([], ())
        finally:
            session.close()
            line.close()


def test_kafka_python_lists_and_describes_them():
    """Rule (KIP-664): as a client that somebody else wrote reads it."""
    with cluster(2) as kafka:
        session = Session(port_of(kafka), True)
        client = KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)
        try:
            session.begin()
            session.write(1)
            assert ID in str(client.list_transactions())
            described = str(client.describe_transactions([ID]))
            assert "Ongoing" in described and f"'{TOPIC}'" in described
            assert str(session.producer_id) in str(
                client.describe_producers([TopicPartition(TOPIC, PARTITION)])
            )
        finally:
            client.close()
            session.close()


def test_an_id_without_a_transaction_is_described():
    """Rule (KIP-664): its transaction has no time of a start, which is -1."""
    with cluster(2) as kafka:
        session, line = Session(port_of(kafka), True), connection(kafka)
        try:
            session.begin()
            asked = line.make(DESCRIBE_TRANSACTIONS, transactional_ids=(ID,))
            (mine,) = raw_states(line, asked)
            assert mine == -1
        finally:
            session.close()
            line.close()


def raw_states(line, asked):
    """The start times in the bytes of an answer: kio does not read a time of -1."""
    listed(line)  # connects
    line.line.sendall(write_request(7, "raw", asked))
    size = int.from_bytes(line._exactly(4), "big")
    data = line._exactly(size)
    at = data.index(b"Empty") + len(b"Empty")
    return struct.unpack_from(">q", data, at + 4)


def producers(line, partition):
    """Those of a partition, or the error."""
    topic = {"name": TOPIC, "partition_indexes": (partition,)}
    answer = line.ask(DESCRIBE_PRODUCERS, line.make(DESCRIBE_PRODUCERS, topics=(topic,)))
    (found,) = answer.topics[0].partitions
    return found.active_producers if found.error_code.name == "none" else found.error_code.name


def listed(line, **filters):
    """The transactions, and the states that nobody knows."""
    answer = line.ask(LIST_TRANSACTIONS, line.make(LIST_TRANSACTIONS, **filters))
    rows = [
        (each.transactional_id, each.producer_id, each.transaction_state)
        for each in answer.transaction_states
    ]
    return rows, answer.unknown_state_filters
