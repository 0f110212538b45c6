"""Other people's admin clients against a simulated cluster with real sockets: librdkafka's, kafka-python's,
aiokafka's."""

import asyncio
import time
from contextlib import contextmanager

import kafka
import pytest
from aiokafka import admin as aio
from aiokafka.admin.config_resource import ConfigResource as AioResource
from aiokafka.admin.config_resource import ConfigResourceType
from aiokafka.structs import TopicPartition as AioPartition
from confluent_kafka import (
    OFFSET_END,
    Consumer,
    ElectionType,
    KafkaError,
    KafkaException,
    Producer,
    TopicCollection,
)
from confluent_kafka import ConsumerGroupState as State
from confluent_kafka import ConsumerGroupTopicPartitions as GroupSpots
from confluent_kafka import TopicPartition as Spot
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
)
from kafka import TopicPartition
from kafka import errors as kafka_errors
from kafka.admin import KafkaAdminClient
from wire_lab import BOUND_S, until, wire_lab


@pytest.fixture(scope="module")
def lab():
    """One cluster for all; each test has topics of its own."""
    with wire_lab() as made:
        yield made


@pytest.fixture(scope="module")
def librdkafka(lab):
    """librdkafka's admin client."""
    return AdminClient({"bootstrap.servers": lab.bootstrap})


@contextmanager
def kafka_python(lab):
    """kafka-python's admin client."""
    client = KafkaAdminClient(bootstrap_servers=lab.bootstrap)
    try:
        yield client
    finally:
        client.close()


def done(futures):
    """What each future gives, by what it is of."""
    return {of: future.result(BOUND_S) for of, future in futures.items()}


def failed(futures):
    """The error of the only future."""
    (future,) = futures.values()
    with pytest.raises(KafkaException) as raised:
        future.result(BOUND_S)
    return raised.value.args[0]


def write(lab, topic, count, partition=0):
    """Records that every replica has."""
    producer = Producer({"bootstrap.servers": lab.bootstrap, "acks": "all"})
    for number in range(count):
        producer.produce(topic, b"%d" % number, partition=partition)
    assert producer.flush(BOUND_S) == 0


def until_shown(client, topic, partitions):
    """Wait until whichever broker is asked shows the topic with so many partitions, each in sync: brokers
    hear of changes one after another."""

    def shown():
        parts = client.list_topics(topic, BOUND_S).topics[topic].partitions.values()
        return len(parts) == partitions and all(part.isrs and part.leader > 0 for part in parts)

    for _ in range(3):  # librdkafka asks another broker each time
        until(shown, f"{topic} with {partitions} partitions")


