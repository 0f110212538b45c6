"""The consumer: what it shares with others is in consuming.py."""

import inspect

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
from aiokafka import TopicPartition as Partition
from consuming import LikeJava, Told
from library import CONSUMER, configuration, made, run


class Listener(Told, ConsumerRebalanceListener):
    """Says what was assigned and revoked."""


class Consumer(LikeJava):
    """aiokafka.AIOKafkaConsumer."""

    named = {}  # noqa: RUF012 - every consumer of this process
    partition, listener = Partition, Listener

    def __init__(self, name, config):
        super().__init__(name)
        options, self.ignored = configuration(config, CONSUMER)
        self.client, self.group = run(made(AIOKafkaConsumer, **options)), config.get("group")
        self.named[name] = self

    def ask(self, method, *arguments, **options):
        """In the loop, whether the method is a coroutine or not."""

        async def called():
            said = getattr(self.client, method)(*arguments, **options)
            return await said if inspect.isawaitable(said) else said

        return run(called())

    def fetched(self, timeout_ms, most):
        return self.shown(self.ask("getmany", timeout_ms=timeout_ms, max_records=most))

    def commit(self, command):
        offsets = self.offsets(command)
        if offsets:
            made = {Partition(one["topic"], one["partition"]): one["offset"] for one in offsets}
            self.ask("commit", made)
        return {"offsets": offsets}

    def close(self, command):
        self.named.pop(self.name, None)
        self.ask("stop")
