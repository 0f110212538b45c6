"""What admin clients ask for, judged: an embedded cluster does it without breaking a promise."""

import time

from attrs import evolve
from confluent_kafka import Consumer, ElectionType, Producer
from confluent_kafka import TopicPartition as Spot
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient
from wire_lab import BOUND_S, until

import fencepost.kafka
from fencepost.checkers import conformance
from fencepost.checkers.verdict import Decision
from fencepost.traces.events import OFFSET_DELETED, UNCLEAN_REQUESTED, Name


def done(futures):
    """All must succeed."""
    return [future.result(BOUND_S) for future in futures.values()]


def write(producer, topic, count, partitions=1):
    """Records, acknowledged."""
    for number in range(count):
        producer.produce(topic, b"%d" % number, partition=number % partitions)
    assert producer.flush(BOUND_S) == 0


def test_an_administered_cluster_keeps_its_promises():
    """Reassignments that change their mind and are cancelled, offsets and groups that are deleted, records
    that are deleted, partitions that are added, an unclean election by name, a topic that is deleted: all in
    one record, and no finding. Facts that only the administrator knows (what he deleted, that he allowed a
    loss) are in the record."""
    with fencepost.kafka.cluster(brokers=4) as cluster:
        server = {"bootstrap.servers": cluster.bootstrap_servers}
        client, producer = AdminClient(server), Producer(server | {"acks": "all"})
        other = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
        done(client.create_topics([NewTopic("t", 2, replica_assignment=[[1, 2], [2, 3]])]))
        done(client.create_topics([NewTopic("loss", 1, replica_assignment=[[2, 3]])]))
        write(producer, "t", 100, partitions=2)
        write(producer, "loss", 5)

        first, second = TopicPartition("t", 0), TopicPartition("t", 1)
        assert set(other.alter_partition_reassignments({first: [3, 4], second: [1, 4]}).values()) == {None}
        assert set(other.alter_partition_reassignments({first: [3, 4], second: [4, 2]}).values()) == {None}
        until(lambda: not other.list_partition_reassignments(), "the reassignments never end")
        placed = [part["replica_nodes"] for part in other.describe_topics(["t"])[0]["partitions"]]
        assert placed == [[3, 4], [4, 2]]

        consumer = Consumer(server | {"group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["t"])
        read = 0
        deadline = time.monotonic() + BOUND_S
        while read < 100:
            assert time.monotonic() < deadline, read
            read += len(consumer.consume(100, 0.5))
        consumer.commit(asynchronous=False)
        consumer.close()
        other.delete_group_offsets("g", [first])
        done(client.delete_consumer_groups(["g"]))

        cluster.crash(3)
        write(producer, "loss", 5)
        until(
            lambda: len(other.describe_topics(["loss"])[0]["partitions"][0]["isr_nodes"]) == 1,
            "the ISR stays",
        )
        cluster.crash(2)
        cluster.restart(3)

        def elected():
            ((_, error),) = (
                client.elect_leaders(ElectionType.UNCLEAN, [Spot("loss", 0)]).result(BOUND_S).items()
            )
            return error is None

        until(elected, "nobody leads")
        cluster.restart(2)
        cluster.wait_until_healthy()
        done(client.delete_records([Spot("t", 0, 10)]))
        done(client.create_partitions([NewPartitions("t", 4)]))
        done(client.delete_topics(["t"]))
        other.close()
        verdict, trace = cluster.verdict(), cluster.end()
    assert verdict.decision is Decision.OK, verdict.findings[:3]
    causes = {event.cause for event in trace.events if event.name in (Name.MARK, Name.GROUP_OFFSET_EXPIRED)}
    assert {UNCLEAN_REQUESTED, OFFSET_DELETED, "reassigned", "topic_deleted"} <= causes
    assert conformance.judge(trace).decision is Decision.OK
    unsaid = evolve(trace, events=tuple(event for event in trace.events if event.cause != UNCLEAN_REQUESTED))
    assert conformance.judge(unsaid).decision is Decision.ILLEGAL
