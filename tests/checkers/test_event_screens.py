"""checkers/events against the plain code: no screen passes a trace that the plain code does not, and what
columns answer is the plain code's answer."""

import os
import subprocess
import sys
from collections.abc import Iterable
from random import Random

import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fencepost.campaign.bugs import BUGS
from fencepost.campaign.run.run import run
from fencepost.campaign.swarm.swarm import swarm
from fencepost.checkers.events import table
from fencepost.checkers.events.kernels import words
from fencepost.checkers.verdict import Decision
from fencepost.traces.errors import TraceError
from fencepost.traces.events import Event, Name
from fencepost.traces.plan import ClusterOptions, Plan, TopicOptions
from fencepost.traces.plan_json import plan_to_json
from fencepost.traces.schema import EVENT_COLUMNS
from fencepost.traces.trace import Trace
from tests.checkers.conformance_variants import stories
from tests.checkers.control_traces import control_trace
from tests.checkers.event_screens import (
    CAUSES,
    JUDGES,
    NUMBERS,
    answers,
    bent,
    bounded,
    compacted,
    missed,
    row_group,
    suspicious,
)
from tests.checkers.test_invariants_differential import events_trace, reads_trace, restarts_trace
from tests.checkers.traces_by_hand import healthy_start, leads, state, trace

pytestmark = pytest.mark.xdist_group("event_screens")
"""One process compiles the kernels, and runs the simulator."""
STORIES = stories()
PLANTED = {
    "KAFKA-532": 7,
    "KAFKA-6082": 9,
    "KAFKA-708": 7,
    "KAFKA-1188": 1,
    "KIP-380": 2,
    "KAFKA-3978": 24,
    "KAFKA-340": 28,
    "KAFKA-1681": 50,
    "KAFKA-13194": 129,
}
"""Planted bugs that show in events, each with a seed that finds it."""