@contextmanager
def member(lab, group, topic):
    """A consumer of a stable group."""
    config = {"bootstrap.servers": lab.bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    consumer = Consumer(config | {"enable.auto.commit": False, "client.id": "who"})
    consumer.subscribe([topic])
    try:
        until(lambda: consumer.poll(0.2) and consumer.assignment(), f"{group} is never assigned anything")
        yield consumer
    finally:
        consumer.close()


# ---- librdkafka


def test_librdkafka_creates_describes_grows_and_deletes_topics(lab, librdkafka):
    """As `kafka-topics` does it: what is created is there at once, what is deleted is not, and its name is
    free."""
    topic = NewTopic("rd", 2, 3, config={"retention.ms": "1000"})
    done(librdkafka.create_topics([topic]))
    until_shown(librdkafka, "rd", 2)
    (described,) = done(librdkafka.describe_topics(TopicCollection(["rd"]))).values()
    assert [len(part.replicas) for part in described.partitions] == [3, 3]
    assert all(part.leader.id in (1, 2, 3) and len(part.isr) == 3 for part in described.partitions)
    done(librdkafka.create_partitions([NewPartitions("rd", 3)]))
    until_shown(librdkafka, "rd", 3)
    write(lab, "rd", 1, partition=2)
    done(librdkafka.delete_topics(["rd"]))
    done(librdkafka.create_topics([NewTopic("rd", 1, 1)]))
    until_shown(librdkafka, "rd", 1)


def test_librdkafka_hears_why_not(librdkafka):
    """Kafka's error codes, with our sentence as their message."""
    done(librdkafka.create_topics([NewTopic("there", 1, 1)]))
    for topic, code, says in (
        (NewTopic("there", 1, 1), KafkaError.TOPIC_ALREADY_EXISTS, "one that exists"),
        (NewTopic("a b", 1, 1), KafkaError.TOPIC_EXCEPTION, "'a b'"),
        (NewTopic("new", 1, 4), KafkaError.INVALID_REPLICATION_FACTOR, "saw 4"),
        (NewTopic("new", 1, 1, config={"nonsense": "1"}), KafkaError.INVALID_CONFIG, "'nonsense'"),
        (NewTopic("new", 1, replica_assignment=[[1, 9]]), KafkaError.INVALID_REPLICA_ASSIGNMENT, "broker 9"),
    ):
        error = failed(librdkafka.create_topics([topic]))
        assert (error.code(), says in error.str()) == (code, True), error
    done(librdkafka.create_topics([NewTopic("new", 1, 1)], validate_only=True))
    assert "new" not in librdkafka.list_topics(timeout=BOUND_S).topics
    unknown = failed(librdkafka.delete_topics(["none"]))
    assert unknown.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    fewer = failed(librdkafka.create_partitions([NewPartitions("there", 1)]))
    assert fewer.code() == KafkaError.INVALID_PARTITIONS


def test_librdkafka_reads_and_changes_configurations(librdkafka):
    """Values with their sources; one by one, or all at once; a broker's are its own to tell."""
    done(librdkafka.create_topics([NewTopic("conf", 1, 1, config={"retention.ms": "1000"})]))
    resource = ConfigResource(ConfigResource.Type.TOPIC, "conf")

    def overridden():
        (config,) = done(librdkafka.describe_configs([resource])).values()
        assert len(config) > 15
        return {name: entry.value for name, entry in config.items() if entry.source == 1}

    assert overridden() == {"retention.ms": "1000"}
    change = ConfigResource(
        ConfigResource.Type.TOPIC,
        "conf",
        incremental_configs=[
            ConfigEntry("segment.ms", "77", incremental_operation=AlterConfigOpType.SET),
            ConfigEntry("retention.ms", None, incremental_operation=AlterConfigOpType.DELETE),
            ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.APPEND),
        ],
    )
    done(librdkafka.incremental_alter_configs([change]))
    assert overridden() == {"segment.ms": "77", "cleanup.policy": "compact,delete"}
    every = ConfigResource(ConfigResource.Type.TOPIC, "conf", set_config={"retention.bytes": "5000"})
    done(librdkafka.alter_configs([every]))
    assert overridden() == {"retention.bytes": "5000"}
    bad = ConfigResource(ConfigResource.Type.TOPIC, "conf", set_config={"retention.bytes": "x"})
    assert failed(librdkafka.alter_configs([bad])).code() == KafkaError.INVALID_CONFIG
    (broker,) = done(librdkafka.describe_configs([ConfigResource(ConfigResource.Type.BROKER, "2")])).values()
    assert (broker["broker.id"].value, broker["broker.id"].is_read_only) == ("2", True)
    own = broker["default.replication.factor"]
    assert (own.value, own.source, own.is_default) == ("3", ConfigSource.STATIC_BROKER_CONFIG.value, False)


