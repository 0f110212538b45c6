"""The fixtures fencepost_kafka and fencepost_kafka_shared, under pytest in a process of its own."""

import re
import shlex
from types import SimpleNamespace

import pytest

from fencepost import pytest_plugin
from tests.kafka.test_docs import EXAMPLES
from tests.suites import LOADED, run_suite

pytest_plugins = ["pytester"]
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
        given = ("-p", "no:cacheprovider", "--strict-markers", "-W", "ignore::DeprecationWarning")
        return run_suite(pytester, *LOADED, *given, *options)

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

@pytest.mark.fencepost_kafka(brokers=1, judged=False, topics={"u": 3}, min_insync_replicas=1)
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
    assert "an option of a cluster" in told and "saw 'colour'" in told and "__init__" not in told
    assert "During handling" not in told
    kept = {path.parent.name for path in pytester.path.glob(".fencepost/*/trace.jsonl")}
    assert len(kept) == 2
    assert [name for name in kept if "planted" in name] and [name for name in kept if "own" in name]
    report = next(pytester.path.glob(".fencepost/*planted*/report.txt")).read_text()
    assert "fencepost check " in report and "2 appends" not in report.splitlines()[0]
    for name, others in (("planted", {"report.txt"}), ("own", {"timeline.txt"})):
        (folder,) = pytester.path.glob(f".fencepost/*{name}*")
        assert {path.name for path in folder.iterdir()} == {"trace.jsonl", "trace.html", *others}
        assert told.count(f"watch it: {folder / 'trace.html'} ") == 1
        page = (folder / "trace.html").read_text()
        assert '"views"' in page
        assert bool(re.search('"failure":"(assert|AssertionError)', page)) == (name == "own")
    assert f"kept in {next(pytester.path.glob('.fencepost/*planted*'))}" in told


def test_an_assertion_of_the_handle_keeps_its_report(suite, pytester):
    """Rule: what assert_no_duplicates and the like convict is kept with its report and page, the text names
    both, and a repetition that fails is counted; a shared cluster is kept, too."""
    result = suite(
        """
@pytest.mark.fencepost_kafka(brokers=1)
def test_twice(fencepost_kafka):
    fencepost_kafka.lose_answer("Produce", "t")
    servers = fencepost_kafka.bootstrap_servers.split(",")
    client = KafkaProducer(bootstrap_servers=servers, acks="all", retries=50, enable_idempotence=False)
    client.send("t", b"1").get(60)
    client.close()
    fencepost_kafka.assert_no_duplicates("t")

@pytest.mark.fencepost_kafka(brokers=1)
def test_shared(fencepost_kafka_shared):
    send(fencepost_kafka_shared, 1)
    assert False, "its own"

@pytest.mark.fencepost_kafka(brokers=1)
def test_repeated(fencepost_kafka):
    send(fencepost_kafka, 1)
    if fencepost_kafka.folder is None:  # a repetition
        pytest.fail("the words of the test")
    fencepost_kafka.assert_delivered("t")
""",
        "--fencepost-repeat=1",
    )
    assert result.parseoutcomes()["failed"] == 3
    told = result.stdout.str()
    (twice,) = pytester.path.glob(".fencepost/*twice*")
    assert {path.name for path in twice.iterdir()} == {"trace.jsonl", "trace.html", "report.txt"}
    assert f"kept in {twice}" in told and f"watch it: {twice / 'trace.html'} " in told
    assert told.count("it failed in 1 of 1 repetitions") == 2
    (shared,) = pytester.path.glob(".fencepost/*shared*")
    assert {path.name for path in shared.iterdir()} == {"trace.jsonl", "trace.html", "timeline.txt"}
    assert "kept by fencepost_kafka_shared" in told


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
"""
    ).assert_outcomes(passed=2)


def test_the_example_of_the_documentation_passes(suite):
    """Rule: the fixture's example runs as it stands."""
    suite(EXAMPLES[1]).assert_outcomes(passed=1)


def test_too_few_replicas_in_sync_acknowledge_nothing(suite):
    """Rule: min_insync_replicas of the marker is the setting of the topics that it names."""
    result = suite(
        """
from kafka.errors import NotEnoughReplicasError

@pytest.mark.fencepost_kafka(topics={"t": 1}, min_insync_replicas=3, judged=False)
def test_it(fencepost_kafka):
    send(fencepost_kafka, 1)
    fencepost_kafka.crash(3)
    fencepost_kafka.until(lambda: not fencepost_kafka.status()["healthy"])
    servers = fencepost_kafka.bootstrap_servers.split(",")
    client = KafkaProducer(bootstrap_servers=servers, acks="all", retries=3, enable_idempotence=False)
    fencepost_kafka.until(lambda: fencepost_kafka.status()["time_ms"] > 5_000)
    with pytest.raises(NotEnoughReplicasError):
        client.send("t", b"2").get(60)
    client.close()
"""
    )
    assert result.parseoutcomes()["passed"] == 1