@pytest.fixture(autouse=True)
def _columns_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small row groups too."""
    monkeypatch.setattr(table, "FEW", 0)


def differences(check: str, traces: Iterable[Trace]) -> list[tuple[int, object, object]]:
    return [(one.trace_id, plain, found) for one, plain, found in answers(check, traces) if plain != found]


@pytest.fixture(scope="module")
def recorded() -> list[Trace]:
    """Runs of the simulator: healthy ones of several profiles, and some with a planted bug."""
    healthy = [
        swarm(seed, profile)
        for profile in ("default", "reassignment", "storage", "elections")
        for seed in range(5)
    ]
    planted = [swarm(seed, BUGS[bug].profile, bugs=(bug,)) for bug, seed in PLANTED.items()]
    return [run(plan) for plan in (*healthy, *planted)]


@pytest.mark.parametrize("check", JUDGES)
def test_recorded_runs_have_the_plain_verdicts(check: str, recorded: list[Trace]) -> None:
    """Rule: over columns, each recorded run has the verdict and the certificate of the plain code."""
    assert differences(check, recorded) == []


@pytest.mark.parametrize("check", JUDGES)
def test_healthy_runs_are_seldom_suspicious(check: str, recorded: list[Trace]) -> None:
    """Rule: the screen is worth it: most healthy runs need no plain code."""
    assert suspicious(check, recorded[:10]).sum() <= 1


@pytest.mark.parametrize("check", JUDGES)
def test_no_bent_run_is_passed(check: str, recorded: list[Trace]) -> None:
    """Rule: the screen passes no recorded run with an event changed, lost, doubled or moved that the plain
    code convicts."""
    traces = [bent(Random(f"{number} {k}"), one) for number, one in enumerate(recorded) for k in range(3)]
    assert missed(check, traces) == []


@pytest.mark.parametrize("check", JUDGES)
def test_no_small_trace_is_passed(check: str) -> None:
    """Rule: the same of seeded random small traces, and of stories of the model bent in one place."""
    seeds = range(600)
    traces = [bounded(events_trace(Random(f"screen {seed}"))) for seed in seeds]
    traces += [bent(Random(f"screen {seed}"), STORIES[seed % len(STORIES)]) for seed in seeds]
    traces += [bounded(reads_trace(Random(f"screen {seed}"))) for seed in seeds]
    traces += [bounded(restarts_trace(Random(f"screen {seed}"))) for seed in seeds]
    traces += [control_trace(Random(f"screen {seed}")) for seed in seeds]
    traces += [compacted(Random(f"gone {seed}"), one) for seed, one in enumerate(traces[:600])]
    assert missed(check, traces) == []


CHANGES = st.lists(
    st.tuples(
        st.integers(0, 500),
        st.one_of(
            st.tuples(st.sampled_from(NUMBERS), st.integers(-2, 6)),
            st.tuples(
                st.sampled_from(("isr", "replicas", "values")),
                st.lists(st.integers(0, 4), max_size=3).map(tuple),
            ),
            st.tuples(st.just("cause"), st.sampled_from(CAUSES)),
            st.tuples(st.just("name"), st.sampled_from(tuple(Name))),
        ),
    ),
    min_size=1,
    max_size=4,
)


@settings(
    max_examples=150, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
@given(story=st.integers(0, len(STORIES) - 1), changes=CHANGES)
def test_no_perturbed_table_is_passed(story: int, changes: list[tuple[int, tuple[str, object]]]) -> None:
    """Rule: whatever the columns of a few events of a legal story become, neither screen passes what the
    plain code does not."""
    events = list(STORIES[story].events)
    for at, (column, value) in changes:
        event = events[at % len(events)]
        events[at % len(events)] = evolve(event, **{column: value}, topic=event.topic or "t")
    table.FEW = 0
    for check in JUDGES:
        assert missed(check, [evolve(STORIES[story], events=tuple(events))]) == []


LEFT_OUT = {
    "invariants": (
        "APPENDED",
        "HIGH_WATERMARK",
        "BECAME_LEADER",
        "PARTITION_STATE",
        "CONTROL_REQUEST_APPLIED",
        "REPLICA_LOG",
        "LIVENESS_FAILED",
    ),
    "conformance": ("APPENDED", "HIGH_WATERMARK", "BECAME_LEADER", "REPLICA_LOG", "LOG_RECOVERED"),
}


@pytest.mark.parametrize(
    ("check", "name"), [(check, name) for check, names in LEFT_OUT.items() for name in names]
)
def test_a_screen_that_leaves_a_name_out_is_noticed(
    monkeypatch: pytest.MonkeyPatch, check: str, name: str
) -> None:
    """Rule: the comparison fails for a screen that does not look at the events of one name, that is at what
    is asked of them."""
    traces = [bent(Random(f"left out {seed}"), STORIES[seed % len(STORIES)]) for seed in range(300)]
    traces += [bounded(events_trace(Random(f"left out {seed}"))) for seed in range(300)]
    monkeypatch.setitem(words.NAME_CODES, Name[name], words.OTHER)
    assert missed(check, traces)


def test_a_screen_with_a_rule_left_out_is_noticed() -> None:
    """Rule: the comparison fails for every kernel that decides something, if it says that all is well."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.checkers.event_screen_faults"],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert (done.returncode, done.stdout.splitlines()) == (0, []), done.stderr


def test_reads_that_went_back_are_found_over_columns() -> None:
    """Rule (HW-MONO): the operations are looked at too; seeded reads have the plain verdicts and
    certificates."""
    assert (
        differences("invariants", [bounded(reads_trace(Random(f"shown {seed}"))) for seed in range(400)])
        == []
    )


def test_compacted_logs_are_judged_over_columns() -> None:
    """Rule (COMMIT-SAFE): a record that compaction took is looked up by its key: the plain verdicts, and
    where nothing is wrong no suspicion."""
    traces = [
        compacted(Random(f"keys {seed}"), bounded(events_trace(Random(f"keys {seed}"))))
        for seed in range(400)
    ]
    assert differences("invariants", traces) == []
    wrong = [bool(JUDGES["invariants"][0](trace).findings) for trace in traces]
    assert suspicious("invariants", traces).tolist() == wrong


def test_traces_that_columns_cannot_tell_are_judged_by_the_plain_code() -> None:
    """Rule: a trace with a broker beyond the bits, an offset beyond all logs, or a broker twice in an ISR is
    suspicious, and has the plain verdict."""
    start = healthy_start(10, 11)
    strange = [
        trace(*start, state(-7, 1, 0, 1, 2)),
        trace(*start, evolve(start[-1], offset=2**62)),
        trace(*start, state(9, 2, 1, 2, 2)),
        trace(*start, *(state(9, 2, 1 + k, 2, 3, 2000 + k) for k in range(70))),
    ]
    for check in JUDGES:
        assert differences(check, strange) == []
        assert suspicious(check, strange)[:3].all()


