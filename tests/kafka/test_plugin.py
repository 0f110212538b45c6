"""The fixtures fencepost_kafka and fencepost_kafka_shared, under pytest in a process of its own."""

import re
from importlib.metadata import entry_points

import pytest

from tests.kafka.test_docs import EXAMPLES

pytest_plugins = ["pytester"]
INSTALLED = any(point.value == "fencepost.pytest_plugin" for point in entry_points(group="pytest11"))
HELPERS = """
import pytest
from kafka import KafkaProducer

def send(kafka, *values):
    servers = kafka.bootstrap_servers.split(",")
    client = KafkaProducer(bootstrap_servers=servers, acks="all", retries=50, retry_backoff_ms=50)
    for value in values:
        client.send("t", b"%d" % value).get(60)
    client.close()
"""


@pytest.fixture
def suite(pytester, monkeypatch):
    """Run the tests of a text with the plugin."""
    for name in ("CI", "BUILD_NUMBER", "PYTEST_ADDOPTS"):
        monkeypatch.delenv(name, raising=False)

    def call(text, *options):
        pytester.makepyfile(HELPERS + text)
        loaded = [] if INSTALLED else ["-p", "fencepost.pytest_plugin"]
        return pytester.runpytest_subprocess(
            *loaded,
            "-p",
            "no:cacheprovider",
            "--strict-markers",
            "-W",
            "ignore::DeprecationWarning",
            *options,
        )

    return call


def test_what_passes_what_fails_and_what_warns(suite, pytester):
    """Rule: a run is judged when the test's own assertions hold; a failure leaves its trace; a test that met
    no fault warns."""
    result = suite(
        """
@pytest.mark.fencepost_kafka(brokers=2)
def test_met(fencepost_kafka):
    fencepost_kafka.crash(fencepost_kafka.leader("t"))
    send(fencepost_kafka, 1, 2)

def test_calm(fencepost_kafka):
    send(fencepost_kafka, 1)

@pytest.mark.fencepost_kafka(brokers=2, bugs=("KIP-101",), replica_fetch_wait_max_ms=5_000)
def test_planted(fencepost_kafka):
    send(fencepost_kafka, 1, 2)
    follower = next(broker for broker in fencepost_kafka.brokers if broker != fencepost_kafka.leader("t"))
    fencepost_kafka.crash(follower, for_ms=10)
    fencepost_kafka.wait_until_healthy()
    send(fencepost_kafka, 3)

@pytest.mark.fencepost_kafka(brokers=1, judged=False, topics={"u": 3})
def test_own(fencepost_kafka):
    assert fencepost_kafka.leader("u", 2) == 2

@pytest.mark.fencepost_kafka(brokers=1, colour="red")
def test_mistake(fencepost_kafka):
    pass
""",
        "-rA",
    )
    outcomes = result.parseoutcomes()
    assert {name: outcomes[name] for name in ("passed", "failed", "errors")} == {
        "passed": 2,
        "failed": 2,
        "errors": 1,
    }
    told = result.stdout.str()
    assert re.search(
        r"2 appends \(2 acknowledged\) and 0 reads by clients; 1 crash; [12] of the operations", told
    )
    assert told.count("PytestWarning: no request of a client met a fault") == 1
    assert "options of a cluster" in told and "colour" in told
    kept = {path.parent.name for path in pytester.path.glob(".fencepost/*/trace.jsonl")}
    assert len(kept) == 2
    assert [name for name in kept if "planted" in name] and [name for name in kept if "own" in name]
    report = next(pytester.path.glob(".fencepost/*planted*/report.txt")).read_text()
    assert "fencepost check " in report and "2 appends" not in report.splitlines()[0]


def test_one_cluster_is_shared_by_a_module(suite):
    """Rule: fencepost_kafka_shared is the same for all tests of a module, with the module's marker."""
    suite(
        """
pytestmark = pytest.mark.fencepost_kafka(brokers=1)
seen = set()

@pytest.mark.parametrize("number", range(2))
def test_it(fencepost_kafka_shared, number):
    seen.add(fencepost_kafka_shared.bootstrap_servers)
    assert len(seen) == 1 and fencepost_kafka_shared.brokers == (1,)
""",
    ).assert_outcomes(passed=2)


def test_the_example_of_the_documentation_passes(suite):
    """Rule: the fixture's example runs as it stands."""
    suite(EXAMPLES[1]).assert_outcomes(passed=1)
