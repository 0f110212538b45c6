"""The pytest plugin under pytest: what its tests collect, how they fail, what they leave behind.

Each suite runs in a process of its own (suites.py), as a user's does: in this one, modules that it imports
late would be loaded twice.
"""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from fencepost.checkers.judges import judge
from fencepost.checkers.verdict import combine
from fencepost.run.simulated.run import run
from fencepost.systems.processes import ProcessCluster
from fencepost.traces.jsonlines import read_traces
from fencepost.traces.plan_json import plan_from_json
from tests.suites import LOADED, run_suite

pytest_plugins = ["pytester"]
HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"
DOCUMENTATION = "".join((HOW_TO / name).read_text() for name in ("pytest-history.md", "pytest.md"))
EXAMPLES = re.findall(r"```python\n(.*?)```", DOCUMENTATION, flags=re.S)
STORE = """
import threading, time

class Store:
    def __init__(self):
        self.lock, self.value, self.caches = threading.Lock(), None, threading.local()

    def write(self, value):
        with self.lock:
            self.value = value
        time.sleep(0.0005)

    def read(self):
        {read}
"""
CACHED = "return self.caches.__dict__.setdefault('value', self.value)"
CORRECT = "return self.value"


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    """Run the tests of a text with the plugin, and with no other of ours.

    The same wherever it runs: where pytest sees that it is in continuous integration, it says every failure
    twice.
    """
    for name in ("CI", "BUILD_NUMBER", "PYTEST_ADDOPTS"):
        monkeypatch.delenv(name, raising=False)

    def call(text: str, *options: str) -> pytest.RunResult:
        pytester.makepyfile(text)
        return run_suite(pytester, *LOADED, "-p", "no:cacheprovider", "--strict-markers", *options)

    return call


def left(pytester: pytest.Pytester) -> dict[str, set[str]]:
    """The files of the folder of artefacts, by the test's own folder."""
    root = pytester.path / ".fencepost"
    files = (path.relative_to(root).parts for path in root.rglob("*") if path.is_file())
    found: dict[str, set[str]] = {}
    for parts in files:
        found.setdefault(re.sub(r"-[0-9a-f]{8}$", "", parts[0]), set()).add("/".join(parts[1:]))
    return found


def test_the_plugin_is_cheap_and_silent():
    """Rule: what a suite without our fixtures pays is two small files that import pytest, and nothing heavy
    beyond it."""
    code = """
import sys, pytest
before = set(sys.modules)
import fencepost.pytest_plugin
print(sorted(set(sys.modules) - before))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['fencepost', 'fencepost.moved', 'fencepost.pytest_plugin']"


def test_the_entry_point_is_declared():
    """Rule: installing the package installs the plugin."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"fencepost": "fencepost.pytest_plugin"}


def test_others_are_not_disturbed(pytester):
    """Rule: tests that use none of it run as before, a function called `campaign` included, and nothing is
    left. In a process that has loaded nothing before."""
    pytester.makepyfile(
        """
        import pytest
        def campaign(): raise AssertionError
        @pytest.fixture
        def fencepost(): return 7
        def test_one(fencepost): assert fencepost == 7
        class TestTwo:
            @pytest.mark.parametrize("n", [1, 2])
            def test_three(self, n): assert n
        """
    )
    result = pytester.runpytest_subprocess(*LOADED, "-p", "no:cacheprovider", "--strict-markers")
    result.assert_outcomes(passed=3)
    assert not (pytester.path / ".fencepost").exists()


@pytest.mark.parametrize(("read", "outcome"), [(CORRECT, "passed"), (CACHED, "failed")])
def test_the_example_of_fifteen_lines(suite, pytester, read, outcome):
    """Rule: the example of the documentation is at most 15 lines, runs as it stands, passes a correct store
    and convicts one with a cache (planted)."""
    example = EXAMPLES[0]
    body = example.split("\n\n\n")[1]
    assert len([line for line in body.split("\n") if line.strip()]) <= 15
    pytester.makepyfile(my_store=STORE.format(read=read))
    result = suite(example)
    result.assert_outcomes(**{outcome: 1})
    if outcome == "passed":
        assert left(pytester) == {}
        return
    text = result.stdout.str()
    assert "NotLinearizableError: not_linearizable: no order of the operations" in text
    assert re.search(r"judge it again: fencepost check \S+/history\.jsonl --model register", text)
    (folder,) = [files for name, files in left(pytester).items() if name != ".gitignore"]
    assert folder == {"history.jsonl", "history.html", "timeline.txt"}
    assert (pytester.path / ".fencepost" / ".gitignore").read_text() == "*\n"


