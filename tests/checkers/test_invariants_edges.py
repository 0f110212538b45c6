"""checkers/invariants at their edges: the nearest stories on both sides of a bound, each of which a fault of
`make measure NAME=mutation` slipped through."""

import json

from attrs import evolve

from fencepost.checkers import invariants
from fencepost.checkers.verdict import Decision, Finding
from fencepost.traces.events import Event, Name
from fencepost.traces.trace import Claims
from tests.checkers import lab
from tests.checkers.test_invariants import accept, convict
from tests.checkers.traces_by_hand import (
    ON,
    appends,
    copies,
    cuts,
    dump,
    event,
    healthy_start,
    hears,
    leads,
    loss,
    shows,
    state,
    trace,
)

START = healthy_start(10, 11)


def found(*events: Event, claims: Claims | None = None) -> dict[str, Finding]:
    """The findings by anomaly."""
    return {finding.anomaly: finding for finding in invariants.judge(trace(*events, claims=claims)).findings}


def test_a_leader_owes_what_was_exposed_up_to_its_epoch_and_no_more() -> None:
    """Rule (COMMIT-SAFE): a broker that learns late that it led epoch 1 owes what epoch 0 exposed, not what
    epoch 2 did."""
    story = [
        *[
            state(9, 1, 0, 1, 2, 3),
            leads(1, 0),
            appends(1, 0, 0, 10),
            copies(2, 0, 0, 10),
            copies(3, 0, 0, 10),
            shows(1, 0, 1),
        ],
        *[
            state(9, 2, 1, 1, 2, 3),
            state(9, 3, 2, 1, 3),
            leads(3, 2, end=1),
            appends(3, 2, 1, 30),
            shows(3, 2, 2),
        ],
    ]
    assert found(*story, leads(2, 1, end=1)) == {}
    assert found(*story, leads(2, 3, end=1))["committed_record_lost"].events == (10, 11)


def test_an_epoch_that_exposed_nothing_owes_nothing() -> None:
    """Rule (COMMIT-SAFE): a high watermark of 0 exposes no record."""
    story = [leads(1, 0), shows(1, 0, 0), leads(3, 2), appends(3, 2, 0, 30), shows(3, 2, 1)]
    assert found(*story, leads(2, 1)) == {}


def test_a_followers_high_watermark_exposes_nothing() -> None:
    """Rule (COMMIT-SAFE): only what a leader shows is exposed."""
    story = [*START, appends(1, 0, 2, 12), hears(1, 0, 3), state(9, 2, 1, 2, 3)]
    assert found(*story, leads(2, 1, end=2)) == {}


def test_a_deposed_leader_answers_for_the_highest_epoch_before_it() -> None:
    """Rule (COMMIT-SAFE): what any later epoch exposed binds the one that goes on."""
    story = [
        *[
            leads(1, 0),
            appends(1, 0, 0, 10),
            leads(2, 1),
            shows(2, 1, 0),
            leads(3, 2),
            appends(3, 2, 0, 30),
            shows(3, 2, 1),
        ],
        shows(1, 0, 1),
    ]
    assert found(*story)["committed_record_lost"].events == (6, 7)


def test_behind_an_allowed_loss_records_are_compared_at_their_own_offsets() -> None:
    """Rule: what follows an excused offset is compared with what was committed there, epoch and value."""
    story = [*START, state(9, 2, 1, 2, 3), leads(2, 1, end=2), appends(2, 1, 2, 20), shows(2, 1, 3)]
    held = [copies(4, 7, 0, 10), copies(4, 0, 1, 11), copies(4, 1, 2, 20), state(9, 4, 2, 4)]
    assert found(*story, *held, leads(4, 2, end=3), claims=loss(0, 1)) == {}
    assert found(*story, *held, leads(4, 2, end=3))["committed_record_lost"].offset == 0
    forked = [copies(4, 7, 0, 10), copies(4, 0, 1, 11), copies(4, 8, 2, 20), state(9, 4, 2, 4)]
    assert found(*story, *forked, leads(4, 2, end=3), claims=loss(0, 1))["committed_record_lost"].offset == 2


def test_dumps_behind_an_allowed_loss_are_compared_at_their_own_offsets() -> None:
    """Rule (LOG-MATCH): where a replica could not catch up, the first difference that no loss excuses
    counts."""
    stuck = event(Name.LIVENESS_FAILED, cause="every ISR is full")
    one = [dump(2, 0, 0, 10, end=3, hw=3), dump(2, 1, 1, 20, end=3, hw=3), dump(2, 2, 2, 30, end=3, hw=3)]
    two = [dump(3, 5, 0, 50, end=3, hw=3), dump(3, 1, 1, 20, end=3, hw=3), dump(3, 2, 2, 30, end=3, hw=3)]
    assert set(found(stuck, *one, *two, claims=loss(0, 1))) == {"no_progress"}
    assert found(stuck, *one, *two)["log_divergence"].offset == 0
    two[2] = dump(3, 6, 2, 60, end=3, hw=3)
    divergence = found(stuck, *one, *two, claims=loss(0, 1))["log_divergence"]
    assert (divergence.offset, divergence.events) == (2, (3, 6))
    assert found(*one, *two, claims=loss(0, 1))["log_divergence"].offset == 0


def test_two_dumps_alone_contradict_each_other() -> None:
    """Rule (LOG-MATCH): the first event that names a record may be a dump."""
    finding = found(dump(2, 0, 0, 10, end=1, hw=0), dump(3, 0, 0, 98, end=1, hw=0))["log_divergence"]
    assert finding.events == (0, 1)
    assert finding.expected.endswith("broker 2 holds value 10 there")


