"""The driver of librdkafka, through confluent-kafka."""

import time

import confluent_kafka
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, TIMESTAMP_NOT_AVAILABLE, KafkaError, KafkaException
from confluent_kafka import TopicPartition as Partition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic
from lines import (
    COMMON,
    CONSUMER,
    PRODUCER,
    Refused,
    bounded,
    decoded,
    encoded,
    happened,
    one_of,
    serve,
    setting,
)

NAMES = {
    "bootstrap": "bootstrap.servers",
    "client_id": "client.id",
    "metadata_max_age_ms": "metadata.max.age.ms",
    "retry_backoff_ms": "retry.backoff.ms",
    "request_timeout_ms": "socket.timeout.ms",
    "acks": "acks",
    "idempotence": "enable.idempotence",
    "in_flight": "max.in.flight.requests.per.connection",
    "linger_ms": "linger.ms",
    "batch_bytes": "batch.size",
    "batch_records": "batch.num.messages",
    "compression": "compression.type",
    "retries": "message.send.max.retries",
    "delivery_timeout_ms": "message.timeout.ms",
    "transactional_id": "transactional.id",
    "transaction_timeout_ms": "transaction.timeout.ms",
    "group": "group.id",
    "group_instance_id": "group.instance.id",
    "isolation": "isolation.level",
    "assignor": "partition.assignment.strategy",
    "auto_commit": "enable.auto.commit",
    "auto_commit_interval_ms": "auto.commit.interval.ms",
    "session_timeout_ms": "session.timeout.ms",
    "heartbeat_interval_ms": "heartbeat.interval.ms",
    "max_poll_interval_ms": "max.poll.interval.ms",
    "offset_reset": "auto.offset.reset",
    "fetch_max_wait_ms": "fetch.wait.max.ms",
    "fetch_min_bytes": "fetch.min.bytes",
    "fetch_max_bytes": "fetch.max.bytes",
}
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ASSIGNORS = ("range", "roundrobin", "cooperative-sticky")
VALUES = {
    "compression": CODECS,
    "assignor": ASSIGNORS,
    "acks": (0, 1, -1),
    "offset_reset": ("earliest", "latest", "none"),
}
PLACES = {-2: OFFSET_BEGINNING, -1: OFFSET_END}
COMMIT_S = 30


def error_of(error):
    """The name and number that librdkafka gives."""
    inner = error.args[0] if isinstance(error, KafkaException) and error.args else error
    if not isinstance(inner, KafkaError):
        return {"name": type(error).__name__, "text": str(error)}
    return {"name": inner.name(), "code": inner.code(), "text": inner.str(), "fatal": bool(inner.fatal())}


def properties(name, config, known):
    """In librdkafka's words, and what it does not have."""
    given, ignored = setting(config, [one for one in known if one in NAMES or one == "extra"])
    for what, values in VALUES.items():
        if what in given:
            one_of(given[what], dict.fromkeys(values), what)
    if given.get("offset_reset") == "none":
        given["offset_reset"] = "error"
    extra = given.pop("extra", {})
    made = {NAMES[what]: value for what, value in given.items()}

    def trouble(error):
        happened("trouble", name, error=error_of(error))

    return {**made, "error_cb": trouble, "log_level": 0, **extra}, ignored


def thrown(error):
    """Raise what was returned."""
    if error is not None:
        raise KafkaException(error)