def test_the_other_examples_of_the_documentation(suite, pytester):
    """Rule: the asynchronous client, the cluster and the campaign of the pages on pytest run as they stand;
    the campaign is four tests."""
    collected = suite(EXAMPLES[-1], "--collect-only", "-q")
    assert names(collected) == ["seeds 0:5", "seeds 5:10", "seeds 10:15", "seeds 15:20"]
    outcomes = [suite(example, "--fencepost-seeds=0:2").parseoutcomes() for example in EXAMPLES[1:]]
    assert outcomes == [{"passed": 1}] * 3
    assert left(pytester) == {}


def test_a_finding_of_a_campaign_is_told_and_kept(suite, pytester):
    """Rule: a campaign with a planted bug fails with anomaly, proof, shrunk plan and replay command, and the
    shrunk plan shows the same again."""
    result = suite(
        """
        import pytest
        PLAN = {
            "cluster": {"topics": [{"partitions": 2, "replication_factor": 2}]},
            "operations": [
                {"op_id": 1, "process": 0, "at_ms": 100, "function": "append"},
                {"op_id": 2, "process": 2, "at_ms": 9000, "function": "append", "partition": 1},
            ],
            "faults": [
                {"fault_id": 0, "kind": "crash", "at_ms": 103, "target": "follower 1 of t-0"},
                {"fault_id": 1, "kind": "crash", "at_ms": 6000, "target": "leader of t-1"},
            ],
            "safety_ms": 20000,
        }
        @pytest.mark.campaign(seeds=[3, 4], plan=PLAN, bug="KIP-101")
        def test_found(): raise RuntimeError("the body runs only if nothing is found")
        """
    )
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    for words in (
        "seed 3, of the seeds 3:5",
        "conformance in trace 3, found by conformance",
        "expected:  a truncation by leader epoch (KIP-101)",
        "Timeline",
        "Shrunk plan: 1 of 2 operations, 1 of 2 faults",
        "also seed 4: conformance",
        "this seed alone: pytest test_a_finding_of_a_campaign_is_told_and_kept.py::test_found "
        "--fencepost-seed 3",
    ):
        assert words in text, words
    assert "Traceback" not in text and "RuntimeError" not in text
    alone = re.search(r"this seed alone: pytest (.*)", text)[1]  # one_seed
    again = suite(
        (pytester.path / "test_a_finding_of_a_campaign_is_told_and_kept.py").read_text(), *alone.split(),
        "--fencepost-shrink=0", "--fencepost-dir=again",
    )  # fmt: skip
    again.assert_outcomes(failed=1)
    assert "seed 3\n\nconformance in trace 3" in again.stdout.str()
    path = Path(re.search(r"replay:    fencepost replay --plan (\S+)", text)[1])
    files = {path.name for path in path.parent.iterdir()}
    assert files == {"trace.jsonl", "plan.json", "shrunk.json", "shrunk.jsonl", "shrunk.html", "report.txt"}
    assert combine(judge(run(plan_from_json(path.read_bytes())))).anomaly == "conformance"


CHUNKS = """
import pytest
@pytest.mark.campaign(seeds=25)
def test_of_ten(): pass
@pytest.mark.campaign("3:6", chunk=2, profile="calm")
class TestOfTwo:
    def test_it(self, fencepost_campaign): pass
"""


def names(result: pytest.RunResult) -> list[str]:
    """The tests that were collected, by what stands in brackets."""
    return re.findall(r"\[(.+)\]$", result.stdout.str(), flags=re.M)


def test_seeds_become_tests(suite):
    """Rule: seeds come in chunks, each a test that xdist may give to any worker; the command line's seeds win
    over the marker's."""
    assert names(suite(CHUNKS, "--collect-only", "-q")) == [
        "seeds 0:10", "seeds 10:20", "seeds 20:25", "seeds 3:5", "seed 5",
    ]  # fmt: skip
    assert names(suite(CHUNKS, "--collect-only", "-q", "--fencepost-seed=17")) == ["seed 17", "seed 17"]
    chosen = names(suite(CHUNKS, "--collect-only", "-q", "--fencepost-seeds=100:112"))
    assert chosen == ["seeds 100:110", "seeds 110:112", *(f"seeds {n}:{n + 2}" for n in range(100, 112, 2))]


