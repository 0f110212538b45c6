"""model/transaction/recorded_transactions.py: runs of the simulated cluster and walks of the model are its
steps; runs with a planted bug, walks without a protection, and events bent by hand are not."""

import json
from pathlib import Path
from random import Random

import pytest
from attrs import evolve

from fencepost.campaign.swarm.swarm import swarm
from fencepost.checkers import invariants
from fencepost.model.transaction.recorded_transactions import TransactionRefinement, unexplained
from fencepost.model.transaction.transaction_rules import marker_of
from fencepost.model.transaction.transaction_state import PHASES, Constants, Transaction, TransactionState, of
from fencepost.model.transaction.transaction_system import Transactions
from fencepost.run.simulated.run import run
from fencepost.traces.events import Event, Name
from fencepost.traces.plan_json import plan_from_json
from fencepost.traces.trace import Claims, LossRange
from tests.checkers import lab
from tests.checkers.traces_by_hand import trace

WALKS, STEPS = 70, 60


def phase(value: Transaction, epoch: int, why: str = "") -> Event:
    """The event of a durable record."""
    told = {
        "transactional_id": "x",
        "producer_id": 7,
        "producer_epoch": value.epoch,
        "partitions": [f"t-{at}" for at in of(value.partitions)],
        "why": why,
    }
    return lab.event(
        0,
        Name.TRANSACTION_PHASE,
        1,
        topic="__transaction_state",
        partition=0,
        leader_epoch=epoch,
        cause=PHASES[value.phase],
        detail=json.dumps(told),
    )


def marker(at: int, told: tuple[int, ...]) -> Event:
    """The event of a marker that was written."""
    _, epoch, coordinator_epoch, commit, *_ = told
    detail = {
        "producer_id": 7,
        "producer_epoch": epoch,
        "coordinator_epoch": coordinator_epoch,
        "commit": bool(commit),
    }
    return lab.event(
        0,
        Name.MARKER_WRITTEN,
        2,
        topic="t",
        partition=at,
        offset=0,
        leader_epoch=0,
        detail=json.dumps(detail),
    )


def events_of(
    constants: Constants, before: TransactionState, action: tuple[str | int, ...], after: TransactionState
) -> list[Event]:
    """What brokers record of this step."""
    name, *arguments = action
    if name == "replicate":
        return [phase(after.journal.value, after.journal.elected)]
    if name == "load":
        return [phase(after.coordinators[arguments[0]].value, arguments[0], "loaded")]
    if name == "mark":
        at, epoch = arguments
        return [marker(at, marker_of(constants, before.coordinators[epoch].value, epoch))]
    return [marker(arguments[0], tuple(arguments[1:]))] if name == "deliver" else []


def walk(constants: Constants, seed: int) -> tuple[Event, ...]:
    """The events of a random walk."""
    system, draw = Transactions(constants), Random(seed)
    (state,) = system.initial()
    events: list[Event] = [phase(state.journal.value, 0)]
    for _ in range(STEPS):
        enabled = list(system.actions(state))
        if not enabled:
            break
        action = draw.choice(enabled)
        after = system.apply(state, action)
        events += events_of(constants, state, action, after)
        state = after
    return tuple(events)


def rejected(constants: Constants) -> int:
    """How many walks have an event that no action explains."""
    return sum(bool(unexplained(walk(constants, seed))) for seed in range(WALKS))


HEALTHY = Constants(partitions=2, producers=2, epochs=1)


@pytest.mark.parametrize("version", [1, 2])
def test_the_models_own_walks_are_explained(version: int) -> None:
    """Rule: each behaviour of the model is accepted, fail-overs and lost answers included."""
    assert rejected(evolve(HEALTHY, version=version)) == 0


@pytest.mark.parametrize("protection", ["loaded", "decide_durably"])
def test_walks_without_a_protection_are_rejected(protection: str) -> None:
    """Rule: a rule that is not followed shows in the events."""
    assert rejected(evolve(HEALTHY, drop={protection})) > 0


def forgotten(*events: Event, claims: Claims | None = None) -> list[str]:
    """What the event invariants find in what coordinators said."""
    return [one.anomaly for one in invariants.judge(trace(*events, claims=claims or Claims())).findings]


@pytest.mark.parametrize("version", [1, 2])
def test_nothing_is_forgotten_in_the_models_own_walks(version: int) -> None:
    """Rule (TXN-ATOM): whatever the model's coordinators may load is what was said, or what came later."""
    constants = evolve(HEALTHY, version=version)
    assert [found for seed in range(10 * WALKS) if (found := forgotten(*walk(constants, seed)))] == []


def test_walks_that_load_less_forget() -> None:
    """Rule: a coordinator that begins with less than its log has is convicted."""
    constants = evolve(HEALTHY, drop={"loaded"})
    found = [forgotten(*walk(constants, seed)) for seed in range(WALKS)]
    assert ["transaction_forgotten"] in found
    assert {name for names in found for name in names} == {"transaction_forgotten"}