class Producer:
    """confluent_kafka.Producer."""

    def __init__(self, name, config):
        made, self.ignored = properties(name, config, COMMON + PRODUCER)
        self.client = confluent_kafka.Producer(made)
        if config.get("transactional_id"):
            self.client.init_transactions(COMMIT_S)

    def idle(self):
        self.client.poll(0)

    def append(self, command, done):
        def delivered(error, message):
            if error is not None:
                done(KafkaException(error))
                return
            offset = message.offset()
            done(
                topic=message.topic(),
                partition=message.partition(),
                offset=-1 if offset is None else max(offset, -1),
            )

        optional = {} if command["partition"] is None else {"partition": command["partition"]}
        if command.get("timestamp_ms") is not None:
            optional["timestamp"] = command["timestamp_ms"]
        headers = [(name, decoded(value)) for name, value in command.get("headers") or ()]
        self.client.produce(
            command["topic"],
            decoded(command["value"]),
            decoded(command["key"]),
            headers=headers,
            on_delivery=delivered,
            **optional,
        )
        self.client.poll(0)

    def flush(self, command):
        left = self.client.flush(command.get("timeout_ms", 30_000) / 1000)
        if left:
            raise TimeoutError(f"{left} records are still in the queue")

    def close(self, command):
        self.client.flush(command.get("timeout_ms", 10_000) / 1000)

    def begin(self, command):
        self.client.begin_transaction()

    def commit_transaction(self, command):
        self.client.commit_transaction(COMMIT_S)

    def abort_transaction(self, command):
        self.client.abort_transaction(COMMIT_S)

    def send_offsets(self, command):
        consumer = Consumer.named.get(command["consumer"])
        if consumer is None:
            raise Refused("a consumer that is open", command["consumer"])
        offsets = [Partition(one["topic"], one["partition"], one["offset"]) for one in command["offsets"]]
        self.client.send_offsets_to_transaction(offsets, consumer.client.consumer_group_metadata(), COMMIT_S)


class Consumer:
    """confluent_kafka.Consumer."""

    named = {}  # noqa: RUF012 - every consumer of this process

    def __init__(self, name, config):
        made, self.ignored = properties(name, config, COMMON + CONSUMER)
        made.setdefault("group.id", f"{name}-alone")
        self.client, self.name, self.kept, self.handed = confluent_kafka.Consumer(made), name, [], {}
        self.named[name], self.rewinds = self, False
        self.cooperative = config.get("assignor") == "cooperative-sticky"

    def idle(self):
        """Nothing: librdkafka calls back from poll only."""

    def say(self, event):
        def listener(consumer, partitions):
            happened(
                event,
                self.name,
                partitions=[{"topic": one.topic, "partition": one.partition} for one in partitions],
                member=consumer.memberid() if event == "assigned" else None,
            )
            for one in partitions:
                self.handed.pop((one.topic, one.partition), None)
                self.kept = [
                    r for r in self.kept if (r["topic"], r["partition"]) != (one.topic, one.partition)
                ]
            if event == "assigned" and self.rewinds:
                begin = [Partition(one.topic, one.partition, OFFSET_BEGINNING) for one in partitions]
                (consumer.incremental_assign if self.cooperative else consumer.assign)(begin)

        return listener

    def subscribe(self, command):
        self.client.subscribe(
            command["topics"],
            on_assign=self.say("assigned"),
            on_revoke=self.say("revoked"),
            on_lost=self.say("lost"),
        )

    resubscribe = subscribe

    def rewind(self, command):
        self.rewinds = True

    def assign(self, command):
        where = [(one, PLACES.get(one["offset"], one["offset"])) for one in command["partitions"]]
        self.client.assign([Partition(one["topic"], one["partition"], offset) for one, offset in where])

    def poll(self, command):
        if not self.kept:
            messages = self.client.consume(min(command["max_records"], 1000), command["timeout_ms"] / 1000)
            failed = [one for one in messages if one.error() is not None]
            for one in failed:
                if one.error().code() != KafkaError._PARTITION_EOF:
                    happened("trouble", self.name, error=error_of(one.error()))
            self.kept = [self.shown(one) for one in messages if one.error() is None]
        records, self.kept = bounded(self.kept)
        for one in records:
            self.handed[one["topic"], one["partition"]] = one["offset"] + 1
        return {"records": records}

    def shown(self, one):
        kind, timestamp = one.timestamp()
        return {
            "topic": one.topic(),
            "partition": one.partition(),
            "offset": one.offset(),
            "key": encoded(one.key()),
            "value": encoded(one.value()),
            "headers": [[name, encoded(value)] for name, value in one.headers() or ()],
            "timestamp_ms": -1 if kind == TIMESTAMP_NOT_AVAILABLE else timestamp,
            "leader_epoch": -1 if one.leader_epoch() is None else one.leader_epoch(),
        }

    def seek(self, command):
        self.kept = [
            r for r in self.kept if (r["topic"], r["partition"]) != (command["topic"], command["partition"])
        ]
        offset = PLACES.get(command["offset"], command["offset"])
        self.client.seek(Partition(command["topic"], command["partition"], offset))

    def position(self, command):
        return {"offset": self.client.position([Partition(command["topic"], command["partition"])])[0].offset}

    def commit(self, command):
        offsets = command["offsets"]
        if offsets is None:
            offsets = [
                {"topic": key[0], "partition": key[1], "offset": next_} for key, next_ in self.handed.items()
            ]
        if not offsets:
            return {"offsets": []}
        asked = [Partition(one["topic"], one["partition"], one["offset"]) for one in offsets]
        said = self.client.commit(offsets=asked, asynchronous=command["mode"] == "async")
        for one in said or ():
            thrown(one.error)
        return {"reported": said is not None, "offsets": said and [self.place(one) for one in said]}

    @staticmethod
    def place(one):
        return {"topic": one.topic, "partition": one.partition, "offset": max(one.offset, -1)}

    def committed(self, command):
        asked = [Partition(one["topic"], one["partition"]) for one in command["partitions"]]
        return {"offsets": [self.place(one) for one in self.client.committed(asked, COMMIT_S)]}

    def close(self, command):
        self.named.pop(self.name, None)
        self.client.close()