WRONG_MARKERS = [
    ("campaign", "expected seeds: how many"),
    ("campaign(seeds='a:b')", "saw 'a:b'"),
    ("campaign(seeds=5, chunk=0)", "expected a chunk of at least 1 seed"),
    ("campaign(seeds=5, profile='wild')", "saw 'wild'"),
    ("campaign(seeds=5, bug='KIP-0')", "saw 'KIP-0'"),
    ("campaign(seeds=5, colour='red')", "saw 'colour'"),
    ("campaign(seeds=5, plan='none.json')", "none.json: expected a plan file"),
]


def test_mistakes_in_a_marker_are_sentences(suite, pytester):
    """Rule: a campaign that cannot be is told at collection, with expected and seen; here each in a file of
    its own."""
    for number, (marker, _) in enumerate(WRONG_MARKERS):
        pytester.makepyfile(
            **{f"test_wrong_{number}": f"import pytest\n@pytest.mark.{marker}\ndef test_it(): pass"}
        )
    result = suite("")
    result.assert_outcomes(errors=len(WRONG_MARKERS))
    for number, (_, sentence) in enumerate(WRONG_MARKERS):
        told = result.stdout.str().partition(f"ERROR collecting test_wrong_{number}.py")[2]
        assert sentence in told.partition("ERROR collecting")[0].partition("short test summary")[0], told


def test_runs_of_ones_own_assertions(suite, pytester):
    """Rule: a test that takes the fixture gets the runs, and nothing is judged behind its back; without the
    marker it is told what is missing."""
    result = suite(
        """
        import pytest
        PLAN = {"operations": [{"op_id": 1, "process": 0, "at_ms": 5, "function": "append"}], "safety_ms": 50}
        @pytest.mark.campaign(seeds=3, plan=PLAN, bug="KAFKA-532")
        def test_runs(fencepost_campaign):
            assert [trace.seed for trace in fencepost_campaign.runs()] == [0, 1, 2]
            fencepost_campaign.assert_nothing_found()
        def test_bare(fencepost_campaign): pass
        """
    )
    result.assert_outcomes(passed=1, errors=1)
    assert "needs the marker: @pytest.mark.campaign(seeds=100)" in result.stdout.str()
    assert left(pytester) == {}


def test_a_run_that_breaks_down_names_its_seed(suite, pytester):
    """Rule: an exception of a run (planted) is the test's error, with the seed that brings it back."""
    pytester.makeconftest(
        """
        import pytest
        @pytest.fixture(autouse=True)
        def planted(monkeypatch):
            def broken(plan):
                raise RuntimeError(f"at {plan.seed}")
            monkeypatch.setattr("fencepost.campaign.chunks.run", broken)
        """
    )
    result = suite("import pytest\n@pytest.mark.campaign(seeds=[4])\ndef test_it(): pass")
    result.assert_outcomes(failed=1)
    assert "RuntimeError: at 4" in result.stdout.str()
    assert "in the run of seed 4: pytest " in result.stdout.str()
    assert ".py::test_it --fencepost-seed 4" in result.stdout.str()


