"""The embedded Kafka for unittest, and in asyncio."""

import asyncio
import unittest
from typing import ClassVar

from fencepost.kafka.testcase import KafkaTestCase
from tests.kafka.clients import produce, producer


class Orders(KafkaTestCase):  # not collected by itself: test_wrong fails on purpose
    """As a user writes it."""

    __test__ = False
    options: ClassVar = {"brokers": 1}
    topics: ClassVar = {"orders": 1}

    def test_sync(self):
        with producer(self.kafka) as client:
            produce(client, [1], topic="orders")

    def test_async(self):
        """A service in asyncio; the cluster has a thread of its own."""

        async def body():
            from aiokafka import AIOKafkaProducer

            client = AIOKafkaProducer(bootstrap_servers=self.kafka.bootstrap_servers, acks="all")
            await client.start()
            await asyncio.to_thread(self.kafka.lose_answer, "Produce", "orders")
            await client.send_and_wait("orders", b"2")
            await client.stop()

        asyncio.run(body())
        assert self.kafka.status()["struck"] == {"lose_answer": 1}

    def test_wrong(self):
        raise AssertionError("the test's own")


def test_unittest_runs_judges_and_closes():
    """Rule: what passes is judged; what fails by its own assertion says so alone."""
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Orders).run(result)
    assert result.testsRun == 3 and result.errors == []
    ((case, text),) = result.failures
    assert case.id().endswith("test_wrong") and "the test's own" in text
