"""checkers/invariants: for each anomaly of the events a trace by hand that convicts it, with its certificate,
and the nearest legal one."""

from attrs import evolve

from fencepost.checkers import invariants
from fencepost.checkers.verdict import Decision, Finding
from fencepost.traces.events import Event, Name
from fencepost.traces.trace import Claims
from tests.checkers import lab
from tests.checkers.traces_by_hand import (
    appends,
    copies,
    cuts,
    dump,
    event,
    fault,
    follows,
    healthy_start,
    leads,
    loss,
    recovers,
    shows,
    starts,
    state,
    trace,
)


def convict(anomaly: str, *events: Event, claims: Claims | None = None) -> Finding:
    """The one finding of this anomaly, which names the trace."""
    verdict = invariants.judge(trace(*events, claims=claims))
    assert verdict.decision is Decision.ILLEGAL, verdict
    assert verdict.anomaly == anomaly, verdict.findings
    (finding,) = (finding for finding in verdict.findings if finding.anomaly == anomaly)
    assert finding.check == "invariants"
    return finding


def accept(*events: Event, claims: Claims | None = None) -> None:
    """No invariant is broken."""
    verdict = invariants.judge(trace(*events, claims=claims))
    assert verdict.decision is Decision.OK, verdict.findings


START = healthy_start(10, 11)
"""Values 10, 11 at offsets 0, 1 of epoch 0 are committed: leader 1 exposed 2 at position 7."""


# ---- COMMIT-SAFE


def test_a_leader_without_a_committed_record_lost_it() -> None:
    """Rule (COMMIT-SAFE): a broker that becomes leader holds each record below a high watermark that an
    earlier leader exposed."""
    finding = convict(
        "committed_record_lost",
        *START,
        cuts(2, 1, 0, end=2, to=1),
        state(9, 2, 1, 2, 3),
        leads(2, 1, 2, 3, end=1),
    )
    assert finding.events == (7, 12)
    assert (
        finding.expected
        == "value 11 of leader epoch 0 at offset 1: leader 1 of epoch 0 had exposed the high watermark 2"
    )
    assert finding.seen == "broker 2 leads epoch 1 with a log that ends at 1"
    assert (finding.topic, finding.partition, finding.offset) == ("t", 0, 1)
    accept(*START, state(9, 2, 1, 2, 3), leads(2, 1, 2, 3, end=2))


def test_a_leader_with_another_record_there_lost_it() -> None:
    """Rule (COMMIT-SAFE): the same offset must hold the same record."""
    story = [
        *START,
        cuts(2, 1, 0, end=2, to=1),
        copies(2, 0, 1, 99),
        state(9, 2, 1, 2, 3),
        leads(2, 1, 2, 3, end=2),
    ]
    verdict = invariants.judge(trace(*story))
    assert {finding.anomaly for finding in verdict.findings} == {"committed_record_lost", "log_divergence"}
    assert verdict.findings[-1].seen == "broker 2 leads epoch 1 with value 99 of leader epoch 0 there"


def test_what_a_leader_deleted_may_be_another_record() -> None:
    """Rule (COMMIT-SAFE): below the log start of a leader nothing is owed. A replica that has not heard of it
    may lead next, with what it had there before (seed 40006108 of the profile everything); above it, all is
    owed. What a follower deletes of its own log is no reason for others."""
    for node, offset, owed in ((1, 2, False), (1, 1, True), (3, 2, True)):
        deleted = lab.event(8, Name.LOG_START, node, log_start_offset=offset, **lab.T0)
        story = [*START, deleted, cuts(2, 1, 0, end=2, to=1), copies(2, 0, 1, 99)]
        verdict = invariants.judge(trace(*story, state(9, 2, 1, 2, 3), leads(2, 1, 2, 3, end=2)))
        assert ("committed_record_lost" in {finding.anomaly for finding in verdict.findings}) is owed


def test_what_no_leader_exposed_may_go() -> None:
    """Rule (COMMIT-SAFE): a record above each high watermark is nobody's loss; nor does a follower's high
    watermark expose."""
    accept(*START, appends(1, 0, 2, 12), state(9, 2, 1, 2, 3), leads(2, 1, 2, 3, end=2))


