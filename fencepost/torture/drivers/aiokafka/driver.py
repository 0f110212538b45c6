"""The driver of aiokafka. Its event loop has a thread of its own."""

import asyncio
import logging
import threading

import aiokafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener
from aiokafka import TopicPartition as Partition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import for_code
from lines import Refused, bounded, decoded, encoded, happened, one_of, serve, setting

logging.disable(logging.CRITICAL)
COMMON = {"bootstrap": "bootstrap_servers", **{one: one for one in (
    "client_id", "request_timeout_ms", "metadata_max_age_ms", "retry_backoff_ms")}}  # fmt: skip
PRODUCER = {
    **COMMON,
    "acks": "acks",
    "idempotence": "enable_idempotence",
    "linger_ms": "linger_ms",
    "batch_bytes": "max_batch_size",
    "compression": "compression_type",
    "transactional_id": "transactional_id",
    "transaction_timeout_ms": "transaction_timeout_ms",
}
CONSUMER = {
    **COMMON,
    "group": "group_id",
    "group_instance_id": "group_instance_id",
    "isolation": "isolation_level",
    "assignor": "partition_assignment_strategy",
    "auto_commit": "enable_auto_commit",
    "offset_reset": "auto_offset_reset",
    **{
        one: one
        for one in (
            "auto_commit_interval_ms",
            "session_timeout_ms",
            "heartbeat_interval_ms",
            "max_poll_interval_ms",
            "fetch_max_wait_ms",
            "fetch_min_bytes",
            "fetch_max_bytes",
            "max_poll_records",
        )
    },
}
CODECS = {"none": None, "gzip": "gzip", "snappy": "snappy", "lz4": "lz4", "zstd": "zstd"}
ASSIGNORS = {
    "range": [RangePartitionAssignor],
    "roundrobin": [RoundRobinPartitionAssignor],
    "sticky": [StickyPartitionAssignor],
}
loop = asyncio.new_event_loop()
threading.Thread(target=loop.run_forever, daemon=True).start()


def run(coroutine):
    """Wait for it, in the thread of a client."""
    return asyncio.run_coroutine_threadsafe(coroutine, loop).result()


async def made(kind, *arguments, **options):
    """Some of its classes want to be made inside of the loop."""
    client = kind(*arguments, **options)
    try:
        await client.start()
    except BaseException:
        await (client.close if kind is AIOKafkaAdminClient else client.stop)()
        raise
    return client


def error_of(error):
    """The name and number of its exceptions."""
    return {"name": type(error).__name__, "code": getattr(error, "errno", None), "text": str(error)}


def configuration(config, names):
    """In aiokafka's words, and what it does not have."""
    given, ignored = setting(config, names)
    options = {names[name]: value for name, value in given.items()}
    if "compression" in given:
        options["compression_type"] = one_of(given["compression"], CODECS, "codec")
    if "assignor" in given:
        options["partition_assignment_strategy"] = one_of(given["assignor"], ASSIGNORS, "assignor")
    return options, ignored


class Producer:
    """aiokafka.AIOKafkaProducer."""

    def __init__(self, name, config):
        options, self.ignored = configuration(config, PRODUCER)
        self.client = run(made(AIOKafkaProducer, **options))

    def idle(self):
        """Nothing."""

    def append(self, command, done):
        headers = [(name, decoded(value)) for name, value in command.get("headers") or ()]

        def delivered(future):
            if future.cancelled() or future.exception() is not None:
                done(asyncio.CancelledError("cancelled") if future.cancelled() else future.exception())
                return
            said = future.result()
            where = (
                {"offset": -1}
                if said is None
                else {"topic": said.topic, "partition": said.partition, "offset": said.offset}
            )
            done(**where)

        async def send():
            future = await self.client.send(
                command["topic"],
                decoded(command["value"]),
                decoded(command["key"]),
                partition=command["partition"],
                timestamp_ms=command.get("timestamp_ms"),
                headers=headers or None,
            )
            future.add_done_callback(delivered)

        run(send())

    def flush(self, command):
        run(asyncio.wait_for(self.client.flush(), command.get("timeout_ms", 30_000) / 1000))

    def close(self, command):
        run(self.client.stop())

    def begin(self, command):
        run(self.client.begin_transaction())

    def commit_transaction(self, command):
        run(self.client.commit_transaction())

    def abort_transaction(self, command):
        run(self.client.abort_transaction())

    def send_offsets(self, command):
        consumer = Consumer.named.get(command["consumer"])
        if consumer is None:
            raise Refused("a consumer that is open", command["consumer"])
        offsets = {Partition(one["topic"], one["partition"]): one["offset"] for one in command["offsets"]}
        run(self.client.send_offsets_to_transaction(offsets, consumer.group))


class Listener(ConsumerRebalanceListener):
    """Says what was assigned and revoked."""

    def __init__(self, client):
        self.client = client

    def on_partitions_assigned(self, assigned):
        self.say("assigned", assigned)
        for one in assigned if self.client.rewinds else ():
            self.client.client.seek(one, 0)

    def on_partitions_revoked(self, revoked):
        self.say("revoked", revoked)

    def say(self, event, partitions):
        where = [{"topic": one.topic, "partition": one.partition} for one in partitions]
        happened(event, self.client.name, partitions=where)
        for one in partitions:
            self.client.forget((one.topic, one.partition))


