"""checkers/events against the rules on whole traces: what the tables of a row group are decoded to, and what
is left out of their operations, changes no verdict."""

from collections.abc import Iterable
from random import Random

import pyarrow as pa
import pytest
from attrs import evolve

from fencepost.campaign.swarm.swarm import swarm
from fencepost.checkers.events import event_values
from fencepost.checkers.events.shown import shown_ends
from fencepost.checkers.invariants.hw_mono import shown_by
from fencepost.run.simulated.run import run
from fencepost.traces.errors import TraceError
from fencepost.traces.plan import ClusterOptions, Plan, TopicOptions
from fencepost.traces.plan_json import plan_to_json
from fencepost.traces.tables import events_of_table
from fencepost.traces.trace import Trace
from tests.bugs.found import FOUND
from tests.checkers.conformance_variants import stories
from tests.checkers.control_traces import control_trace
from tests.checkers.event_tables import JUDGES, answers, bent, bounded, compacted, row_group
from tests.checkers.test_invariants_differential import events_trace, reads_trace, restarts_trace
from tests.checkers.traces_by_hand import healthy_start, state, trace
from tests.selfcheck.amounts import amount

STORIES = stories()
PLANTED = (
    *("KAFKA-532", "KAFKA-6082", "KAFKA-708", "KAFKA-1188", "KIP-380", "KAFKA-3978", "KAFKA-340"),
    *("KAFKA-1681", "KAFKA-13194"),
)
"""Planted bugs that show in events."""


def differences(check: str, traces: Iterable[Trace]) -> list[tuple[int, object, object]]:
    return [(one.trace_id, plain, found) for one, plain, found in answers(check, traces) if plain != found]


@pytest.fixture(scope="module")
def recorded() -> list[Trace]:
    """Runs of the simulator: healthy ones, and some with a planted bug."""
    healthy = [swarm(seed) for seed in range(20)]
    planted = [FOUND[bug] for bug in PLANTED]
    return [run(plan) for plan in (*healthy, *planted)]


@pytest.mark.parametrize("check", JUDGES)
@pytest.mark.parametrize("coded", [False, True])
def test_recorded_runs_have_the_same_verdicts(check: str, coded: bool, recorded: list[Trace]) -> None:
    """Rule: out of tables, each recorded run has the verdict and the certificate that it has as a trace, also
    where strings are dictionaries."""
    of, numbered = row_group(recorded, coded=coded)
    assert [one.events for one in of.traces] == [one.events for one in numbered]
    assert differences(check, recorded) == []


@pytest.mark.parametrize("check", JUDGES)
def test_bent_runs_and_small_traces_have_the_same_verdicts(check: str, recorded: list[Trace]) -> None:
    """Rule: the same of runs with an event changed, lost, doubled or moved, of seeded random small traces,
    and of stories of the model bent in one place."""
    seeds = range(amount(60, 150))
    traces = [bent(Random(f"{number}"), one) for number, one in enumerate(recorded)]
    traces += [bounded(events_trace(Random(f"screen {seed}"))) for seed in seeds]
    traces += [bent(Random(f"screen {seed}"), STORIES[seed % len(STORIES)]) for seed in seeds]
    traces += [bounded(restarts_trace(Random(f"screen {seed}"))) for seed in seeds]
    traces += [control_trace(Random(f"screen {seed}")) for seed in seeds]
    assert differences(check, traces) == []


def test_reads_that_went_back_are_found_over_columns() -> None:
    """Rule (HW-MONO): the operations are looked at too; seeded reads have the plain verdicts and
    certificates."""
    assert (
        differences(
            "invariants", [bounded(reads_trace(Random(f"shown {seed}"))) for seed in range(amount(150, 400))]
        )
        == []
    )


def test_compacted_logs_are_judged_over_columns() -> None:
    """Rule (COMMIT-SAFE): a record that compaction took is looked up by its key: the same
    verdicts."""
    traces = [
        compacted(Random(f"keys {seed}"), bounded(events_trace(Random(f"keys {seed}"))))
        for seed in range(amount(150, 400))
    ]
    assert differences("invariants", traces) == []


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


def test_rows_out_of_order_are_put_in_order(recorded: list[Trace]) -> None:
    """Rule: the traces of a table may stand in another order than their headers, and the columns say the
    same."""
    of, _ = row_group(recorded[:12])
    for check, (_, by_columns) in JUDGES.items():
        expected = by_columns(row_group(recorded[:12])[0])
        turned = event_values.EventTables(tables=of.tables, headers=tuple(reversed(of.headers)))
        assert by_columns(turned) == expected, check


def test_events_of_no_trace_and_unknown_names_are_refused() -> None:
    """Rule: an event of a trace that has no row, or of a name that nobody knows, is refused in one
    sentence."""
    of, _ = row_group([trace(*healthy_start(10)), trace(*healthy_start(10))])
    for check, (_, by_columns) in JUDGES.items():
        orphans = evolve(of.tables, traces=of.tables.traces.slice(0, 1))
        with pytest.raises(TraceError, match="a row in traces for every trace"):
            by_columns(event_values.EventTables(tables=orphans, headers=of.headers[:1]))
        at = of.tables.events.schema.get_field_index("name")
        named = of.tables.events.set_column(
            at, of.tables.events.schema.field(at), [["nonsense"] * of.tables.events.num_rows]
        )
        with pytest.raises(TraceError, match="nonsense"):
            (
                by_columns(
                    event_values.EventTables(tables=evolve(of.tables, events=named), headers=of.headers)
                ),
                check,
            )


def test_without_its_operations_a_read_that_went_back_would_be_missed(monkeypatch) -> None:
    """The tests above can fail: if no end is decoded, HW-MONO convicts nobody."""
    monkeypatch.setattr(event_values, "shown_ends", lambda operations, ids: {})
    traces = [bounded(reads_trace(Random(f"shown {seed}"))) for seed in range(60)]
    assert differences("invariants", traces)


def test_events_of_a_table_are_cut_between_traces() -> None:
    """Rule: a trace without events has none, those of a trace may stand in two places, and an empty table
    is one."""
    of, numbered = row_group([trace(*healthy_start(10)), trace(), trace(*healthy_start(11))])
    events = of.tables.events
    found = events_of_table(events, {0, 1, 2})
    assert found == {0: numbered[0].events, 2: numbered[2].events}
    assert events_of_table(events.slice(0, 0), {0}) == {}
    halves = events_of_table(pa.concat_tables([events, events.slice(0, 2)]), {0, 1, 2})
    assert halves[0] == numbered[0].events + numbered[0].events[:2]


def test_ends_of_columns_are_those_of_operations() -> None:
    """Rule: which ends clients were shown is read the same from columns and from objects."""
    of, numbered = row_group([reads_trace(Random(f"ends {seed}")) for seed in range(40)])
    found = shown_ends(of.tables.operations, [trace.trace_id for trace in numbered])
    expected = {trace.trace_id: list(shown_by(trace.operations)) for trace in numbered}
    assert found == {trace_id: ends for trace_id, ends in expected.items() if ends}
    assert sum(map(len, found.values())) > 100
    with pytest.raises(TraceError, match="a row in traces for every trace"):
        shown_ends(of.tables.operations, [])
