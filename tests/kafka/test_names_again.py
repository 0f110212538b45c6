"""A test of somebody's service that deletes its topic and its group, and uses their names again."""

import confluent_kafka as ck
import confluent_kafka.admin

from fencepost.checkers import invariants
from fencepost.kafka import cluster

PATIENCE_S = 600
"""On a crowded machine."""


def test_a_topic_and_a_group_are_deleted_and_created_again() -> None:
    """A real client deletes both after each round. The cluster is correct; the invariants would convict it if
    each topic had not a name of its own."""
    with cluster(brokers=3) as kafka:
        servers = {"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0}
        admin = ck.admin.AdminClient(servers)
        for count in (30, 10, 20):
            kafka.create_topic("orders", partitions=2)
            producer = ck.Producer(servers)
            for number in range(count):
                producer.produce("orders", b"%d of %d" % (number, count))
            producer.flush(PATIENCE_S)
            consumer = ck.Consumer({**servers, "group.id": "g", "auto.offset.reset": "earliest"})
            consumer.subscribe(["orders"])
            got = 0
            while got < count:
                got += sum(message.error() is None for message in consumer.consume(100, 0.2))
            consumer.close()
            admin.delete_consumer_groups(["g"])["g"].result(PATIENCE_S)
            admin.delete_topics(["orders"])["orders"].result(PATIENCE_S)
            kafka.until(lambda: "orders" not in admin.list_topics(timeout=PATIENCE_S).topics)
        kafka.assert_ok()
        assert invariants.judge(kafka.trace()).findings
