"""The producer."""

from kafka import KafkaProducer
from library import WAIT_MS, configuration
from lines import COMMON, PRODUCER, decoded


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