def test_clusters(suite, pytester):
    """Rule: a cluster has the options of marker, parameter and command line; it is judged (planted: KIP-101)
    if the test's own assertions hold."""
    result = suite(
        """
        import pytest
        def test_default(fencepost_cluster):
            assert fencepost_cluster.append().outcome == "ok"
            assert (fencepost_cluster.plan.cluster.brokers, fencepost_cluster.plan.seed) == (3, 5)
        SLOW = {"brokers": 2, "plan": {"network": {"latency_min_us": 900}}}
        @pytest.mark.parametrize("fencepost_cluster", [SLOW], indirect=True)
        @pytest.mark.fencepost_cluster(partitions=4)
        def test_options(fencepost_cluster):
            plan = fencepost_cluster.plan
            topic = plan.cluster.topics[0]
            assert (plan.cluster.brokers, topic.partitions, topic.replication_factor) == (2, 4, 2)
            assert plan.network.latency_min_us == 900
        def lose(cluster):
            cluster.append()
            cluster.fault("crash", "follower 1 of t-0", duration_ms=10)
            cluster.pass_time(15_000)
        @pytest.mark.fencepost_cluster(brokers=2, bug="KIP-101")
        def test_judged(fencepost_cluster):
            lose(fencepost_cluster)
        @pytest.mark.fencepost_cluster(brokers=2, bug="KIP-101")
        def test_not_judged(fencepost_cluster):
            lose(fencepost_cluster)
            assert False, "of its own"
        @pytest.mark.fencepost_cluster(brokers=99)
        def test_impossible(fencepost_cluster): pass
        """,
        "--fencepost-seed=5",
        f"--fencepost-dir={pytester.path / 'kept'}",
        "--fencepost-shrink=0",
    )
    result.assert_outcomes(passed=2, failed=2, errors=1)
    text = result.stdout.str()
    assert "conformance in trace 5, found by conformance" in text and "plan.json" in text
    assert "assert False" in text and text.count("found by") == 1
    assert "expected another brokers, saw 99" in text
    kept = {path.name.rpartition("-")[0]: path / "run" for path in (pytester.path / "kept").iterdir()}
    assert set(kept) == {"test_clusters.py-test_judged", "test_clusters.py-test_not_judged"}
    own = kept["test_clusters.py-test_not_judged"]
    assert {path.name for path in own.iterdir()} == {"trace.jsonl", "trace.html", "plan.json", "timeline.txt"}
    assert f"watch it: {own / 'trace.html'} " in text and "conformance" in (own / "trace.html").read_text()
    assert "virtual" in (own / "timeline.txt").read_text()
    assert f"see the run: fencepost replay --plan {own / 'plan.json'}" in text
    (trace,) = read_traces(own / "trace.jsonl")
    assert run(plan_from_json((own / "plan.json").read_bytes())).digest == trace.digest


def test_a_test_that_fails_by_itself_keeps_what_it_recorded(suite, pytester):
    """Rule: an assertion or an exception of the test's own keeps trace and timeline; a test that passes, is
    skipped or fails as expected keeps nothing."""
    result = suite(
        """
        import pytest
        def record(history):
            with history.operation("write", argument=1):
                pass
        def test_own_assertion(fencepost_history):
            record(fencepost_history)
            assert 1 == 2
        def test_own_exception(fencepost_history):
            record(fencepost_history)
            raise OSError
        def test_passes(fencepost_history):
            record(fencepost_history)
        def test_skipped(fencepost_history):
            record(fencepost_history)
            pytest.skip("today")
        @pytest.mark.xfail
        def test_expected(fencepost_history):
            record(fencepost_history)
            assert False
        def test_nothing_recorded(fencepost_history):
            assert False
        PLAN = {"operations": [{"op_id": 1, "process": 0, "at_ms": 5, "function": "append"}], "safety_ms": 50}
        @pytest.mark.campaign(seeds=3, plan=PLAN)
        def test_of_runs(fencepost_campaign):
            for trace in fencepost_campaign.runs():
                assert trace.seed < 1
        """
    )
    result.assert_outcomes(passed=1, skipped=1, xfailed=1, failed=4)
    kept = {name.rpartition("-")[2]: files for name, files in left(pytester).items() if name != ".gitignore"}
    history = {"history.jsonl", "history.html", "timeline.txt"}
    run_ = {f"seed-1/{name}" for name in ("trace.jsonl", "trace.html", "plan.json", "timeline.txt")}
    assert kept == {"test_own_assertion": history, "test_own_exception": history, "3": run_}
    assert "kept by fencepost_history" in result.stdout.str()
    assert "the history of 1 operations" in result.stdout.str()
    assert result.stdout.str().count("watch it: ") == 3
    for path in (pytester.path / ".fencepost").glob("*test_own_*/timeline.txt"):
        assert "write(1)" in path.read_text()


def test_a_history_without_overlap_warns(suite):
    """Rule: a history that passes without a single overlapping pair is a warning of pytest; a minimum makes
    it a failure."""
    result = suite(
        """
        from fencepost.history import assert_linearizable
        def record(history):
            with history.operation("write", argument=1):
                pass
        def test_warns(fencepost_history):
            record(fencepost_history)
            assert_linearizable(fencepost_history, "register")
        def test_demands(fencepost_history):
            record(fencepost_history)
            assert_linearizable(fencepost_history, "register", minimum_overlap=1)
        """
    )
    result.assert_outcomes(passed=1, failed=1, warnings=1)
    text = result.stdout.str()
    assert "VacuousHistoryWarning: none of the 1 operations overlapped another one" in text
    assert "assumption_broken: 0 pairs of operations overlapped, where at least 1 were asked for" in text


