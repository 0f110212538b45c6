"""`tools.triage`: the measures are those of the literature, and the ground truth is mixed as it says."""

import pytest
from attrs import evolve

from fencepost.bugs import BUGS
from fencepost.campaign.causes.cause import Cause, Passing
from fencepost.campaign.causes.neighbours import Neighbour
from fencepost.campaign.causes.parting import Parting
from fencepost.mining.triage.bugs import Bug, Example, Shared
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.plan import Plan
from fencepost.traces.store import TraceStore
from fencepost.traces.trace import Trace
from tests.checkers import lab
from tools.triage import runs
from tools.triage.__main__ import page_lines
from tools.triage.causes import words_of
from tools.triage.dataset import mix
from tools.triage.measure import adjusted_rand, may_be_together, measure
from tools.triage.own_steps import OWN_STEP, is_own
from tools.triage.runs import chunks_of, harvest, kept_of, of_none


def bug(number: int, feature: str = "") -> Bug:
    share = Shared(
        feature=feature, bad=1, of_bad=1, healthy=0, of_healthy=1, ochiai=1, likelihood_ratio=1, p=0
    )
    example = Example(source="s", trace_id=1, operations=1)
    return Bug(
        number=number, name=str(number), anomaly="lost_write", traces=1, anomalies={}, profiles={},
        first=example, smallest=example, items={}, shares=(share,) if feature else (),
    )  # fmt: skip


def test_the_index_is_hubert_and_arabies() -> None:
    """Rule: 1 for equal partitions whatever the names, about 0 by chance, and the textbook's value in
    between."""
    assert adjusted_rand("aabbcc", "xxyyzz") == 1.0
    assert adjusted_rand([0, 0, 1, 1], [0, 0, 1, 2]) == pytest.approx(4 / 7)
    assert adjusted_rand([0, 0, 1, 1], [0, 1, 0, 1]) == pytest.approx(-0.5)


def test_a_bug_without_a_group_of_its_own_is_lost() -> None:
    """Rule: a bug is lost where another has the majority of each of its groups; a trace with two bugs counts
    apart."""
    truth = {1: ["KAFKA-708"], 2: ["KAFKA-708"], 3: ["KIP-101"], 4: ["KIP-101"], 5: ["KIP-101", "KAFKA-708"]}
    own = "step: partition_state, ISR empty"
    found = measure(truth, {1: 1, 2: 1, 3: 1, 4: 2, 5: 1}, [bug(1, own), bug(2)])
    assert (
        found.lost == []
        and found.most_groups == 2
        and (found.told, found.ambiguous, found.found_one) == (1, 1, 1)
    )
    found = measure(truth, {1: 1, 2: 1, 3: 1, 5: 1}, [bug(1, own)])
    assert found.lost == ["KIP-101"]


def test_a_trace_with_two_bugs_may_be_in_two_groups() -> None:
    """Rule: both are found if its own group and those that it shows also are of both bugs; a trace with one
    bug that is in a group of another one too is invented."""
    truth = {1: ["KAFKA-708"], 2: ["KIP-101"], 3: ["KAFKA-708", "KIP-101"], 4: ["KAFKA-708", "KIP-101"]}
    labels = {1: 1, 2: 2, 3: 1, 4: 1}
    found = measure(truth, labels, [bug(1), bug(2)], {1: [2], 2: [], 3: [2], 4: []})
    assert (found.ambiguous, found.found_one, found.found_both, found.invented) == (2, 2, 1, 1)


def test_the_page_names_what_is_lost_and_what_is_in_several_groups() -> None:
    """Rule: bugs that triage gets wrong are rows, the others a number; what was left out is named."""
    truth = {n: [name] for n, name in enumerate(["KIP-101", "KIP-101", "KAFKA-708", "R10", "R10"])}
    found = measure(truth, {0: 1, 1: 2, 2: 3, 3: 3, 4: 3}, [bug(1), bug(2), bug(3)])
    first, *lines = page_lines(found, ["KIP-320"], "5 bad traces of 100, from seed 7")
    assert first.startswith("5 bad traces of 100, from seed 7: 3 groups of 3 bugs, adjusted Rand index 0.")
    assert first.endswith("1 bugs are in one group each, where they have the majority.")
    assert "| KIP-101 | 2 | 2 | yes |" in lines and "| KAFKA-708 | 1 | 1 | no |" in lines
    assert not any("R10" in line for line in lines)
    assert "1 bugs have no group of their own (KAFKA-708)" in lines[-1]
    assert lines[-1].endswith("Too few bad runs: KIP-320.")


