"""The driver of kafka-python."""

import importlib
import logging

import kafka
from kafka import ConsumerRebalanceListener, KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka import TopicPartition as Partition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import for_code
from kafka.structs import OffsetAndMetadata
from lines import COMMON, CONSUMER, PRODUCER, bounded, decoded, encoded, happened, one_of, serve, setting

logging.disable(logging.CRITICAL)
NAMES = {
    "bootstrap": "bootstrap_servers",
    "idempotence": "enable_idempotence",
    "batch_bytes": "batch_size",
    "in_flight": "max_in_flight_requests_per_connection",
    "compression": "compression_type",
    "group": "group_id",
    "group_instance_id": "group_instance_id",
    "isolation": "isolation_level",
    "assignor": "partition_assignment_strategy",
    "auto_commit": "enable_auto_commit",
    "offset_reset": "auto_offset_reset",
}
PLACES = {"range": "range.RangePartitionAssignor", "roundrobin": "roundrobin.RoundRobinPartitionAssignor",
          "sticky": "sticky.sticky_assignor.StickyPartitionAssignor",
          "cooperative-sticky": "cooperative_sticky.CooperativeStickyAssignor"}  # fmt: skip
ASSIGNORS = {}
for name, place in PLACES.items():
    module, kind = place.rsplit(".", 1)
    try:
        ASSIGNORS[name] = [getattr(importlib.import_module("kafka.coordinator.assignors." + module), kind)]
    except ImportError:
        continue
CODECS = {"none": None, "gzip": "gzip", "snappy": "snappy", "lz4": "lz4", "zstd": "zstd"}
WAIT_MS = 30_000


def error_of(error):
    """The name and number of its exceptions."""
    return {"name": type(error).__name__, "code": getattr(error, "errno", None), "text": str(error)}


def configuration(config, known, defaults):
    """In kafka-python's words, and what this version does not have."""
    have = [one for one in known if NAMES.get(one, one) in defaults]
    given, ignored = setting(config, have)
    made = {NAMES.get(name, name): value for name, value in given.items()}
    made["bootstrap_servers"] = given["bootstrap"].split(",")
    if "compression" in given:
        made["compression_type"] = one_of(given["compression"], CODECS, "codec")
    if "assignor" in given:
        made["partition_assignment_strategy"] = one_of(given["assignor"], ASSIGNORS, "assignor")
    return made, ignored


class Producer:
    """kafka.KafkaProducer."""

    def __init__(self, name, config):
        made, self.ignored = configuration(config, COMMON + PRODUCER, KafkaProducer.DEFAULT_CONFIG)
        self.client = KafkaProducer(**made)
        if config.get("transactional_id"):
            self.client.init_transactions()

    def idle(self):
        """Nothing: it has a thread of its own."""

    def append(self, command, done):
        headers = [(name, decoded(value)) for name, value in command.get("headers") or ()]
        future = self.client.send(
            command["topic"],
            value=decoded(command["value"]),
            key=decoded(command["key"]),
            headers=headers or None,
            partition=command["partition"],
            timestamp_ms=command.get("timestamp_ms"),
        )
        future.add_callback(lambda said: done(topic=said.topic, partition=said.partition, offset=said.offset))
        future.add_errback(done)

    def flush(self, command):
        self.client.flush(command.get("timeout_ms", WAIT_MS) / 1000)

    def close(self, command):
        self.client.close(command.get("timeout_ms", 10_000) / 1000)

    def begin(self, command):
        self.client.begin_transaction()

    def commit_transaction(self, command):
        self.client.commit_transaction()

    def abort_transaction(self, command):
        self.client.abort_transaction()


class Listener(ConsumerRebalanceListener):
    """Says what was assigned and revoked."""

    def __init__(self, client):
        self.client = client

    def on_partitions_assigned(self, assigned):
        self.say("assigned", assigned)

    def on_partitions_revoked(self, revoked):
        self.say("revoked", revoked)

    def on_partitions_lost(self, lost):
        self.say("lost", lost)

    def say(self, event, partitions):
        where = [{"topic": one.topic, "partition": one.partition} for one in partitions]
        happened(event, self.client.name, partitions=where)
        for one in partitions:
            self.client.forget((one.topic, one.partition))
        for one in partitions if event == "assigned" and self.client.rewinds else ():
            self.client.client.seek(one, 0)