@pytest.mark.java
def test_a_real_cluster_is_kept_where_the_test_itself_fails(suite, pytester) -> None:
    """Rule: a test on a cluster of processes that fails by its own assertion keeps trace, timeline and the
    cluster's folder, says where, and leaves no process."""
    if shutil.which("java") is None:
        pytest.skip("no Java runtime")
    pytest.importorskip("kazoo")
    pytest.importorskip("pyspark")
    kept = pytester.path / "kept"
    result = suite(
        """
        import pytest
        @pytest.mark.fencepost_cluster(real=True, brokers=1)
        def test_fails(fencepost_cluster):
            assert fencepost_cluster.append().outcome == "ok"
            assert 1 == 2
        """,
        f"--fencepost-dir={kept}",
    )
    result.assert_outcomes(failed=1)
    assert "assert 1 == 2" in result.stdout.str() and "kept by fencepost_cluster" in result.stdout.str()
    (folder,) = kept.iterdir()
    assert "test_fails" in folder.name
    (trace,) = read_traces(folder / "run" / "trace.jsonl")
    assert next(operation.function for operation in trace.operations) == "append"
    assert "append" in (folder / "run" / "timeline.txt").read_text()
    assert (folder / "cluster").is_dir() and not ProcessCluster.load(folder / "cluster").alive()


CLAIMING = """
import pytest
from pathlib import Path

@pytest.mark.fencepost_claims({"clock_uncertainty_ns": 7, "broker": {"offsets.retention.minutes": 1}})
def test_of_an_object(fencepost_history):
    claims = fencepost_history.trace().claims
    assert (claims.clock_uncertainty_ns, claims.offsets_expiry_ms) == (7, 60_000)

@pytest.mark.fencepost_claims("claims.json", broker_config="server.properties")
def test_of_files(fencepost_history):
    claims = fencepost_history.trace().claims
    assert (claims.clock_uncertainty_ns, claims.offsets_expiry_ms) == (8, 120_000)

@pytest.mark.fencepost_claims({"clock_uncertainty_ns": 9})
class TestClosest:
    def test_of_the_class(self, fencepost_history):
        assert fencepost_history.trace().claims.clock_uncertainty_ns == 9
    @pytest.mark.fencepost_claims({"clock_uncertainty_ns": 10})
    def test_of_the_test(self, fencepost_history):
        assert fencepost_history.trace().claims.clock_uncertainty_ns == 10

def test_none(fencepost_history):
    assert fencepost_history.trace().claims.clock_uncertainty_ns == 0

@pytest.mark.fencepost_claims({"clock_uncertainty": 9})
def test_wrong_name(fencepost_history): pass

@pytest.mark.fencepost_claims(9)
def test_wrong_type(fencepost_history): pass

@pytest.mark.fencepost_claims(clams={})
def test_wrong_argument(fencepost_history): pass

@pytest.mark.fencepost_claims("nowhere.json")
def test_no_file(fencepost_history): pass

@pytest.mark.fencepost_claims({"clock_uncertainty_ns": 9})
def test_of_a_cluster(fencepost_cluster): pass

@pytest.mark.fencepost_claims({"assumption_broken": "the clients were cut off"})
def test_of_a_kafka(fencepost_kafka):
    assert fencepost_kafka.trace().claims.assumption_broken == "the clients were cut off"
    assert fencepost_kafka.verdict(("log",)).decision.value == "assumption_broken"
"""


def test_claims_of_a_marker(suite, pytester):
    """Rule: a marker takes what `claimed` takes, in Python or as files; the closest one counts, for a
    recorded history and for a Kafka; a mistake is one sentence."""
    pytester.path.joinpath("claims.json").write_text('{"clock_uncertainty_ns": 8}')
    pytester.path.joinpath("server.properties").write_text("offsets.retention.minutes=2\n")
    result = suite(CLAIMING, "--fencepost-repeat", "0")
    result.assert_outcomes(passed=5, failed=1, errors=5)
    text = result.stdout.str()
    assert "expected fencepost_claims with fencepost_history or fencepost_kafka" in text
    assert "assumption_broken: the clients were cut off" in text
    assert "expected claims out of check" in text and "'clock_uncertainty'" in text
    assert text.count("expected fencepost_claims(claims, broker_config=FILE)") == 2
    assert "expected a readable JSON file" in text and "nowhere.json" in text
