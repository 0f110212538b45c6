"""The bound of the record's disk, in front of Apache Kafka from its jars."""

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from disk_bound import judged_at_the_bound
from kafka_jars import VARIABLE, classpath, jars

from fencepost.proxy.record.values import Kept
from fencepost.proxy.server.recording_proxy import WhenFull

pytestmark = pytest.mark.skipif(
    classpath() is None, reason=f"Apache Kafka's jars: ${VARIABLE} names no class path"
)


@pytest.mark.timeout(900)
def test_recording_or_traffic_stops_at_the_bound(tmp_path):
    """Rule: with stop-traffic the log of Apache Kafka holds nothing that is not in the record; with
    stop-recording the client's records all arrive."""
    with jars(tmp_path / "kafka", classpath()) as kafka:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
        for when_full in WhenFull:
            topic = f"full-{when_full}"
            admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(120)
            judged_at_the_bound(kafka.bootstrap, tmp_path / topic, topic, when_full, Kept.HASH)
