"""The machines of the simulated cluster: healthy ones complain of nothing, planted bugs are found, and what
is found can be run again in two ways."""

import runpy
import subprocess
import sys

import pytest
from hypothesis import seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test

from fencepost.bugs import BUGS
from fencepost.checkers.verdict import Decision
from fencepost.machines.cluster.found import FoundError, program_of
from fencepost.machines.cluster.machines import (
    MACHINES,
    ClusterMachine,
    ElectionMachine,
    RaceMachine,
    RelayMachine,
)
from fencepost.machines.cluster.steps import ClusterSteps
from fencepost.run.simulated.run import run
from fencepost.traces.events import Name
from fencepost.traces.plan import Plan
from fencepost.traces.plan_json import plan_from_json
from tests.selfcheck.amounts import amount, machine_settings
from tools import machine_hunt as hunt

QUICK = machine_settings(amount(3, 8), 25)
FOUND_IN_ROUND = {"KAFKA-1647": 7}
"""The round of the hunt that finds a bug, where it is not the first. A change of the machine moves it; then
the hunt goes on to later ones."""


def replayed(machine, folder):
    """The machine, whose every example is run again from its plan."""

    class Replayed(machine):
        def judged(self, trace):
            assert run(plan_from_json(trace.plan)).digest == trace.digest
            return super().judged(trace)

    Replayed.folder = folder
    return Replayed


def planted(machine, bug, folder, *, counts=True):
    """The machine with a bug; only anomalies of its own invariant count, or all."""
    changes = {"bugs": (bug,), "folder": folder, "counts": BUGS[bug].anomalies if counts else None}
    return type("Planted", (machine,), changes)


@pytest.mark.parametrize("name", sorted(MACHINES))
def test_a_healthy_cluster_shows_nothing_and_its_plans_replay(name, tmp_path):
    """Rule: no oracle in lockstep and no judge complains of the cluster as it is, and the plan of each
    example has the digest of the example."""
    run_state_machine_as_test(replayed(MACHINES[name], tmp_path), settings=QUICK)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "bug"),
    [
        ("ClusterMachine", "KAFKA-708"),
        ("ClusterMachine", "KAFKA-4443"),
        ("ElectionMachine", "KAFKA-1387"),
        ("ElectionMachine", "KAFKA-532"),
        ("OutageMachine", "KAFKA-1647"),
        ("ReassignmentMachine", "KAFKA-6193"),
        ("ReassignmentMachine", "KAFKA-14140"),
    ],
)
def test_what_is_planted_is_found(name, bug, tmp_path):
    """Rule: nothing is trusted until it has failed on purpose: each machine finds bugs of its field, by an
    anomaly of their own, and its plan shows them."""
    first = FOUND_IN_ROUND.get(bug, 0)
    *_, found = hunt.hunt(bug, name, most_examples=100, first_round=first, shrink=False, folder=tmp_path)
    assert found.machine == name
    assert found.examples is not None, found
    assert found.replayed
    assert found.objected <= found.examples
    assert set(found.anomaly.split(", ")) <= BUGS[bug].anomalies


def truncated_follower(machine):
    """A follower that has an append, and has not heard that it is committed, bounces."""
    state = machine()
    state.start(seed=0, network="far", replicas=2, min_insync=1, session_ms=6_000)
    state.agrees()
    state.append(process=0, times=1, acks=-1, wait_ms=2)
    assert state.until(Name.APPENDED)  # the leader
    assert state.until(Name.APPENDED)  # the follower
    state.agrees()
    state.bounce(who="follower 1 of t-0")
    state.until(Name.TRUNCATED)
    return state


def test_the_model_objects_at_once(tmp_path):
    """Rule: the model goes in lockstep: a cut that it does not know (planted: KIP-101) ends the example right
    then, before anything is lost."""
    state = truncated_follower(planted(ClusterMachine, "KIP-101", tmp_path, counts=False))
    with pytest.raises(FoundError) as failed:
        state.agrees()
    assert failed.value.anomaly == "conformance"
    assert state.live.trace is not None
    state.teardown()  # is over already


def test_the_same_example_passes_where_nothing_is_planted(tmp_path):
    """Rule: a healthy follower keeps the append."""
    state = truncated_follower(type("Healthy", (ClusterMachine,), {"folder": tmp_path}))
    state.agrees()
    state.teardown()
    assert state.verdict.decision is Decision.OK
    assert not state.objected


def test_what_is_found_is_left_as_a_program_that_runs(tmp_path):
    """Rule: a failing example (planted: KAFKA-1096) is told as the rules that lead to it, and left as a
    program of calls, which shows the same."""
    machine = planted(ElectionMachine, "KAFKA-1096", tmp_path)
    with pytest.raises(FoundError) as failed:
        run_state_machine_as_test(
            seed(0)(machine), settings=settings(QUICK, max_examples=100, derandomize=False)
        )
    steps = [line for line in "\n".join(failed.value.__notes__).splitlines() if line.startswith("state.")]
    assert steps[0].startswith("state.start(")
    assert f"program:   {tmp_path / 'Planted.py'}" in str(failed.value)
    assert f"fencepost replay --plan {tmp_path / 'Planted.json'}" in str(failed.value)
    ran = subprocess.run(
        [sys.executable, tmp_path / "Planted.py"], capture_output=True, text=True, timeout=600, check=False
    )
    assert ran.returncode == 1, ran.stderr
    assert "fenced_controller_wrote: expected" in ran.stdout