@pytest.mark.parametrize("seed", [0, 4, 6])
def test_healthy_runs_are_steps_of_the_model(seed: int) -> None:
    """Rule (KIP-98): every state of a transaction and every marker that the simulated cluster records is
    explained."""
    trace = run(swarm(seed, "default+transactions"))
    refinement = TransactionRefinement()
    found = [refinement.step(position, event) for position, event in enumerate(trace.events)]
    assert not any(found)
    assert refinement.steps["replicate"] > 20 and refinement.steps["mark"] > 10
    names = [event.name for event in trace.events]
    assert sum(refinement.steps.values()) == sum(
        names.count(name) for name in (Name.TRANSACTION_PHASE, Name.MARKER_WRITTEN)
    )


def test_a_planted_bug_is_rejected() -> None:
    """Rule (T2): the event that breaks the rule is the one that no action explains."""
    plan = plan_from_json((Path(__file__).parent / "planted.jsonl").read_text().strip())
    mismatches = unexplained(run(plan).events)
    assert mismatches and mismatches[0].action == "load"


BEGIN = (
    phase(Transaction(0, 0, 0, 0, 0), 0),
    phase(Transaction(1, 0, 3, 1, 0), 0),
    phase(Transaction(2, 0, 3, 1, 0), 0),
)
MARKERS = tuple(marker(at, (1, 0, 0, 1)) for at in (0, 1))
END = phase(Transaction(4, 0, 0, 1, 0), 0)


@pytest.mark.parametrize(
    ("said", "loaded", "is_forgotten"),
    [
        ((1, 0, 3, 1, 0), (1, 0, 1, 1, 0), True),  # a partition was added
        ((1, 0, 1, 1, 0), (1, 0, 3, 1, 0), False),
        ((1, 0, 3, 1, 0), (0, 0, 0, 1, 0), True),  # it had begun
        ((2, 0, 3, 1, 0), (1, 0, 3, 1, 0), True),  # it was decided
        ((2, 0, 3, 1, 0), (4, 0, 0, 1, 0), False),
        ((4, 0, 0, 1, 0), (2, 0, 3, 1, 0), True),  # it was complete
        ((4, 0, 0, 1, 0), (1, 0, 3, 1, 0), False),  # the next one
        ((0, 2, 0, 1, 0), (4, 1, 0, 1, 0), True),  # its producer was fenced
        ((0, 1, 0, 1, 0), (0, 2, 0, 2, 0), False),
    ],
)
def test_what_was_said_is_not_forgotten(
    said: tuple[int, ...], loaded: tuple[int, ...], is_forgotten: bool
) -> None:
    """Rule (T12): what the next coordinator loads is not of a time before; the epoch of the coordinator must
    be another, and where the claims allow loss in its log nothing is judged."""
    before = phase(Transaction(*said), 0)
    names = ["transaction_forgotten"] * is_forgotten
    assert forgotten(before, phase(Transaction(*loaded), 1, "loaded")) == names
    assert forgotten(before, phase(Transaction(*loaded), 0, "loaded")) == []
    late = phase(Transaction(*loaded), 1), phase(Transaction(*loaded), 2, "loaded")
    assert forgotten(phase(Transaction(*said), 1), phase(Transaction(*loaded), 0), late[0]) == []
    lost = LossRange(topic="__transaction_state", partition=0, start=0, end=9, reason="")
    assert forgotten(before, late[1], claims=Claims(loss=(lost,))) == []


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ((*BEGIN[:2], MARKERS[0]), "a decision of coordinator epoch 0 to commit in t-0"),
        ((*BEGIN, marker(0, (1, 0, 0, 0))), "a decision of coordinator epoch 0 to abort in t-0"),
        ((*BEGIN, marker(5, (1, 0, 0, 1))), "a decision of coordinator epoch 0 to commit in t-5"),
        ((*BEGIN, phase(Transaction(3, 0, 3, 1, 0), 0)), "what may follow PrepareCommit"),
        ((*BEGIN, phase(Transaction(1, 0, 3, 1, 0), 0)), "what may follow PrepareCommit"),
        ((*BEGIN, phase(Transaction(2, 1, 3, 1, 0), 1, "loaded")), "that, or what may follow"),
        ((*BEGIN[:2], phase(Transaction(0, 1, 0, 1, 0), 0)), "what may follow Ongoing"),
        ((*BEGIN[:2], phase(Transaction(2, 0, 1, 1, 0), 0)), "what may follow Ongoing"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_events_bent_by_hand_are_rejected(events: tuple[Event, ...], expected: str) -> None:
    """Rule: each guard has failed on purpose: only the last event is unexplained, with this reason."""
    assert not unexplained((*BEGIN, *MARKERS, END))
    (mismatch,) = unexplained(events)
    assert expected in mismatch.expected
    assert mismatch.position == len(events) - 1


def test_a_late_marker_in_one_leader_epoch_is_rejected() -> None:
    """Rule (T16, KAFKA-5231): a leader writes no marker of an earlier coordinator epoch after a later one."""
    loads = phase(Transaction(2, 0, 3, 1, 0), 1, "loaded")
    later, earlier = marker(0, (1, 0, 1, 1)), marker(0, (1, 0, 0, 1))
    assert not unexplained((*BEGIN, earlier, loads, later))
    (mismatch,) = unexplained((*BEGIN, loads, later, earlier))
    assert "coordinator epoch 1 or later" in mismatch.expected
    moved = evolve(earlier, leader_epoch=1)
    assert not unexplained((*BEGIN, loads, later, moved)), "the next leader's log may end earlier"
