"""The producer."""

from contextlib import suppress

import confluent_kafka
from confluent_kafka import KafkaException
from confluent_kafka import TopicPartition as Partition
from consumer import Consumer
from library import COMMIT_S, properties
from lines import COMMON, PRODUCER, Refused, decoded


class Producer:
    """confluent_kafka.Producer."""

    def __init__(self, name, config):
        made, self.ignored = properties(name, config, COMMON + PRODUCER)
        self.client = confluent_kafka.Producer(made)
        if config.get("transactional_id"):
            self.client.init_transactions(COMMIT_S)

    def idle(self):
        with suppress(KafkaException):  # a fatal error, which each append reports, too
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
        self.idle()

    def flush(self, command):
        left = self.client.flush(command.get("timeout_ms", 30_000) / 1000)
        if left:
            raise TimeoutError(f"{left} records are still in the queue")

    def cancel(self, command):
        """What waits in its queue is given up; what was sent is not."""
        self.client.purge(in_queue=True, in_flight=False, blocking=True)

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
