"""The consumer: what it shares with others is in consuming.py."""

from consuming import LikeJava, Told
from kafka import ConsumerRebalanceListener, KafkaConsumer
from kafka import TopicPartition as Partition
from kafka.structs import OffsetAndMetadata
from library import configuration
from lines import COMMON, CONSUMER


class Listener(Told, ConsumerRebalanceListener):
    """Says what was assigned and revoked."""


class Consumer(LikeJava):
    """kafka.KafkaConsumer."""

    partition, listener = Partition, Listener

    def __init__(self, name, config):
        super().__init__(name)
        made, self.ignored = configuration(config, COMMON + CONSUMER, KafkaConsumer.DEFAULT_CONFIG)
        self.client = KafkaConsumer(**made)

    def ask(self, method, *arguments, **options):
        return getattr(self.client, method)(*arguments, **options)

    def fetched(self, timeout_ms, most):
        return self.shown(self.client.poll(timeout_ms, max_records=most))

    def commit(self, command):
        offsets = self.offsets(command)
        made = {Partition(one["topic"], one["partition"]): self.metadata(one["offset"]) for one in offsets}
        if command["mode"] == "sync":
            self.client.commit(made)
        else:
            self.client.commit_async(made)
        return {"reported": command["mode"] == "sync", "offsets": offsets}

    @staticmethod
    def metadata(offset):
        return OffsetAndMetadata(*([offset, "", -1][: len(OffsetAndMetadata._fields)]))
