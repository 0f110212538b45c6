"""The embedded Kafka for unittest, and in asyncio."""

import asyncio
import unittest
import warnings
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

    def test_in_part(self):
        with self.subTest("one"):
            raise AssertionError("a part")

    def test_convicted(self):
        with producer(self.kafka) as client:
            produce(client, [1], topic="orders")
        self.kafka.assert_delivered("orders")


class Claimed(KafkaTestCase):
    """With what the caller knows."""

    __test__ = False
    options: ClassVar = {"brokers": 1}
    claims: ClassVar = {"assumption_broken": "the clients were cut off"}

    def test_sync(self):
        with producer(self.kafka) as client:
            produce(client, [1])
        assert self.kafka.trace().claims.assumption_broken == "the clients were cut off"
        assert self.kafka.verdict(("log",)).decision.value == "assumption_broken"
        self.kafka.claimed = None


class Coroutines(KafkaTestCase, unittest.IsolatedAsyncioTestCase):
    """The same with coroutines as tests."""

    __test__ = False
    options: ClassVar = {"brokers": 1}

    async def test_awaited(self):
        await asyncio.to_thread(self.kafka.create_topic, "u")
        assert self.kafka.leader("u") == 1


def run(case):
    """The result of its tests; the warnings as they came."""
    result = unittest.TestResult()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
    return result, [str(one.message) for one in caught if "met a fault" in str(one.message)]


def test_unittest_runs_judges_keeps_and_closes(tmp_path, monkeypatch, capsys):
    """Rule: what passes is judged, and warns if no fault met a request; what fails, by an assertion of its
    own or of the handle, leaves trace and page in a folder of its name, and says where."""
    monkeypatch.setattr(Orders, "folder", tmp_path)
    result, warned = run(Orders)
    assert result.testsRun == 5 and result.errors == []
    failed = {case.id().rpartition(".")[2]: text for case, text in result.failures}
    failed = {name.partition(" ")[0]: text for name, text in failed.items()}
    assert set(failed) == {"test_wrong", "test_convicted", "test_in_part"}
    assert "the test's own" in failed["test_wrong"] and "in test_wrong" in failed["test_wrong"]
    (warning,) = warned
    assert "1 appends (1 acknowledged)" in warning
    kept = {path.name.rpartition(".")[2]: path for path in tmp_path.iterdir()}
    assert set(kept) == set(failed)
    for name, other in (("test_wrong", "timeline.txt"), ("test_convicted", "report.txt")):
        assert {path.name for path in kept[name].iterdir()} == {"trace.jsonl", "trace.html", other}
    assert f"watch it: {kept['test_convicted'] / 'trace.html'} " in failed["test_convicted"]
    assert f"watch it: {kept['test_wrong'] / 'trace.html'} " in capsys.readouterr().err


def test_tests_that_are_coroutines():
    """Rule: with IsolatedAsyncioTestCase a test may await; it is judged, too."""
    result, warned = run(Coroutines)
    assert result.testsRun == 1 and result.wasSuccessful() and len(warned) == 1


def test_claims_of_a_case_count_for_its_runs():
    """Rule: what the caller knows replaces what follows from a run, as with the marker of pytest."""
    result, _ = run(Claimed)
    assert result.testsRun == 1 and result.wasSuccessful(), result.failures + result.errors


def ran(case):
    """Run one test case."""
    suite = unittest.TestSuite([case])
    return suite.run(unittest.TestResult())


def test_a_failure_names_the_line_that_repeats_it(tmp_path, monkeypatch, capsys):
    """Rule: the seeds of the variables count, are in the line, and are none where they are set and empty."""
    monkeypatch.setattr(Orders, "folder", tmp_path)
    monkeypatch.setenv("FENCEPOST_SEED", "7")
    monkeypatch.setenv("FENCEPOST_CHAOS", "3")
    name = f"{Orders.__module__}.Orders.test_wrong"
    assert len(ran(Orders("test_wrong")).failures) == 1
    assert (
        f"repeat it: FENCEPOST_SEED=7 FENCEPOST_CHAOS=3 python -m unittest {name}\n"
        in capsys.readouterr().err
    )
    monkeypatch.setenv("FENCEPOST_SEED", "")
    monkeypatch.setenv("FENCEPOST_CHAOS", "")
    assert len(ran(Orders("test_wrong")).failures) == 1
    assert f"repeat it: FENCEPOST_SEED=0 python -m unittest {name}\n" in capsys.readouterr().err
    monkeypatch.setenv("FENCEPOST_CHAOS", "many")
    ((_, error),) = ran(Orders("test_sync")).errors
    assert "the variable FENCEPOST_CHAOS: expected a number from 0 on, saw 'many'" in error