CHAOS = """
def test_it(fencepost_kafka):
    send(fencepost_kafka, *range(6))
    assert [len(fencepost_kafka.records("t"))] == [5]
"""


def test_a_failure_names_the_line_that_repeats_it(suite):
    """Rule: one line has the test and the seeds of cluster and chaos; it runs as it is."""
    result = suite(CHAOS, "--fencepost-chaos=3:5", "--fencepost-seed=7")
    result.assert_outcomes(failed=2)
    lines = [line for line in result.stdout.lines if line.startswith("pytest ")]
    name = "test_a_failure_names_the_line_that_repeats_it.py::test_it"
    assert lines == [f"pytest {name} --fencepost-seed 7 --fencepost-chaos {seed}" for seed in (3, 4)]
    again = suite(CHAOS, *lines[0].split()[2:])
    again.assert_outcomes(failed=1)
    assert lines[0] in again.stdout.lines


def test_a_test_under_chaos_says_what_was_reached(suite):
    """Rule: a test that passes reports its strikes; a test that asks for no chaos gets none."""
    text = CHAOS.replace("== [5]", "!= [0]")
    result = suite(text, "--fencepost-chaos=2", "-rP")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*chaos 2: * strike*(moments seen: *a result not yet answered*"])
    calm = suite(text, "-rP")
    assert "moments seen" not in calm.stdout.str()


def test_seeds_of_chaos_that_are_none_get_a_sentence(suite):
    """Rule: expected and seen."""
    result = suite(CHAOS, "--fencepost-chaos=5:2")
    result.stderr.fnmatch_lines(
        ["*--fencepost-chaos: expected a seed such as 3, seeds such as 0:20, or fresh:20, saw '5:2'"]
    )


def test_fresh_seeds_are_others_each_day(monkeypatch):
    """Rule: N seeds of today, none of yesterday's, the same all day and in every process of a run."""

    class Config:
        def __init__(self, text):
            self.option = SimpleNamespace(fencepost_chaos=text)

        def getoption(self, name):
            return self.option.fencepost_chaos

    def seeds(text, days):
        monkeypatch.setattr(pytest_plugin.time, "time", lambda: days * 86_400.0)
        config = Config(text)
        pytest_plugin._settle_fresh(config)
        return pytest_plugin._chaos_seeds(config)

    assert seeds("fresh:20", 100.0) == list(range(2000, 2020)) == seeds("fresh:20", 100.9)
    assert seeds("fresh:20", 101.0) == list(range(2020, 2040))
    assert seeds("0:3", 5.0) == [0, 1, 2]
    with pytest.raises(pytest.UsageError, match="fresh:20"):
        seeds("fresh:0", 1.0)


def test_chaos_that_met_nobody_warns(suite):
    """Rule: a test that chaos did not meet proves less than it seems to."""
    result = suite("def test_it(fencepost_kafka):\n    pass\n", "--fencepost-chaos=2")
    result.stdout.fnmatch_lines(["*no strike of chaos met a client: chaos 2: 0 strikes (moments seen: none)"])


STRUCK = """
import contextlib

def test_it(fencepost_kafka):
    servers = fencepost_kafka.bootstrap_servers.split(",")
    options = {"retries": 50, "retry_backoff_ms": 50, "request_timeout_ms": 1_000}
    client = KafkaProducer(bootstrap_servers=servers, **options)
    for number in range(40):
        with contextlib.suppress(Exception):
            client.send("t", b"%d" % number).get(60)
    client.close()
    fencepost_kafka.heal()
    fencepost_kafka.assert_that("no strike came", lambda _: not fencepost_kafka.reached()["strikes"], "t")
"""


def test_a_failure_says_under_how_little_chaos_it_still_fails(suite):
    """Rule: strikes that the failure does not need are left out, one after the other; the line that repeats
    the test carries out what is left, and no other."""
    once = ("--fencepost-chaos=4", "--fencepost-repeat=1")
    text = suite(STRUCK, *once, "--fencepost-shrink=3000").stdout.str()
    assert "failed in 1 of 1" in text
    line = next(line for line in text.splitlines() if line.startswith("pytest "))
    options = shlex.split(line)[2:]
    if found := re.search(r"it still fails with the strikes ([^;\n]+) \((\d+) of (\d+) left out\)", text):
        assert int(found[2]) == int(found[3]) - 1 > 0
        assert options[-2:] == ["--fencepost-strike", found[1]]
    else:  # a crowded machine: only one strike came
        assert "still fails" not in text and "--fencepost-strike" not in options
    none = suite(STRUCK, "--fencepost-chaos=4", "--fencepost-strike=none of them")
    none.assert_outcomes(passed=1)