def test_librdkafka_looks_after_groups(lab, librdkafka):
    """List, describe, read and move offsets, delete: while it has members, and after."""
    done(librdkafka.create_topics([NewTopic("grouped", 1, 3)]))
    write(lab, "grouped", 5)
    with member(lab, "rd-group", "grouped") as consumer:
        consumer.commit(offsets=[Spot("grouped", 0, 3)], asynchronous=False)
        (described,) = done(librdkafka.describe_consumer_groups(["rd-group"])).values()
        (one,) = described.members
        assert (described.state, described.partition_assignor) == (State.STABLE, "range")
        assert (one.client_id, one.host) == ("who", "/127.0.0.1")
        assert [(spot.topic, spot.partition) for spot in one.assignment.topic_partitions] == [("grouped", 0)]
        assert described.coordinator.id in (1, 2, 3)
        listed = librdkafka.list_consumer_groups(states={State.STABLE}).result(BOUND_S)
        assert "rd-group" in [group.group_id for group in listed.valid] and not listed.errors
        assert failed(librdkafka.delete_consumer_groups(["rd-group"])).code() == KafkaError.NON_EMPTY_GROUP
    request = [GroupSpots("rd-group")]
    (offsets,) = done(librdkafka.list_consumer_group_offsets(request)).values()
    assert [(spot.partition, spot.offset) for spot in offsets.topic_partitions] == [(0, 3)]
    done(librdkafka.alter_consumer_group_offsets([GroupSpots("rd-group", [Spot("grouped", 0, 1)])]))
    (offsets,) = done(librdkafka.list_consumer_group_offsets(request)).values()
    assert [spot.offset for spot in offsets.topic_partitions] == [1]
    done(librdkafka.delete_consumer_groups(["rd-group"]))
    assert failed(librdkafka.delete_consumer_groups(["rd-group"])).code() == KafkaError.GROUP_ID_NOT_FOUND
    listed = librdkafka.list_consumer_groups().result(BOUND_S)
    assert "rd-group" not in [group.group_id for group in listed.valid]


def test_librdkafka_deletes_records_elects_leaders_and_sees_the_cluster(lab, librdkafka):
    """What is left: low watermarks, elections that need not be, who is there."""
    done(librdkafka.create_topics([NewTopic("kept", 1, 3)]))
    write(lab, "kept", 5)
    (deleted,) = done(librdkafka.delete_records([Spot("kept", 0, 3)])).values()
    assert deleted.low_watermark == 3
    far = failed(librdkafka.delete_records([Spot("kept", 0, 9)]))
    assert far.code() == KafkaError.OFFSET_OUT_OF_RANGE
    (deleted,) = done(librdkafka.delete_records([Spot("kept", 0, OFFSET_END)])).values()
    assert deleted.low_watermark == 5
    outcome = librdkafka.elect_leaders(ElectionType.PREFERRED, [Spot("kept", 0)]).result(BOUND_S)
    (error,) = outcome.values()
    assert error.code() == KafkaError.ELECTION_NOT_NEEDED
    cluster = librdkafka.describe_cluster().result(BOUND_S)
    assert {node.id for node in cluster.nodes} == {1, 2, 3} and cluster.controller.id in (1, 2, 3)


# ---- kafka-python


def test_kafka_python_administers_topics_and_configurations(lab):
    """Its own encoding of the same requests; without numbers the brokers choose."""
    with kafka_python(lab) as client:
        client.create_topics(
            {"py": {"configs": {"retention.ms": "1000"}}, "py2": {"assignments": {0: [2, 1]}}}
        )

        def described():
            topics = {one["name"]: one["partitions"] for one in client.describe_topics(["py", "py2"])}
            return all(topics.values()) and topics

        found = until(described, "topics")  # each call may ask another broker
        assert len(found["py"]) == 1 and len(found["py"][0]["replica_nodes"]) == 3
        assert found["py2"][0]["replica_nodes"] == [2, 1]
        with pytest.raises(kafka_errors.TopicAlreadyExistsError):
            client.create_topics(["py"])
        client.create_partitions({"py": 3})
        resource = kafka.admin.ConfigResource("TOPIC", "py")
        config = client.describe_configs([resource], include_synonyms=True)["topic"]["py"]
        assert {name: each["value"] for name, each in config.items()} == {"retention.ms": "1000"}
        client.alter_configs([kafka.admin.ConfigResource("TOPIC", "py", {"segment.ms": "77"})])
        client.alter_configs(
            [kafka.admin.ConfigResource("TOPIC", "py", {"segment.bytes": "1000"})], incremental=False
        )
        config = client.describe_configs([resource])["topic"]["py"]
        assert {name: each["value"] for name, each in config.items()} == {
            "retention.ms": "1000", "segment.ms": "77", "segment.bytes": "1000",
        }  # fmt: skip
        brokers = client.describe_configs([kafka.admin.ConfigResource("BROKER", "1")], config_filter="all")
        assert brokers["broker"]["1"]["broker.id"]["value"] == "1"
        client.delete_topics(["py", "py2"])
        assert not {"py", "py2"} & {topic["name"] for topic in client.describe_topics()}


