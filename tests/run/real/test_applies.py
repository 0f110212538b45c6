"""Which invariants and which steps of the model apply to which system: the table of
docs/reference/real-kafka.md is what the code says.

A rule applies to a system if a story that it convicts still convicts when all is taken out that the system's
sources never say. The stories are those of tests/checkers. What sources say is read in their code: the names
of events, and the causes of marks."""

import ast
import importlib
import inspect
from functools import cache
from pathlib import Path

import pytest
from attrs import evolve

from fencepost.checkers import invariants
from fencepost.checkers.verdict import Decision
from fencepost.model.refinement import ACTIONS, STEPS_WITHOUT_LOGS
from fencepost.run.real.real_run import NEVER_HEALED
from fencepost.traces.anomalies import BY_NAME
from fencepost.traces.events import Event, Name
from tests.checkers.traces_by_hand import trace as trace_by_hand

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "real-kafka.md"
CHECKERS = Path(invariants.__file__).parent
STORIES = ("", "_control", "_edges", "_hw_kept", "_hw_mono", "_synced")
"""Modules of tests/checkers with stories."""
INSIDE, REAL = "fencepost.systems.apache_kafka.inside", "fencepost.run.real"
RUN = (f"{REAL}.real_run", f"{REAL}.striking", f"{REAL}.observer")
FILES = ("fencepost.audit.runs", f"{REAL}.audited")
BROKERS = (
    f"{INSIDE}.broker_log",
    f"{INSIDE}.partition_changes",
    f"{INSIDE}.together",
    "fencepost.run.durable",
)
SOURCES = {
    "KRaft": (*RUN, *FILES, *BROKERS, f"{INSIDE}.metadata_log"),
    "ZooKeeper": (*RUN, *FILES, *BROKERS, f"{INSIDE}.zookeeper_log"),
    "`processes`": (*RUN, *FILES),
    "others": RUN,
}
"""The modules that make the events of a run, by system. `others`: embedded, kfake, librdkafka-mock,
external."""
NOT_RECORDED = {(f"{REAL}.striking", Name.APPENDED)}
"""Made for faults that follow an acknowledgement, and in no trace."""
NEVER = {
    ("high_watermark_forgotten", "KRaft"): "a broker that loads a log names its start",
    ("high_watermark_forgotten", "ZooKeeper"): "a broker that loads a log names its start",
    ("deletion_incomplete", "KRaft"): "one record is the request and its end",
}
"""What a source says, but never so that the rule can be broken."""


def given_by(node):
    """What a call or a dictionary is given: an event is made of it. A name that is only compared is not."""
    if isinstance(node, ast.Call):
        return [*node.args, *(keyword.value for keyword in node.keywords)]
    return node.values if isinstance(node, ast.Dict) else []


@cache
def said_by(module):
    """(names of events, texts) in the code of a module."""
    loaded = importlib.import_module(module)
    tree = ast.parse(inspect.getsource(loaded))
    names = {
        Name[node.attr]
        for parent in ast.walk(tree)
        for node in given_by(parent)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Name"
    }
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    return names, texts | {value for value in vars(loaded).values() if type(value) is str}


def says(system, event):
    """Whether a run against this system may have such an event."""
    by_cause = event.name in (Name.MARK, Name.LIVENESS_FAILED)
    for module in SOURCES[system]:
        names, texts = said_by(module)
        recorded = event.name in names and (module, event.name) not in NOT_RECORDED
        if recorded and (not by_cause or event.cause in texts):
            return True
    return False


MORE = (
    Event(time=0, name=Name.IMPLEMENTATION_ERROR, node=1, cause="AssertionError"),
    Event(time=0, name=Name.LIVENESS_FAILED, cause=NEVER_HEALED),
    Event(time=0, name=Name.MARK, node=1, cause="illegal_transition_refused"),
)
"""Stories of one event each, which are convicted elsewhere."""


@pytest.fixture(scope="module")
def stories():
    """(trace, finding) of everything that is convicted in the tests of the invariants, by anomaly."""
    found, judge = {}, invariants.judge

    def recording(trace, *more):
        verdict = judge(trace, *more)
        for finding in verdict.findings if verdict.decision is Decision.ILLEGAL else ():
            found.setdefault(finding.anomaly, []).append((trace, finding))
        return verdict

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(invariants, "judge", recording)
        for name in STORIES:
            module = importlib.import_module(f"tests.checkers.test_invariants{name}")
            for test, function in vars(module).items():
                if test.startswith("test_") and not inspect.signature(function).parameters:
                    function()
        for event in MORE:
            invariants.judge(trace_by_hand(event))
    return found


def convicts(system, trace, finding):
    """Whether the same events convict without what the system never says."""
    events = tuple(event for event in trace.events if says(system, event))
    proof = [trace.events[position] for position in finding.events]
    return any(
        other.anomaly == finding.anomaly
        and other.operations == finding.operations
        and [events[position] for position in other.events] == proof
        for other in invariants.judge(evolve(trace, events=events)).findings
    )


def applies(stories, anomaly, system):
    """Whether some story shows it."""
    if (anomaly, system) in NEVER:
        return False
    return any(convicts(system, *story) for story in stories[anomaly])


def rows_of(stories):
    """The lines of the list: the anomalies that the same systems can show."""
    found = {}
    for anomaly in sorted(stories, key=list(BY_NAME).index):
        systems = [system for system in SOURCES if applies(stories, anomaly, system)]
        found.setdefault(", ".join(systems) or "none", []).append(f"`{anomaly}`")
    for systems, anomalies in found.items():
        yield f"- {systems}: {', '.join(anomalies)}"


def test_every_anomaly_of_the_invariants_has_a_story(stories):
    """What an invariant adds is in the table; STORED repeats what an audit found."""
    added = {
        node.args[0].value
        for path in CHECKERS.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "add"
        and node.args
        and isinstance(node.args[0], ast.Constant)
    }
    assert added and added <= stories.keys(), added - stories.keys()


def test_the_list_of_invariants_is_what_the_code_says(stories):
    """Generated: put these lines into the page if they differ."""
    lines = "\n".join(rows_of(stories))
    assert lines in PAGE.read_text(encoding="utf-8"), lines


def test_what_cannot_be_broken_would_be_in_the_table_otherwise(stories):
    """An entry of NEVER that changes nothing is dead."""
    for anomaly, system in NEVER:
        assert any(convicts(system, *story) for story in stories[anomaly]), (anomaly, system)


def test_the_steps_are_what_the_code_says():
    """Generated: put this line into the page if it differs."""
    names = [f"`{name.value}`" for name in ACTIONS if name in STEPS_WITHOUT_LOGS]
    line = f"Of real brokers, in part: {', '.join(names)}. Of the simulation, all."
    assert line in PAGE.read_text(encoding="utf-8"), line


def test_a_source_that_says_nothing_convicts_nobody(stories, monkeypatch):
    """Planted: without the events of decisions and brokers only the history is left."""
    monkeypatch.setitem(SOURCES, "KRaft", (f"{REAL}.times",))
    found = {anomaly for anomaly in stories if applies(stories, anomaly, "KRaft")}
    assert found == {"high_watermark_regressed", "read_outside_bounds"}