def test_brokers_of_any_number_and_traces_without_events_are_told() -> None:
    """Rule: brokers 1001 and up are brokers like others, a trace without events is one, and more partitions
    than fit are the plain code's."""
    legal = trace(*healthy_start(10, 11))
    far = tuple(
        evolve(
            event,
            node=event.node + 1000 if event.node >= 0 else -1,
            leader=event.leader + 1000 if event.leader >= 0 else -1,
            isr=tuple(member + 1000 for member in event.isr),
        )
        for event in legal.events
    )
    many = tuple(
        evolve(state(1, 1, 0, 1), topic=f"t{number % 9}", partition=number, time=number)
        for number in range(600)
    )
    traces = [trace(), evolve(legal, events=far), trace(), evolve(legal, events=many), legal]
    for check in JUDGES:
        assert differences(check, traces) == []
        assert suspicious(check, [traces[1], traces[4]]).tolist() == [False, False]
    assert suspicious("invariants", traces).tolist() == [False, False, False, True, False]


def test_an_unclean_election_is_asked_of_the_plan() -> None:
    """Rule: a leader from outside the ISR is no suspicion where the plan allows it, and is one where it does
    not or cannot be read."""
    events = (*healthy_start(10, 11), state(1, 1, 0, 1, version=1), state(9, 3, 1, 3))
    plans = [
        plan_to_json(
            Plan(
                seed=1,
                cluster=ClusterOptions(topics=(TopicOptions(name=name, unclean_leader_election=allowed),)),
            )
        )
        for name, allowed in (("t", True), ("t", False), ("u", True))
    ]
    traces = [trace(*events, plan=plan) for plan in (*plans, "{", "")]
    worse = (*events, state(9, 2, 2, 2, 3))  # nobody joins in an election
    traces += [trace(*worse, plan=plans[0]), trace(*healthy_start(10), plan=plans[1])]
    assert differences("conformance", traces) == []
    assert suspicious("conformance", traces).tolist() == [False, True, True, True, True, True, False]


def test_a_trace_leaves_nothing_behind() -> None:
    """Rule: what a screen remembers of one trace does not touch the next: each alone is as suspicious as
    among the others."""
    traces = [bent(Random(f"behind {seed}"), STORIES[seed % len(STORIES)]) for seed in range(60)]
    for check in JUDGES:
        together = suspicious(check, traces).tolist()
        assert together == [bool(suspicious(check, [one])[0]) for one in traces]


def test_rows_out_of_order_are_put_in_order(recorded: list[Trace]) -> None:
    """Rule: the traces of a table may stand in another order than their headers, and the columns say the
    same."""
    of, _ = row_group(recorded[:12])
    for check, (_, by_columns, _) in JUDGES.items():
        expected = by_columns(row_group(recorded[:12])[0])
        turned = table.EventTables(tables=of.tables, headers=tuple(reversed(of.headers)))
        assert by_columns(turned) == expected, check


@pytest.mark.parametrize("few", [0, 10**9])
def test_events_of_no_trace_and_unknown_names_are_refused(monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    """Rule: an event of a trace that has no row, or of a name that nobody knows, is an error in one sentence,
    whether columns are used or not."""
    monkeypatch.setattr(table, "FEW", few)
    of, _ = row_group([trace(*healthy_start(10)), trace(*healthy_start(10))])
    for check, (_, by_columns, _) in JUDGES.items():
        orphans = evolve(of.tables, traces=of.tables.traces.slice(0, 1))
        with pytest.raises(TraceError, match="a row in traces for every trace"):
            by_columns(table.EventTables(tables=orphans, headers=of.headers[:1]))
        at = of.tables.events.schema.get_field_index("name")
        named = of.tables.events.set_column(
            at, of.tables.events.schema.field(at), [["nonsense"] * of.tables.events.num_rows]
        )
        with pytest.raises(TraceError, match="nonsense"):
            by_columns(table.EventTables(tables=evolve(of.tables, events=named), headers=of.headers)), check


def test_every_event_column_is_read_or_known_not_to_matter() -> None:
    """Rule: a new column of events is looked at here, or listed as one that no event check reads."""
    unread = {"time", "detail"}
    assert {field.lower() for field in EVENT_COLUMNS} == {
        *NUMBERS, "name", "topic", "cause", "isr", "replicas", "values", *unread
    }  # fmt: skip
    assert set(EVENT_COLUMNS) == set(Event.__slots__) - {"__weakref__"}
    assert leads(1, 0, 1).name is Name.BECAME_LEADER
    assert Decision.OK