def test_zookeepers_two_leaders_are_named_in_their_order() -> None:
    """Rule (EPOCH-MONO): the earlier one is expected, the later one seen; nobody is no leader."""
    finding = found(state(9, 1, 0, 1, 2), state(9, 2, 0, 1, 2))["two_leaders_one_epoch"]
    assert finding.expected == "one leader in epoch 0: ZooKeeper named broker 1"
    assert finding.seen == "broker 2 leads in it too"
    assert found(state(9, 1, 0, 1), state(9, -1, 0, 1), state(9, 1, 0, 1)) == {}
    assert found(state(9, 1, 0, 1), state(9, 1, 0, 1, 2)) == {}


def test_a_broker_that_became_leader_has_learned_that_epoch() -> None:
    """Rule (EPOCH-MONO): leading teaches an epoch as following does."""
    story = [leads(1, 0), leads(2, 1), event(Name.BECAME_FOLLOWER, node=2, **lab.T0, leader_epoch=0)]
    assert found(*story)["leader_epoch_regressed"].events == (1, 2)


def test_a_request_that_names_no_controller_epoch_is_no_finding() -> None:
    """Rule (CTRL-FENCE): -1 is "not said"; it is below nothing at first."""
    applied = event(Name.CONTROL_REQUEST_APPLIED, node=3, controller_epoch=-1)
    assert found(applied) == {}
    assert set(found(evolve(applied, controller_epoch=0), applied)) == {"fenced_controller_obeyed"}
    assert found(state(9, 1, 0, 1, controller_epoch=-1)) == {}


def test_the_certificate_of_no_progress() -> None:
    """Rule (LIVE): the heal, wherever it stands, and what never came; another phase is no heal. Events have
    no clocks to clear them."""
    failed = event(Name.LIVENESS_FAILED, cause="every ISR is full")
    heal, safety = (event(Name.PHASE, cause=cause) for cause in ("heal", "safety"))
    assert found(heal, failed)["no_progress"].events == (0, 1)
    assert found(safety, failed)["no_progress"].events == (1,)
    assert found(safety, failed)["no_progress"].uncertainty_ns == -1
    assert (found(failed)["no_progress"].partition, found(failed)["no_progress"].offset) == (-1, -1)


def test_overlapping_losses_excuse_their_union() -> None:
    """Rule: ranges may overlap and come in any order; what stands between two of them is not excused."""
    ranges = (*loss(1, 2).loss, *loss(0, 2).loss)
    lost = [*START, state(9, 4, 1, 4), leads(4, 1)]
    assert found(*lost, claims=Claims(loss=ranges)) == {}
    assert found(*lost, claims=Claims(loss=loss(0, 1).loss))["committed_record_lost"].offset == 1
    verdict = invariants.judge(trace(*lost, claims=Claims(loss=(evolve(ranges[1], topic="u"),))))
    assert verdict.decision is Decision.ILLEGAL


def test_a_replica_that_is_assigned_no_more_may_keep_what_is_lost() -> None:
    """Rule (LOG-MATCH): a broker that was away when its replica was to be deleted still has what an unclean
    election lost: within the allowed loss it is excused, beyond it, or while the partition is assigned to it,
    it is a finding."""
    logs = (appends(1, 0, 0, 10), appends(2, 1, 0, 20))
    ends = (dump(1, 0, 0, 10, end=1, hw=1), dump(2, 1, 0, 20, end=1, hw=1))

    def judged(replicas: tuple[int, ...], lost: int) -> set[str]:
        assigned = event(Name.ASSIGNMENT, node=-1, replicas=replicas, **ON)
        verdict = invariants.judge(trace(*logs, assigned, *ends, claims=loss(0, lost)))
        return {finding.anomaly for finding in verdict.findings} & {"log_divergence"}

    assert judged((2, 3), 1) == set()
    assert judged((1, 2), 1) == judged((2, 3), 0) == {"log_divergence"}


def test_a_high_watermark_lies_within_its_log() -> None:
    """Rule (HW-BOUNDS): of leaders too; the finding names the bounds that are known; what a cut leaves is
    told by what follows it."""
    young = state(1, 1, 0, 1, 2)
    accept(young, leads(1, 0, 1, 2, end=2, hw=1))
    accept(young, leads(1, 0, 1, 2, end=2, hw=2))
    past = convict("high_watermark_outside_log", young, leads(1, 0, 1, 2, end=0, hw=1))
    assert past.expected.endswith("between its log start offset 0 and its log end offset 0")
    begins = event(
        Name.LOG_START, node=2, leader_epoch=0, log_start_offset=2, high_watermark=2, end_offset=4, **ON
    )
    below = convict("high_watermark_outside_log", young, begins, hears(2, 0, 1))
    assert (below.events, below.expected[-18:]) == ((1, 2), "log start offset 2")
    accept(young, begins, cuts(2, 1, 0, end=4, to=0, cause="full"), hears(2, 0, 0))


def test_what_a_coordinator_said_is_not_forgotten() -> None:
    """Rule (TXN-ATOM): a decision that one coordinator told of is there when the next loads."""
    detail = {"transactional_id": "x", "producer_id": 7, "producer_epoch": 0, "partitions": ["t-0"]}
    on = {"topic": "__transaction_state", "partition": 0, "node": 1}
    told = {"detail": json.dumps(detail), "cause": "PrepareCommit", "leader_epoch": 0}
    later = {"detail": json.dumps({**detail, "why": "loaded"}), "cause": "Ongoing", "leader_epoch": 1}
    said = (event(Name.TRANSACTION_PHASE, **on, **one) for one in (told, later))
    findings = invariants.judge(trace(*said)).findings
    assert [(one.anomaly, one.events) for one in findings] == [("transaction_forgotten", (0, 1))]
