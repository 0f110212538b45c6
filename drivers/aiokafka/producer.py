"""The producer."""

import asyncio

from aiokafka import AIOKafkaProducer
from aiokafka import TopicPartition as Partition
from consumer import Consumer
from library import PRODUCER, configuration, made, run
from lines import Refused, decoded


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