def test_own_steps_are_of_planted_bugs() -> None:
    """Rule: the table names bugs of the zoo only; a bug without a row is never counted as told."""
    assert OWN_STEP.keys() <= BUGS.keys()
    assert is_own("KAFKA-1382", "isr_refused") and not is_own("KAFKA-1382", "isr_updated")
    assert not is_own("R10", "step: anything")
    assert not may_be_together("KAFKA-6082", "KAFKA-1096")


def test_a_parting_is_held_against_the_own_step_with_its_relations() -> None:
    """Rule: "in the same epoch again" is a relation between two events; the later one parts. If only clients
    were answered differently, the operation counts."""
    plan = Plan(seed=1)
    leads = [Event(time=n, name=Name.BECAME_LEADER, node=1, topic="t", partition=0, leader_epoch=3)
             for n in range(2)]  # fmt: skip
    failing = Trace(trace_id=1, plan="", seed=1, software_version="", events=tuple(leads))
    poll = Operation(
        op_id=1, process=1, function=Function.POLL, invoke_time=5, outcome=Outcome.OK, topic="t", partition=0,
        isolation="read_committed",
    )  # fmt: skip
    near = Neighbour(kind="protection", says="with it", plan=plan)

    def words(bug: str, **how: object) -> str:
        passing = (Passing(neighbour=near, **{"parting": None, **how}),)
        return words_of(bug, Cause(plan=plan, failing=failing, passing=passing, tried=1))

    second = Parting(position=1, chain=(1,), instead=None)
    assert words("KAFKA-1188", parting=second).startswith("own: ")
    assert words("KAFKA-1188", parting=Parting(position=0, chain=(0,), instead=None)).startswith("other: ")
    assert words("T5", answered=(poll, None)).startswith("own: ")
    assert words("T5", parting=second, answered=(poll, poll)).startswith("own: ")
    append = evolve(poll, function=Function.APPEND, producer_id=1)
    assert words("R10", answered=(append, evolve(append, producer_id=2))).startswith("own: ")
    assert words("R10", answered=(append, evolve(append, offset=2))).startswith("other: ")
    assert words("T3", answered=(poll, None)).startswith("other: ")
    assert words("T5") == "the runs do not part"


def test_bad_runs_stand_once_among_healthy_ones(tmp_path) -> None:
    """Rule: each bad run is there once, one trace in so many; healthy ones are repeated under ids of their
    own."""
    for key, seeds in (("KIP-101", (1, 2)), ("healthy", (10, 11, 12))):
        lab.stored(
            tmp_path / "runs" / key,
            (Trace(trace_id=seed, seed=seed, plan="", software_version="test") for seed in seeds),
            sealed=False,
        )
    truth = mix(tmp_path, ["KIP-101"], runs=5, one_in=10, seed=3)
    traces = {trace.trace_id: trace.seed for trace in TraceStore.open(tmp_path / "traces")}
    assert sorted(traces) == list(range(20)) and list(truth.values()) == [["KIP-101"], ["KIP-101"]]
    assert sorted(traces[trace_id] for trace_id in truth) == [1, 2]
    assert {traces[trace_id] for trace_id in traces.keys() - truth.keys()} == {10, 11, 12}


def test_a_harvest_goes_on_where_it_ended(tmp_path, monkeypatch) -> None:
    """Rule: no seed is run twice, and what was kept is counted; a chunk has all its runs or none."""
    monkeypatch.setattr(runs, "CHUNK", 4)
    wanted = [evolve(of_none(3), seeds=12)]
    first = list(harvest(tmp_path, wanted, first_seed=5, jobs=1))
    assert first == [("healthy", 4, 4)]
    assert list(harvest(tmp_path, wanted, first_seed=5, jobs=1)) == []
    more = [evolve(wanted[0], runs=6)]
    assert list(harvest(tmp_path, more, first_seed=5, jobs=1)) == [("healthy", 8, 8)]
    seeds = sorted(trace.seed for trace in TraceStore.open(tmp_path / "runs" / "healthy"))
    assert seeds == list(range(5, 13)) and kept_of(chunks_of(tmp_path, "healthy")) == 8