class Consumer:
    """aiokafka.AIOKafkaConsumer."""

    named = {}  # noqa: RUF012 - every consumer of this process

    def __init__(self, name, config):
        options, self.ignored = configuration(config, CONSUMER)
        self.client, self.group = run(made(AIOKafkaConsumer, **options)), config.get("group")
        self.name, self.kept, self.handed, self.rewinds = name, [], {}, False
        self.named[name] = self

    def idle(self):
        """Nothing."""

    def forget(self, partition):
        self.handed.pop(partition, None)
        self.kept = [one for one in self.kept if (one["topic"], one["partition"]) != partition]

    def subscribe(self, command):
        async def subscribe():
            self.client.subscribe(command["topics"], listener=Listener(self))

        run(subscribe())

    resubscribe = subscribe

    def rewind(self, command):
        self.rewinds = True

    def assign(self, command):
        async def assign():
            self.client.assign([Partition(one["topic"], one["partition"]) for one in command["partitions"]])

        run(assign())
        for one in command["partitions"]:
            self.seek(one)

    def poll(self, command):
        if not self.kept:
            wanted = {"timeout_ms": command["timeout_ms"], "max_records": min(command["max_records"], 1000)}
            self.kept = [
                self.shown(one) for batch in run(self.client.getmany(**wanted)).values() for one in batch
            ]
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
            "leader_epoch": -1,
        }

    def seek(self, command):
        where = Partition(command["topic"], command["partition"])
        self.forget((where.topic, where.partition))

        async def seek():
            if command["offset"] >= 0:
                self.client.seek(where, command["offset"])
            else:
                await (self.client.seek_to_beginning if command["offset"] == -2 else self.client.seek_to_end)(
                    where
                )

        run(seek())

    def position(self, command):
        return {"offset": run(self.client.position(Partition(command["topic"], command["partition"])))}

    def commit(self, command):
        offsets = command["offsets"]
        if offsets is None:
            offsets = [
                {"topic": key[0], "partition": key[1], "offset": next_} for key, next_ in self.handed.items()
            ]
        if offsets:
            run(
                self.client.commit(
                    {Partition(one["topic"], one["partition"]): one["offset"] for one in offsets}
                )
            )
        return {"offsets": offsets}

    def committed(self, command):
        rows = []
        for one in command["partitions"]:
            offset = run(self.client.committed(Partition(one["topic"], one["partition"])))
            rows.append({**one, "offset": -1 if offset is None else offset})
        return {"offsets": rows}

    def close(self, command):
        self.named.pop(self.name, None)
        run(self.client.stop())


class Admin:
    """aiokafka.admin.AIOKafkaAdminClient."""

    def __init__(self, name, config):
        options, self.ignored = configuration(config, COMMON)
        self.client = run(made(AIOKafkaAdminClient, **options))

    def idle(self):
        """Nothing."""

    def outcomes(self, rows):
        return {
            "topics": [
                {"name": row[0], "error": error_of(for_code(row[1])()) if row[1] else None} for row in rows
            ]
        }

    def create_topics(self, command):
        topics = [
            NewTopic(
                one["name"], one["partitions"], one["replication_factor"], topic_configs=one.get("config")
            )
            for one in command["topics"]
        ]
        return self.outcomes(run(self.client.create_topics(topics)).topic_errors)

    def delete_topics(self, command):
        return self.outcomes(run(self.client.delete_topics(command["topics"])).topic_error_codes)

    def describe_topics(self, command):
        rows = []
        for topic in run(self.client.describe_topics(command["topics"])):
            shown = [
                {
                    "partition": one["partition"],
                    "leader": one["leader"],
                    "replicas": one["replicas"],
                    "isr": one["isr"],
                }
                for one in topic["partitions"]
            ]
            (row,) = self.outcomes([(topic["topic"], topic["error_code"])])["topics"]
            rows.append({**row, "partitions": sorted(shown, key=lambda one: one["partition"])})
        return {"topics": rows}

    def describe_configs(self, command):
        (said,) = run(
            self.client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, command["topic"])])
        )
        return {"config": {entry[0]: entry[1] for entry in said.resources[0][4]}}

    def alter_configs(self, command):
        run(
            self.client.alter_configs(
                [ConfigResource(ConfigResourceType.TOPIC, command["topic"], command["config"])]
            )
        )

    def close(self, command):
        run(self.client.close())


serve(
    {"producer": Producer, "consumer": Consumer, "admin": Admin},
    error_of,
    driver="aiokafka",
    library="aiokafka",
    version=aiokafka.__version__,
    codecs=list(CODECS),
    acks=(0, 1, -1),
    idempotence=True,
    transactions=True,
    assignors=list(ASSIGNORS),
    commit_modes=("sync",),
    config=list({**PRODUCER, **CONSUMER}),
)