def races(machine):
    """What was found of KAFKA-7128, as it was told."""
    state = machine()
    state.start(seed=2, network="far", replicas=3, min_insync=2, session_ms=6_000)
    first, third, proposed, updated = "follower 1 of t-0", "follower 3 of t-0", "isr_proposed", "isr_updated"
    for follower, back_ms, after_ms, then in (
        (first, 1_501, 2, [(updated, 2, 2), (proposed, 2, 60)]),
        (third, 2_501, 2, []),
        (first, 1_501, 2, [(updated, 2, 120)]),
        (third, 2_501, 120, []),
        (first, 1_501, 120, [(proposed, 30, 60), (proposed, 2, 2)]),
    ):
        state.brokers_fall_silent(follower=follower, back_ms=back_ms, after_ms=after_ms, then=then)
    return state


def found_and_costs_nothing(story, machine, bug, folder):
    """A story shows the bug that is planted, and its plan does; the machine without the bug, after the same,
    is Ok."""
    state = story(planted(machine, bug, folder))
    with pytest.raises(FoundError) as failed:
        state.teardown()
    assert failed.value.anomaly in BUGS[bug].anomalies
    assert run(plan_from_json((folder / "Planted.json").read_bytes())).digest == state.live.trace.digest
    healthy = story(type("Healthy", (machine,), {"folder": folder}))
    healthy.teardown()
    assert healthy.verdict.decision is Decision.OK
    assert not healthy.objected
    return healthy


def test_a_leader_that_falls_silent_lets_nobody_in_who_has_less(tmp_path):
    """Rule: rows of falls reach what single faults do not: with the bug planted a follower joins the ISR too
    early and leads; without it the same is Ok."""
    found_and_costs_nothing(races, RaceMachine, "KAFKA-7128", tmp_path)


def relays(machine):
    """Two rows of leaders, after which KAFKA-7415 shows: the first one moves the controller away from broker
    1."""
    state = machine()
    state.start(seed=3, network="far", replicas=3, min_insync=1, session_ms=6_000)
    at_once = [(0, "appended", 2), (0, "appended", 2)]
    state.leaders_hand_on(late="", late_ms=150, reigns=at_once, down_ms=0, acks=-1)
    behind = [(1, "high_watermark", 2), (4, "appended", 2), (0, "truncated", 2)]
    state.leaders_hand_on(late="follower 2 of t-0", late_ms=300, reigns=behind, down_ms=4_001, acks=-1)
    return state


def test_leaders_that_hand_on_behind_a_step_cost_nothing(tmp_path):
    """Rule: rows of leaders reach what quick elections do not: with the bug planted a follower cuts what is
    committed and leads; without it the same is Ok."""
    healthy = found_and_costs_nothing(relays, RelayMachine, "KAFKA-7415", tmp_path)
    leaders = {event.node for event in healthy.live.run.cluster.events if event.name is Name.BECAME_LEADER}
    assert leaders == {1, 2, 3, 4}


def test_a_program_does_what_its_plan_says(tmp_path):
    """Rule: plan and program are the same run."""
    state = ClusterMachine()
    state.start(seed=1, network="near", replicas=3, min_insync=1, session_ms=2_000)
    state.append(process=1, times=4, acks=1, wait_ms=300)
    state.cut(who="leader of t-0", other="controller", way=1, duration_ms=401)
    state.poll(process=2, wait_ms=1_000)
    state.teardown()
    program = tmp_path / "program.py"
    program.write_text(program_of(state.live.plan).replace("raise SystemExit", "done ="), encoding="utf-8")
    ran = runpy.run_path(str(program))
    assert (ran["done"], ran["trace"].digest) == (False, state.live.trace.digest)


class Mine(ClusterSteps):
    """What a user writes: rules of one's own over the steps, and an oracle of one's own."""

    acknowledged = 0

    @rule(wait_ms=st.sampled_from((200, 2_000)))
    def append(self, wait_ms):
        done = self.outcome(self.begin_operation("append", wait_ms=wait_ms))
        self.acknowledged += done is not None and done.outcome == "ok"

    @rule()
    def leader_dies(self):
        self.fault("crash", "leader of t-0", duration_ms=401)

    def judged(self, trace):
        assert (
            sum(row.function == "append" and row.outcome == "ok" for row in trace.operations)
            > self.acknowledged
        )
        return super().judged(trace)


def test_rules_of_ones_own(tmp_path):
    """Rule: a subclass of the steps with its own rules and plan is a machine, with all oracles."""

    class Quiet(Mine):
        folder = tmp_path

        def plan(self, seed, network, **options):
            return Plan(seed=seed + 100, network=network)

    run_state_machine_as_test(Quiet, settings=QUICK)
    state = Quiet()
    state.start(seed=0, network="near", replicas=3, min_insync=1, session_ms=6_000)
    with pytest.raises(AssertionError, match="even number"):
        state.wait(3)
    with pytest.raises(AssertionError, match="odd number"):
        state.fault("crash", "broker 1", duration_ms=400)
    state.teardown()


def test_a_sweep_of_the_healthy_cluster(tmp_path):
    """Rule: the healthy cluster shows nothing under a sweep, and how many examples there were is told."""
    *_, swept = hunt.sweep("ClusterMachine", examples=5, folder=tmp_path)
    assert swept.complaints == ()
    assert swept.examples >= 5


def test_a_hunt_for_nothing(monkeypatch, capsys):
    """Rule: an id that nobody knows is one clear sentence."""
    monkeypatch.setattr(sys, "argv", ["machine_hunt", "KAFKA-0"])
    assert hunt.main() == 2
    assert "saw 'KAFKA-0'" in capsys.readouterr().err