def test_a_leader_of_an_older_epoch_owes_nothing_to_a_newer_one() -> None:
    """Rule (COMMIT-SAFE): "later" is by leader epoch: a broker may learn late that it led one that is
    over."""
    newer = [
        state(9, 1, 0, 1, 2, 3),
        leads(1, 0, 1, 2, 3),
        state(9, 2, 1, 1, 2, 3),
        state(9, 3, 2, 1, 3),
        leads(3, 2, 1, 3),
        appends(3, 2, 0, 30),
        copies(1, 2, 0, 30),
        shows(3, 2, 1),
    ]
    accept(*newer, leads(2, 1, 1, 2, 3))
    convict("committed_record_lost", *newer, state(9, 2, 3, 1, 2), leads(2, 3, 1, 2))


def test_a_deposed_leader_exposes_what_its_successor_did() -> None:
    """Rule (COMMIT-SAFE): two high watermarks that cover one offset cover one record."""
    two = [
        state(9, 1, 0, 1, 2),
        leads(1, 0, 1, 2),
        appends(1, 0, 0, 10),
        state(9, 2, 1, 2),
        leads(2, 1, 2),
        appends(2, 1, 0, 20),
        shows(2, 1, 1),
    ]
    finding = convict("committed_record_lost", *two, shows(1, 0, 1))
    assert finding.events == (6, 7)
    accept(*two)


def test_allowed_loss_excuses_its_offsets_only() -> None:
    """Rule: claims excuse the loss of the offsets that they name; the next one is a finding."""
    lost = [
        *START,
        fault("power_loss", 2),
        starts(2),
        recovers(2, 0),
        state(9, 2, 1, 2, 3),
        leads(2, 1, 2, 3),
        follows(3, 2, 1, end=2),
    ]
    convict("committed_record_lost", *lost)
    accept(*lost, claims=loss(0, 2))
    assert convict("committed_record_lost", *lost, claims=loss(0, 1)).offset == 1
    assert convict("committed_record_lost", *lost, claims=loss(1, 5)).offset == 0


def test_a_current_replica_without_a_committed_record_truncated_it() -> None:
    """Rule (COMMIT-SAFE): at the end each dumped member of the ISR holds each committed record."""
    finding = convict(
        "committed_record_truncated",
        *START,
        dump(1, 0, 0, 10, 11, end=2, hw=2),
        dump(3, 0, 0, 10, end=1, hw=1),
    )
    assert finding.events == (7, 11)
    assert finding.seen == "at the end broker 3, which is in the ISR [1, 2, 3], has a log that ends at 1"
    empty = event(Name.REPLICA_LOG, node=3, topic="t", partition=0, offset=0, end_offset=0, high_watermark=0)
    assert convict("committed_record_truncated", *START, empty).offset == 0
    accept(*START, state(1, 1, 0, 1, 2), dump(3, 0, 0, 10, end=1, hw=1))
    accept(*START, dump(3, 0, 0, 10, end=1, hw=1), claims=loss(1, 2))


def test_a_log_that_was_not_opened_since_its_disk_lost_something_owes_nothing_yet() -> None:
    """Rule (COMMIT-SAFE): a broker that is down after a power loss has yet to take from others what it lost.
    A crash takes nothing from the page cache."""
    short = dump(3, 0, 0, 10, end=1, hw=1)
    accept(*START, fault("power_loss", 3), short)
    convict("committed_record_truncated", *START, fault("power_loss", 3), starts(3), recovers(3, 1), short)
    convict("committed_record_truncated", *START, fault("power_loss", 2), short)
    convict("committed_record_truncated", *START, fault("crash", 3), short)


def test_what_an_interrupted_step_wrote_is_nobodys_loss() -> None:
    """Rule: a log that grew by records which no event named may hold what it owes; the final dump decides."""
    story = [
        *START,
        fault("power_loss", 2),
        starts(2),
        recovers(2, 1),
        starts(2),
        recovers(2, 2),
        state(9, 2, 1, 2, 3),
        leads(2, 1, 2, 3, end=2),
    ]
    accept(*story, dump(2, 0, 0, 10, 11, end=2, hw=2))
    convict("committed_record_truncated", *story, dump(2, 0, 0, 10, end=1, hw=1))