def test_kafka_python_moves_replicas(lab):
    """Reassignment by protocol: begun, listed, cancelled or completed; disks and leaders as they are then."""
    with kafka_python(lab) as client:
        client.create_topics({"moving": {"assignments": {0: [1, 2]}}})
        write(lab, "moving", 3)
        key = TopicPartition("moving", 0)
        assert client.alter_partition_reassignments({key: None}) == {
            key: kafka_errors.NoReassignmentInProgressError
        }
        assert client.alter_partition_reassignments({key: [3, 9]})[key] is (
            kafka_errors.InvalidReplicationAssignmentError
        )
        assert client.alter_partition_reassignments({key: [3, 2]}) == {key: None}
        until(lambda: not client.list_partition_reassignments(), "the reassignment never ends")
        (part,) = client.describe_topics(["moving"])[0]["partitions"]
        assert part["replica_nodes"] == [3, 2] and set(part["isr_nodes"]) == {3, 2}

        def held():
            return {
                each["broker"]: topic["partitions"][0]["partition_size"]
                for each in client.describe_log_dirs({"moving": [0]})
                for directory in each["log_dirs"]
                for topic in directory["topics"]
            }

        sizes = held()
        assert set(sizes) == {2, 3} and len(set(sizes.values())) == 1 and sizes[2] > 0
        if part["leader_id"] != 3:
            client.elect_leaders(0, {"moving": [0]})
        until(
            lambda: client.describe_topics(["moving"])[0]["partitions"][0]["leader_id"] == 3,
            "the preferred replica never leads",
        )
        assert client.delete_records({key: 2})[key]["low_watermark"] == 2


def test_kafka_python_looks_after_groups(lab, librdkafka):
    """Describe with what members subscribed to, delete offsets one by one, delete the group."""
    done(librdkafka.create_topics([NewTopic("py-grouped", 2, 1)]))
    write(lab, "py-grouped", 2)
    key = TopicPartition("py-grouped", 0)
    with kafka_python(lab) as client, member(lab, "py-group", "py-grouped") as consumer:
        consumer.commit(offsets=[Spot("py-grouped", 0, 2)], asynchronous=False)
        described = client.describe_groups(["py-group"])["py-group"]
        assert (described["group_state"], len(described["members"])) == ("Stable", 1)
        assert described["members"][0]["member_metadata"]["topics"] == ["py-grouped"]
        assert "py-group" in [group["group_id"] for group in client.list_groups(states_filter=["Stable"])]
        assert client.delete_group_offsets("py-group", [key]) == {
            key: kafka_errors.GroupSubscribedToTopicError
        }
    with kafka_python(lab) as client:
        until(
            lambda: client.describe_groups(["py-group"])["py-group"]["group_state"] == "Empty", "never empty"
        )
        assert client.delete_group_offsets("py-group", [key]) == {key: kafka_errors.NoError}
        assert client.describe_groups(["no-group"])["no-group"]["group_state"] == "Dead"
        client.delete_groups(["py-group"])
        assert "py-group" not in [group["group_id"] for group in client.list_groups()]


