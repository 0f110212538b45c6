"""docs/tutorial/service.md is typed as it stands: two services are convicted, the third survives."""

import re
from pathlib import Path

import pytest

from tests.suites import LOADED, run_suite

pytest_plugins = ["pytester"]
TEXT = (Path(__file__).parents[2] / "docs" / "tutorial" / "service.md").read_text()
FILES = {name: text for text, name in re.findall(r"```python\n(# (\S+\.py)\n.*?)```", TEXT, flags=re.S)}
FAILURES = re.findall(r"```text\n(.*?)```", TEXT, flags=re.S)
SEEDS = 2


@pytest.fixture
def typed(pytester, monkeypatch):
    """Run a test file of the tutorial in a folder with all of them; answers its output."""
    for name in ("CI", "BUILD_NUMBER", "PYTEST_ADDOPTS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SEEDS", str(SEEDS))
    for name, text in FILES.items():
        (pytester.path / name).write_text(text)

    def call(name):
        options = ("-p", "no:cacheprovider", "--fencepost-repeat", "0", "-W", "ignore::DeprecationWarning")
        return run_suite(pytester, *LOADED, *options, name)

    call.folder = pytester.path
    return call


@pytest.mark.parametrize(("name", "shown"), [("test_early.py", 0), ("test_retries.py", 1)])
def test_a_classic_bug_is_found_by_a_short_test(typed, name, shown):
    """Rule: the test has at most a dozen lines, fails, and says what the page says."""
    body = FILES[name].partition("def test_")[2]
    assert len([line for line in body.splitlines() if line.strip()]) <= 12
    result = typed(name)
    assert result.parseoutcomes()["failed"] == 1
    told = result.stdout.str()
    for line in FAILURES[shown].strip().splitlines():
        assert re.search(re.escape(line.strip()), told), (line, told[-4_000:])
    commits = re.search(r"orders-0: OffsetCommit \d+ of group billing by (aiokafka|client \d)", told)
    assert commits or shown == 1  # the second test is about the other topic
    assert "seed 0" in told and len(list(typed.folder.glob(".fencepost/*/trace.jsonl"))) == 1


def test_the_healthy_service_survives(typed):
    """Rule: whatever chaos does, nothing is found."""
    outcomes = typed("test_healthy.py").parseoutcomes()
    assert outcomes["passed"] == SEEDS and "failed" not in outcomes


NOTHING_ASSIGNED = """
import runpy
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor as Assignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment

right, made = Assignor.assign, []

def assign(cluster, members):
    made.append(members)
    if len(made) > 1:
        return right(cluster, members)
    return {member: ConsumerProtocolMemberAssignment(0, [], b"") for member in members}

Assignor.assign = assign
runpy.run_path("healthy.py", run_name="__main__")
"""
ITS_TEST = """
import sys
import pytest
from orders import send_orders

@pytest.mark.filterwarnings("ignore")
@pytest.mark.fencepost_kafka(topics={"orders": 2, "invoices": 2})
def test_a_consumer_without_partitions(fencepost_kafka):
    kafka = fencepost_kafka
    with kafka.service([sys.executable, "nothing.py"]):
        send_orders(kafka, 4)
        kafka.until(lambda: sum(kafka.committed("billing").values()) == 4)
    kafka.assert_processed_once("orders", "invoices", group="billing")
"""


def test_a_service_that_owns_nothing_goes_on(typed):
    """Rule: an assignment without partitions that counts although metadata has them, as after two SyncGroup
    of one generation, ends the healthy service's consumer; the next one reads."""
    (typed.folder / "nothing.py").write_text(NOTHING_ASSIGNED)
    (typed.folder / "test_nothing.py").write_text(ITS_TEST)
    result = typed("test_nothing.py")
    assert result.parseoutcomes()["passed"] == 1