# ---- LOG-MATCH


def test_an_offset_of_an_epoch_names_one_record() -> None:
    """Rule (LOG-MATCH): two replicas never hold different values at one offset of one epoch, loss allowed or
    not."""
    story = [*START, appends(1, 0, 2, 12, 13), copies(2, 0, 2, 12), copies(2, 0, 3, 99)]
    finding = convict("log_divergence", *story, claims=loss(0, 100))
    assert finding.events == (10, 12)
    assert finding.expected == "one record at offset 3 of leader epoch 0: broker 1 holds value 13 there"
    assert finding.seen == "broker 2 holds value 99 there"
    accept(*story[:-1], copies(2, 0, 3, 13))


def test_one_offset_may_hold_records_of_two_epochs() -> None:
    """Rule (LOG-MATCH): after a fork the epochs tell the records apart."""
    accept(*START, appends(1, 0, 2, 12), state(9, 2, 1, 2, 3), leads(2, 1, 2, 3, end=2), appends(2, 1, 2, 20))


def test_a_dump_names_records_too() -> None:
    """Rule (LOG-MATCH): what is on the disk at the end is what was appended."""
    finding = convict("log_divergence", *START, dump(2, 0, 0, 10, 98, end=2, hw=0), claims=loss(0, 2))
    assert finding.events == (4, 10)


def test_replicas_agree_below_the_lower_high_watermark() -> None:
    """Rule (LOG-MATCH): at the end two dumps hold equal records below the lower of their high watermarks, and
    only there."""
    story = [
        *START,
        state(9, 2, 1, 2),
        leads(2, 1, 2, end=2),
        dump(2, 0, 0, 10, 11, end=3, hw=3),
        dump(2, 1, 2, 20, end=3, hw=3),
    ]
    forked = [*story, dump(3, 0, 0, 10, 11, 12, end=3, hw=3)]
    finding = convict("log_divergence", *forked, claims=loss(2, 3))
    assert finding.events == (13, 14)
    assert finding.expected == (
        "equal records below 3, the lower high watermark: at offset 2 broker 2 holds value 20 of leader "
        "epoch 1"
    )
    accept(*story, dump(3, 0, 0, 10, 11, 12, end=3, hw=2))
    accept(*story, dump(3, 0, 0, 10, 11, end=2, hw=2))


def test_a_replica_that_could_not_catch_up_is_excused_where_loss_is_allowed() -> None:
    """Rule: when the liveness phase failed, a replica may still hold what the others lost; the finding is
    no_progress."""
    story = [
        *START,
        event(Name.LIVENESS_FAILED, cause="every ISR is full"),
        dump(2, 1, 0, 20, 21, end=2, hw=2),
        dump(3, 0, 0, 10, 11, end=2, hw=2),
        state(9, 2, 1, 2),
    ]
    convict("no_progress", *story, claims=loss(0, 2))
    convict("committed_record_truncated", *story)


# ---- EPOCH-MONO


def test_an_epoch_has_one_leader() -> None:
    """Rule (EPOCH-MONO): no two brokers lead in one epoch; the same one may, again."""
    finding = convict("two_leaders_one_epoch", *START, leads(2, 0, 1, 2, 3, end=2))
    assert finding.events == (1, 10)
    assert finding.expected == "one leader in epoch 0: the leader was broker 1"
    accept(*START, starts(1), recovers(1, 2), leads(1, 0, 1, 2, 3, end=2))
    convict("two_leaders_one_epoch", *START, state(9, 2, 0, 1, 2, 3))


def test_leader_epochs_grow_in_zookeeper() -> None:
    """Rule (EPOCH-MONO): ZooKeeper's leader epoch never goes back."""
    story = [*START, state(9, 2, 1, 2, 3)]
    finding = convict("leader_epoch_regressed", *story, state(9, 1, 0, 1, 2, 3))
    assert finding.events == (10, 11)
    assert (finding.expected, finding.seen) == (
        "a leader epoch that only grows: ZooKeeper held leader epoch 1",
        "ZooKeeper went back to 0",
    )
    accept(*story, state(2, 2, 1, 2))


