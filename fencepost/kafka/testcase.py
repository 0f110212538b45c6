"""An embedded Kafka for unittest: a cluster for each test, judged at its end.

    class Orders(KafkaTestCase):
        options = {"brokers": 3}
        topics = {"orders": 2}

        def test_a_crash(self):
            self.kafka.crash(self.kafka.leader("orders"))

Owns when it starts, ends and is judged. Must not know anything else.
"""

import unittest
from collections.abc import Mapping
from typing import Any, ClassVar

import fencepost.kafka
from fencepost.kafka.handle import KafkaCluster


class KafkaTestCase(unittest.TestCase):
    """options: of `cluster()`. topics: partitions of each. judged: whether a test that passes ends the run and
    is judged as by `assert_ok`."""

    options: ClassVar[Mapping[str, Any]] = {}
    topics: ClassVar[Mapping[str, int]] = {"t": 1}
    judged: ClassVar[bool] = True
    kafka: KafkaCluster
    """The cluster of the test that runs."""

    def setUp(self) -> None:
        """Start it."""
        self.kafka = self.enterContext(fencepost.kafka.cluster(**self.options))
        for name, partitions in self.topics.items():
            self.kafka.create_topic(name, partitions=partitions)

    def tearDown(self) -> None:
        """Judge it, if nothing was wrong so far."""
        outcome = getattr(self, "_outcome", None)
        if self.judged and (outcome is None or outcome.success):
            self.kafka.assert_ok()