def test_kafka_python_sees_the_cluster(lab):
    """DescribeCluster."""
    with kafka_python(lab) as client:
        cluster = client.describe_cluster()
        assert {broker["broker_id"] for broker in cluster["brokers"]} == {1, 2, 3}
        assert cluster["controller_id"] in (1, 2, 3)


# ---- aiokafka


async def partitions_of(client, topic):
    (found,) = await client.describe_topics([topic])
    return len(found["partitions"])


async def listed(client, topic):
    return topic in await client.list_topics()


async def until_async(ask, wanted):
    """Ask again until the answer is the wanted one: brokers hear of changes one after another."""
    deadline = time.monotonic() + BOUND_S
    while (seen := await ask()) != wanted:
        assert time.monotonic() < deadline, seen
        await asyncio.sleep(0.02)


def test_aiokafka_administers(lab):
    """The lowest versions of most requests."""

    async def administer():
        client = aio.AIOKafkaAdminClient(bootstrap_servers=lab.bootstrap)
        await client.start()
        try:
            new = [aio.NewTopic("aio", 1, 3, topic_configs={"retention.ms": "1000"})]
            created = await client.create_topics(new)
            assert [tuple(each)[:2] for each in created.topic_errors] == [("aio", 0)]
            again = await client.create_topics(new)
            assert [tuple(each)[:2] for each in again.topic_errors] == [("aio", 36)]
            await client.create_partitions({"aio": aio.NewPartitions(2)})
            await until_async(
                lambda: partitions_of(client, "aio"), 2
            )  # whichever broker is asked hears of it
            resource = AioResource(ConfigResourceType.TOPIC, "aio", None)
            (found,) = await client.describe_configs([resource])
            values = {entry[0]: entry[1] for entry in found.resources[0][4]}
            assert values["retention.ms"] == "1000"
            change = AioResource(ConfigResourceType.TOPIC, "aio", {"segment.ms": "77"})
            (altered,) = await client.alter_configs([change])
            assert altered.resources[0][0] == 0
            write(lab, "aio", 4)
            key = AioPartition("aio", 0)
            low = await client.delete_records({key: aio.RecordsToDelete(before_offset=3)})
            assert low == {key: 3}
            groups = await client.list_consumer_groups()
            assert all(len(group) >= 2 for group in groups)
            cluster = await client.describe_cluster()
            assert len(cluster["brokers"]) == 3
            await client.delete_topics(["aio"])
            await until_async(lambda: listed(client, "aio"), False)
        finally:
            await client.close()

    asyncio.run(asyncio.wait_for(administer(), BOUND_S))


# ---- topics that create themselves


@pytest.mark.parametrize("brokers", [1, 3])
def test_a_producer_to_a_new_topic_creates_it(brokers):
    """auto.create.topics.enable: with the brokers' defaults, for a producer that does not ask first; a
    consumer of librdkafka does not create what it subscribes to, nor does anybody where the option is off."""
    with wire_lab(brokers=brokers, num_partitions=2) as lab:
        write(lab, "made", 3)
        client = AdminClient({"bootstrap.servers": lab.bootstrap})
        found = client.list_topics("made", BOUND_S).topics["made"].partitions
        assert [len(part.replicas) for part in found.values()] == [min(3, brokers)] * 2
        assert "other" not in client.list_topics(timeout=BOUND_S).topics


def test_no_topic_creates_itself_where_the_option_is_off():
    """auto.create.topics.enable=false."""
    with wire_lab(brokers=1, auto_create_topics_enable=False) as lab:
        client = AdminClient({"bootstrap.servers": lab.bootstrap, "allow.auto.create.topics": True})
        with kafka_python(lab) as other:
            assert client.list_topics("made", BOUND_S).topics["made"].error is not None
            assert "made" not in {topic["name"] for topic in other.describe_topics()}