class Admin:
    """confluent_kafka.admin.AdminClient."""

    def __init__(self, name, config):
        made, self.ignored = properties(name, config, COMMON)
        self.client = AdminClient(made)

    def idle(self):
        self.client.poll(0)

    def outcomes(self, futures):
        rows = []
        for name, future in futures.items():
            try:
                future.result(COMMIT_S)
                rows.append({"name": name, "error": None})
            except Exception as error:
                rows.append({"name": name, "error": error_of(error)})
        return {"topics": rows}

    def create_topics(self, command):
        made = [
            NewTopic(
                one["name"], one["partitions"], one["replication_factor"], config=one.get("config") or {}
            )
            for one in command["topics"]
        ]
        return self.outcomes(self.client.create_topics(made))

    def delete_topics(self, command):
        return self.outcomes(self.client.delete_topics(command["topics"]))

    def describe_topics(self, command):
        rows = []
        for name in command["topics"]:
            topic = self.client.list_topics(name, COMMIT_S).topics[name]
            shown = [{"partition": one.id, "leader": one.leader, "replicas": one.replicas, "isr": one.isrs}
                     for one in sorted(topic.partitions.values(), key=lambda one: one.id)]  # fmt: skip
            rows.append({"name": name, "error": topic.error and error_of(topic.error), "partitions": shown})
        return {"topics": rows}

    def describe_configs(self, command):
        (future,) = self.client.describe_configs([ConfigResource("TOPIC", command["topic"])]).values()
        return {"config": {name: entry.value for name, entry in future.result(COMMIT_S).items()}}

    def alter_configs(self, command):
        resource = ConfigResource("TOPIC", command["topic"], set_config=command["config"])
        (future,) = self.client.alter_configs([resource]).values()
        future.result(COMMIT_S)

    def close(self, command):
        time.sleep(0)


serve(
    {"producer": Producer, "consumer": Consumer, "admin": Admin},
    error_of,
    driver="confluent-kafka",
    library="librdkafka " + confluent_kafka.libversion()[0],
    version=confluent_kafka.__version__,
    codecs=CODECS,
    acks=(0, 1, -1),
    idempotence=True,
    transactions=True,
    assignors=ASSIGNORS,
    commit_modes=("sync", "async"),
    config=[*NAMES, "extra"],
)