def test_leader_epochs_grow_at_a_running_broker() -> None:
    """Rule (EPOCH-MONO, KAFKA-1188): a broker never goes back to an epoch, unless it restarted in between."""
    story = [*START, state(9, 2, 1, 2, 3), follows(3, 2, 1, end=2)]
    assert convict("leader_epoch_regressed", *story, follows(3, 1, 0, end=2)).events == (11, 12)
    accept(*story, starts(3), recovers(3, 2), follows(3, 1, 0, end=2))


# ---- CTRL-FENCE


def controller(node: int, epoch: int) -> Event:
    """/controller_epoch was written."""
    return event(Name.CONTROLLER_EPOCH, node=node, controller_epoch=epoch)


def applied(node: int, epoch: int) -> Event:
    """A broker obeyed a controller."""
    return event(Name.CONTROL_REQUEST_APPLIED, node=node, controller_epoch=epoch, cause="LeaderAndIsrRequest")


def test_a_deposed_controller_does_not_write() -> None:
    """Rule (CTRL-FENCE, KAFKA-6082): once /controller_epoch has moved, no controller of a lower epoch changes
    a leader."""
    story = [controller(1, 1), *START, controller(2, 2)]
    finding = convict("fenced_controller_wrote", *story, state(1, 2, 1, 2, 3, controller_epoch=1))
    assert finding.events == (11, 12)
    assert finding.seen == "controller 1 of epoch 1 wrote leader 2, leader epoch 1 to ZooKeeper"
    accept(*story, state(2, 2, 1, 2, 3, controller_epoch=2))
    accept(*story, state(1, 1, 0, 1, 2, controller_epoch=1))


def test_a_deposed_controller_is_not_obeyed() -> None:
    """Rule (CTRL-FENCE, KAFKA-532): a broker refuses a controller epoch below one that it obeyed in this
    incarnation."""
    story = [*START, applied(3, 2)]
    finding = convict("fenced_controller_obeyed", *story, applied(3, 1))
    assert finding.events == (10, 11)
    assert finding.expected == "broker 3 to refuse controller epochs below 2, which it had obeyed"
    accept(*story, applied(3, 2), applied(2, 1))
    accept(*story, starts(3), applied(3, 1))


# ---- progress, and the verdict


def test_a_wait_that_never_ended_is_no_progress() -> None:
    """Rule (LIVE): the run says which wait of the liveness phase never ended."""
    healed = event(Name.PHASE, cause="heal")
    finding = convict("no_progress", *START, healed, event(Name.LIVENESS_FAILED, cause="every ISR is full"))
    assert finding.events == (10, 11)
    assert finding.expected.startswith("every ISR is full")
    accept(*START, healed)


def test_a_run_that_was_too_weak_is_not_judged() -> None:
    """Rule: Assumption broken comes before any finding."""
    verdict = invariants.judge(
        trace(*START, leads(2, 0, 1, 2, 3), claims=Claims(assumption_broken="nothing was acknowledged"))
    )
    assert (verdict.decision, verdict.findings) == (Decision.ASSUMPTION_BROKEN, ())
    assert verdict.reason == "nothing was acknowledged"


def test_partitions_do_not_mix() -> None:
    """Rule: every invariant is per partition."""
    other = [
        evolve(item, partition=1)
        for item in (state(9, 2, 0, 2), leads(2, 0, 2), appends(2, 0, 0, 77), shows(2, 0, 1))
    ]
    accept(*START, *other)


def test_each_anomaly_is_reported_once_in_a_partition() -> None:
    """Rule: the number of findings is bounded; the first one stands."""
    story = [*START, *(leads(2, 0, end=2) for _ in range(5))]
    verdict = invariants.judge(trace(*story))
    found = {finding.anomaly: finding.events for finding in verdict.findings}
    assert found == {"two_leaders_one_epoch": (1, 10), "leader_epoch_repeated": (2, 10)}
    assert len(verdict.findings) == 2