class Consumer:
    """kafka.KafkaConsumer."""

    def __init__(self, name, config):
        made, self.ignored = configuration(config, COMMON + CONSUMER, KafkaConsumer.DEFAULT_CONFIG)
        self.client, self.name, self.kept, self.handed = KafkaConsumer(**made), name, [], {}
        self.rewinds = False

    def idle(self):
        """Nothing: heartbeats have a thread of their own, all else happens in poll."""

    def forget(self, partition):
        self.handed.pop(partition, None)
        self.kept = [one for one in self.kept if (one["topic"], one["partition"]) != partition]

    def subscribe(self, command):
        self.client.subscribe(command["topics"], listener=Listener(self))

    resubscribe = subscribe

    def rewind(self, command):
        self.rewinds = True

    def assign(self, command):
        self.client.assign([Partition(one["topic"], one["partition"]) for one in command["partitions"]])
        for one in command["partitions"]:
            self.seek(one)

    def poll(self, command):
        if not self.kept:
            batches = self.client.poll(command["timeout_ms"], max_records=min(command["max_records"], 1000))
            self.kept = [self.shown(one) for batch in batches.values() for one in batch]
        records, self.kept = bounded(self.kept)
        for one in records:
            self.handed[one["topic"], one["partition"]] = one["offset"] + 1
        return {"records": records}

    def shown(self, one):
        return {
            "topic": one.topic,
            "partition": one.partition,
            "offset": one.offset,
            "key": encoded(one.key),
            "value": encoded(one.value),
            "headers": [[name, encoded(value)] for name, value in one.headers],
            "timestamp_ms": one.timestamp,
            "leader_epoch": getattr(one, "leader_epoch", -1),
        }

    def seek(self, command):
        where = Partition(command["topic"], command["partition"])
        self.forget((where.topic, where.partition))
        if command["offset"] >= 0:
            self.client.seek(where, command["offset"])
        else:
            (self.client.seek_to_beginning if command["offset"] == -2 else self.client.seek_to_end)(where)

    def position(self, command):
        return {"offset": self.client.position(Partition(command["topic"], command["partition"]))}

    def commit(self, command):
        offsets = command["offsets"]
        if offsets is None:
            offsets = [
                {"topic": key[0], "partition": key[1], "offset": next_} for key, next_ in self.handed.items()
            ]
        made = {Partition(one["topic"], one["partition"]): self.metadata(one["offset"]) for one in offsets}
        if command["mode"] == "sync":
            self.client.commit(made)
        else:
            self.client.commit_async(made)
        return {"reported": command["mode"] == "sync", "offsets": offsets}

    @staticmethod
    def metadata(offset):
        return OffsetAndMetadata(*([offset, "", -1][: len(OffsetAndMetadata._fields)]))

    def committed(self, command):
        rows = []
        for one in command["partitions"]:
            offset = self.client.committed(Partition(one["topic"], one["partition"]))
            rows.append({**one, "offset": -1 if offset is None else offset})
        return {"offsets": rows}

    def close(self, command):
        self.client.close()


class Admin:
    """kafka.KafkaAdminClient."""

    def __init__(self, name, config):
        made, self.ignored = configuration(config, COMMON, KafkaAdminClient.DEFAULT_CONFIG)
        self.client = KafkaAdminClient(**made)

    def idle(self):
        """Nothing."""

    def outcomes(self, rows):
        return {
            "topics": [
                {
                    "name": one["name"],
                    "error": error_of(for_code(one["error_code"])()) if one["error_code"] else None,
                }
                for one in rows
            ]
        }

    def create_topics(self, command):
        made = {
            one["name"]: {
                "num_partitions": one["partitions"],
                "replication_factor": one["replication_factor"],
                "configs": one.get("config") or {},
            }
            for one in command["topics"]
        }
        return self.outcomes(self.client.create_topics(made, raise_errors=False)["topics"])

    def delete_topics(self, command):
        return self.outcomes(self.client.delete_topics(command["topics"], raise_errors=False)["topics"])

    def describe_topics(self, command):
        rows = []
        for topic in self.client.describe_topics(command["topics"]):
            shown = [
                {
                    "partition": one["partition_index"],
                    "leader": one["leader_id"],
                    "replicas": one["replica_nodes"],
                    "isr": one["isr_nodes"],
                }
                for one in topic["partitions"]
            ]
            rows.append(
                {
                    **self.outcomes([topic])["topics"][0],
                    "partitions": sorted(shown, key=lambda p: p["partition"]),
                }
            )
        return {"topics": rows}

    def describe_configs(self, command):
        resource = ConfigResource(ConfigResourceType.TOPIC, command["topic"])
        shown = self.client.describe_configs([resource], config_filter="all")["topic"][command["topic"]]
        return {"config": {name: one["value"] for name, one in shown.items()}}

    def alter_configs(self, command):
        self.client.alter_configs(
            [ConfigResource(ConfigResourceType.TOPIC, command["topic"], command["config"])]
        )

    def close(self, command):
        self.client.close()


serve(
    {"producer": Producer, "consumer": Consumer, "admin": Admin},
    error_of,
    driver="kafka-python",
    library="kafka-python",
    version=kafka.__version__,
    codecs=list(CODECS),
    acks=(0, 1, -1),
    assignors=list(ASSIGNORS),
    idempotence="enable_idempotence" in KafkaProducer.DEFAULT_CONFIG,
    transactions=hasattr(KafkaProducer, "begin_transaction"),
    commit_modes=("sync", "async"),
    config=[
        one
        for one in COMMON + PRODUCER + CONSUMER
        if NAMES.get(one, one) in {**KafkaProducer.DEFAULT_CONFIG, **KafkaConsumer.DEFAULT_CONFIG}
    ],
)
