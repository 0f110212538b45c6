"""Claims follow from recorded facts, and only from them."""

from attrs import evolve

from fencepost.record.claims import derive_claims
from fencepost.record.observed_state import ObservedState
from fencepost.run.faults.roles import resolve
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Operation, Outcome, Record
from fencepost.traces.plan import ClientOptions, ClusterOptions, Plan, PlannedOperation, TopicOptions

KEY = ("t", 0)


def event(name: Name, node: int, **fields: object) -> Event:
    """An event of t-0."""
    return Event(time=0, name=name, node=node, topic="t", partition=0, **fields)


def state(leader: int, epoch: int, isr: tuple[int, ...]) -> Event:
    """ZooKeeper's state of t-0."""
    return event(Name.PARTITION_STATE, 3, leader=leader, leader_epoch=epoch, controller_epoch=1, isr=isr)


def story(*more: Event) -> ObservedState:
    """Two brokers hold ten records, all exposed; broker 2 loses its power and comes back with six; then
    more."""
    facts = ObservedState()
    for node in (1, 2):
        facts.learn(
            event(Name.APPENDED, node, offset=0, leader_epoch=0, values=tuple(range(10)), cause="follower")
        )
    facts.learn(event(Name.HIGH_WATERMARK, 1, high_watermark=10, cause="leader"))
    facts.learn(Event(time=0, name=Name.FAULT_BEGAN, node=2, cause="power_loss"))
    for each in more:
        facts.learn(each)
    return facts


RECOVERED = event(Name.LOG_RECOVERED, 2, offset=6, high_watermark=4)


def test_an_isr_member_that_lost_exposed_bytes_allows_the_loss_of_these_offsets():
    """Even one replica, restarted while it stands in the ISR and elected later, makes the loss of what it
    lost legal."""
    facts = story(state(1, 0, (1, 2)), RECOVERED)
    assert [(loss.node, loss.start, loss.end) for loss in facts.losses] == [(2, 6, 10)]


def test_a_replica_outside_the_isr_allows_nothing():
    """What is not in the ISR cannot be elected cleanly: its loss excuses nobody."""
    assert story(state(1, 0, (1,)), RECOVERED).losses == []


def test_joining_the_isr_while_short_of_exposed_bytes_allows_the_loss():
    """A proposal in flight may bring a replica into the ISR that has lost its disk meanwhile (KIP-903,
    accepted)."""
    facts = story(state(1, 0, (1,)), RECOVERED, state(1, 0, (1, 2)))
    assert [(loss.start, loss.end) for loss in facts.losses] == [(6, 10)]


def test_a_replica_that_fetched_everything_again_is_whole():
    """Once a replica holds again what had been exposed, a later election of it may lose nothing."""
    caught_up = event(Name.APPENDED, 2, offset=6, leader_epoch=0, values=(6, 7, 8, 9), cause="follower")
    assert story(state(1, 0, (1,)), RECOVERED, caught_up, state(1, 0, (1, 2))).losses == []


def test_a_shorter_log_without_a_power_loss_allows_nothing():
    """A process crash loses nothing that was written: a log that shrank by it is a finding, not a claim."""
    facts = ObservedState()
    facts.learn(event(Name.APPENDED, 2, offset=0, leader_epoch=0, values=tuple(range(10)), cause="follower"))
    facts.learn(event(Name.HIGH_WATERMARK, 1, high_watermark=10, cause="leader"))
    facts.learn(state(1, 0, (1, 2)))
    facts.learn(RECOVERED)
    assert facts.losses == []


def test_bit_rot_allows_what_recovery_cut():
    """A bit that rots under a checksum costs a replica its tail; in the ISR that is a loss like any other,
    with its cause in the reason."""
    facts = ObservedState()
    facts.learn(event(Name.APPENDED, 2, offset=0, leader_epoch=0, values=tuple(range(10)), cause="follower"))
    facts.learn(event(Name.HIGH_WATERMARK, 1, high_watermark=10, cause="leader"))
    facts.learn(state(1, 0, (1, 2)))
    facts.learn(Event(time=0, name=Name.FAULT_BEGAN, node=2, cause="bit_rot"))
    facts.learn(RECOVERED)
    (loss,) = derive_claims(PLAN, facts, (APPEND, POLL)).loss
    assert (loss.start, loss.end) == (6, 10) and "bit rot" in loss.reason


def lied_about(*later: Event) -> ObservedState:
    """Broker 2 holds ten exposed records, then its disk lies about syncs; then more."""
    facts = ObservedState()
    facts.learn(state(1, 0, (1, 2)))
    facts.learn(event(Name.APPENDED, 2, offset=0, leader_epoch=0, values=tuple(range(10)), cause="follower"))
    facts.learn(Event(time=0, name=Name.FAULT_BEGAN, node=2, cause="lying_fsync"))
    facts.learn(event(Name.APPENDED, 2, offset=10, leader_epoch=0, values=(10, 11), cause="follower"))
    facts.learn(event(Name.HIGH_WATERMARK, 1, high_watermark=12, cause="leader"))
    for each in later:
        facts.learn(each)
    return facts


def test_a_lie_about_a_sync_costs_what_came_after_it_if_the_power_fails():
    """From where the log ended when the lies began nobody knows what it holds, however long it is; without a
    power loss nothing is allowed."""
    whole = event(Name.LOG_RECOVERED, 2, offset=12, high_watermark=4)
    power_loss = Event(time=0, name=Name.FAULT_BEGAN, node=2, cause="power_loss")
    cut = event(Name.TRUNCATED, 2, offset=8)
    assert [(loss.start, loss.end) for loss in lied_about(power_loss, whole).losses] == [(10, 12)]
    again = event(Name.APPENDED, 2, offset=8, leader_epoch=1, values=(20, 21, 22, 23), cause="follower")
    assert [(loss.start, loss.end) for loss in lied_about(cut, again, power_loss, whole).losses] == [(8, 12)]
    assert lied_about(whole).losses == []


POWER_LOSS = Event(time=0, name=Name.FAULT_BEGAN, node=2, cause="power_loss")
LIE_ENDED = Event(time=0, name=Name.FAULT_ENDED, node=2, cause="lying_fsync")
WHOLE = event(Name.LOG_RECOVERED, 2, offset=12, high_watermark=4)
CAUGHT_UP = event(Name.APPENDED, 2, offset=12, leader_epoch=0, values=(12,), cause="follower")


def compacted(below: int, size: int = 100) -> Event:
    """The cleaner of broker 2 wrote all below this offset anew, if there was anything to clean."""
    detail = f'{{"records_dropped":0,"bytes_before":{size},"bytes_after":{size}}}'
    return event(Name.COMPACTED, 2, offset=below, detail=detail)


def rewritten(observed_state: ObservedState) -> list[tuple[int, int]]:
    """What may be lost since a compaction wrote it anew."""
    return [(loss.start, loss.end) for loss in observed_state.losses if loss.rewritten]


def test_a_compaction_under_a_lie_puts_all_that_it_wrote_anew_at_risk():
    """Old records, durable before, stand in a segment that nothing synced: a power loss may take them from
    inside of the log (storage, seed 1387)."""
    facts = lied_about(compacted(8), POWER_LOSS, WHOLE)
    assert rewritten(facts) == [(0, 8)] and (10, 12) in [(loss.start, loss.end) for loss in facts.losses]
    reasons = [loss.reason for loss in derive_claims(PLAN, facts, (APPEND, POLL)).loss]
    assert any("written anew below 8" in reason for reason in reasons)
    moved = event(Name.LOG_START, 2, log_start_offset=3, high_watermark=10, end_offset=12)
    assert rewritten(lied_about(moved, compacted(8), POWER_LOSS, WHOLE)) == [(3, 8)]
    short = event(Name.LOG_RECOVERED, 2, offset=5, high_watermark=4)
    assert rewritten(lied_about(compacted(8), POWER_LOSS, short)) == [(0, 5)], "what was cut is fetched again"
    joined = lied_about(state(1, 1, (1,)), compacted(8), POWER_LOSS, WHOLE, CAUGHT_UP)
    assert rewritten(joined) == []
    joined.learn(state(1, 1, (1, 2)))
    assert rewritten(joined) == [(0, 8)], "no fetch goes back into a log: it joins the ISR with the hole"


def test_nothing_that_a_sync_has_reached_is_at_risk():
    """A pass that found nothing to clean wrote nothing; one after the lie syncs all that it writes; without a
    power loss, or a lie, nothing is lost."""
    assert rewritten(lied_about(compacted(0, 0), POWER_LOSS, WHOLE)) == []
    assert rewritten(lied_about(compacted(8), LIE_ENDED, compacted(10), POWER_LOSS, WHOLE)) == []
    assert rewritten(lied_about(compacted(8), LIE_ENDED, POWER_LOSS, WHOLE)) == [(0, 8)]
    assert rewritten(lied_about(LIE_ENDED, compacted(8), POWER_LOSS, WHOLE)) == []
    assert rewritten(lied_about(compacted(8), WHOLE)) == []
    cut = event(Name.TRUNCATED, 2, offset=6)
    assert rewritten(lied_about(compacted(8), cut, POWER_LOSS, WHOLE)) == [(0, 6)]
    honest = story(state(1, 0, (1, 2)), compacted(8), POWER_LOSS, WHOLE)
    assert rewritten(honest) == []


def held(end: int, cause: str = "power_loss") -> Event:
    """The disk of broker 2 surely holds everything below this offset."""
    return event(Name.DURABLE, 2, end_offset=end, cause=cause)


def test_what_the_disk_held_when_the_power_failed_is_not_excused():
    """Rule: a log that comes back shorter than its disk surely held lost more than the power loss explains;
    only the rest of its loss is allowed. Where the log is longer, it ends where it ends."""
    isr = state(1, 0, (1, 2))
    assert [(loss.start, loss.end) for loss in story(isr, held(8), RECOVERED).losses] == [(8, 10)]
    assert [(loss.start, loss.end) for loss in story(isr, held(5), RECOVERED).losses] == [(6, 10)]
    assert story(isr, held(10), RECOVERED).losses == []
    again = story(isr, held(8), POWER_LOSS, held(6), RECOVERED)
    assert [(loss.start, loss.end) for loss in again.losses] == [(8, 10)], "nothing was opened in between"
    rotten = Event(time=0, name=Name.FAULT_BEGAN, node=2, cause="bit_rot")
    rotted = story(isr, held(8), rotten, held(7, "bit_rot"), RECOVERED)
    assert [(loss.start, loss.end) for loss in rotted.losses] == [(7, 10)]


def test_a_lie_costs_nothing_that_a_later_sync_made_durable():
    """Rule: the disk says what it holds when the power fails, whatever it had lied about before; the same
    fact counts for what a compaction wrote anew."""
    assert lied_about(LIE_ENDED, POWER_LOSS, held(12), WHOLE).losses == []
    partly = lied_about(LIE_ENDED, POWER_LOSS, held(11), WHOLE).losses
    assert [(loss.start, loss.end) for loss in partly] == [(11, 12)]
    assert rewritten(lied_about(compacted(8), LIE_ENDED, POWER_LOSS, held(12), WHOLE)) == []
    assert rewritten(lied_about(compacted(8), POWER_LOSS, held(3), WHOLE)) == [(3, 8)]
    hole = lied_about(compacted(8), POWER_LOSS, held(3), WHOLE, LIE_ENDED, POWER_LOSS, held(12), WHOLE)
    assert rewritten(hole)[-1] == (3, 8), "no later sync brings back what is gone"


def test_a_lie_excuses_the_power_loss_that_followed_it_and_no_later_restart():
    """What is recovered is durable: a process that dies after that loses nothing by a lie of long ago. A log
    that was made under a lie is at risk whole."""
    facts = lied_about(POWER_LOSS, LIE_ENDED, WHOLE)
    facts.learn(CAUGHT_UP)
    facts.learn(event(Name.HIGH_WATERMARK, 1, high_watermark=13, cause="leader"))
    before = len(facts.losses)
    facts.learn(event(Name.LOG_RECOVERED, 2, offset=13, high_watermark=13))
    assert len(facts.losses) == before
    made = ObservedState()
    made.learn(state(1, 0, (1, 2)))
    made.learn(Event(time=0, name=Name.FAULT_BEGAN, node=2, cause="lying_fsync"))
    made.learn(event(Name.LOG_RECOVERED, 2, offset=0, high_watermark=0))
    made.learn(event(Name.APPENDED, 2, offset=0, leader_epoch=0, values=(1, 2), cause="follower"))
    made.learn(event(Name.HIGH_WATERMARK, 1, high_watermark=2, cause="leader"))
    made.learn(POWER_LOSS)
    made.learn(event(Name.LOG_RECOVERED, 2, offset=2, high_watermark=2))
    assert [(loss.start, loss.end) for loss in made.losses] == [(0, 2)]


def test_log_starts_and_compaction_are_claimed():
    """Retention is claimed once a log start moved, compaction by the topic's policy; then holes cannot be
    counted."""
    facts = ObservedState()
    assert not derive_claims(PLAN, facts, (APPEND, POLL)).retention
    facts.learn(event(Name.LOG_START, 1, log_start_offset=3, high_watermark=4, end_offset=4))
    claims = derive_claims(PLAN, facts, (APPEND, POLL))
    assert claims.retention and not claims.dense and claims.compacted == ()
    found = ObservedState()
    found.learn(event(Name.LOG_RECOVERED, 1, offset=4, high_watermark=4, log_start_offset=3))
    assert derive_claims(PLAN, found, (APPEND, POLL)).retention, "the step that moved it was cut short"
    compacting = evolve(PLAN, cluster=ClusterOptions(topics=(TopicOptions(cleanup_policy="compact,delete"),)))
    claims = derive_claims(compacting, ObservedState(), (APPEND, POLL))
    assert claims.compacted == ("t",) and not claims.dense


def operation(function: Function, outcome: Outcome, **fields: object) -> Operation:
    """A client operation."""
    return Operation(op_id=1, process=0, function=function, invoke_time=0, outcome=outcome, **fields)


APPEND = operation(Function.APPEND, Outcome.OK, acks=-1)
POLL = operation(Function.POLL, Outcome.OK, records=(Record(topic="t", partition=0, offset=0, value=1),))
PLAN = Plan(seed=0, operations=(PlannedOperation(op_id=1, process=0, at_ms=0, function="append"),))


def test_a_run_without_acknowledgement_or_read_is_too_weak():
    """A run in which nothing was promised or nothing was seen is assumption broken, not Ok."""
    assert derive_claims(PLAN, ObservedState(), (APPEND, POLL)).assumption_broken == ""
    assert "acknowledged" in derive_claims(PLAN, ObservedState(), (POLL,)).assumption_broken
    assert "read" in derive_claims(PLAN, ObservedState(), (APPEND,)).assumption_broken
    empty = evolve(POLL, records=())
    assert "read" in derive_claims(PLAN, ObservedState(), (APPEND, empty)).assumption_broken
    deleted = ObservedState(retained=True)  # then a read that finds nothing says what the log holds
    assert derive_claims(PLAN, deleted, (APPEND, empty)).assumption_broken == ""
    refused = evolve(empty, outcome=Outcome.FAIL)
    assert "read" in derive_claims(PLAN, deleted, (APPEND, refused)).assumption_broken


def test_retries_of_unknown_appends_allow_duplicates_and_lift_density():
    """An at-least-once producer may write a record twice; then holes cannot be counted either."""
    retrying = evolve(PLAN, client=ClientOptions(retry_unknown=True))
    assert derive_claims(retrying, ObservedState(), (APPEND, POLL)).duplicates
    assert not derive_claims(retrying, ObservedState(), (APPEND, POLL)).dense
    assert derive_claims(PLAN, ObservedState(), (APPEND, POLL)).dense


def test_an_election_outside_the_isr_allows_everything_in_that_partition():
    """An unclean election is recorded as a fact, and then any loss of that partition is legal."""
    facts = ObservedState()
    facts.learn(state(1, 0, (1, 2)))
    facts.learn(state(3, 1, (3,)))
    allowing = evolve(PLAN, cluster=ClusterOptions(topics=(TopicOptions(unclean_leader_election=True),)))
    (loss,) = derive_claims(allowing, facts, (APPEND, POLL)).loss
    assert (loss.topic, loss.partition, loss.start) == ("t", 0, 0)
    assert not derive_claims(PLAN, facts, (APPEND, POLL)).loss, "a topic that allows none gives no licence"


def test_a_topic_of_the_same_name_begins_anew():
    """Rule: leader, what was shown, epochs and first replicas are those of the topic that is there; what the
    one before may have lost stays claimed."""
    facts = story(
        event(Name.ASSIGNMENT, -1, replicas=(1, 2)),
        state(1, 0, (1, 2)),
        RECOVERED,
        state(3, 5, (3,)),
        event(Name.BECAME_LEADER, 3, leader_epoch=5),
    )
    facts.learn(event(Name.ASSIGNMENT, -1, replicas=()))
    facts.learn(event(Name.HIGH_WATERMARK, 3, high_watermark=12, cause="leader"))  # said late
    assert resolve("leader of t-0", facts, 3) is None and facts.assignments[KEY] == ()
    for each in (
        event(Name.ASSIGNMENT, -1, replicas=(2, 3)),
        state(2, 0, (2, 3)),
        event(Name.BECAME_LEADER, 2, leader_epoch=0),
    ):
        facts.learn(each)
    known = facts.partition(KEY)
    assert (known.led_by, known.exposed, known.unclean) == ((2, 0), 0, False)
    assert facts.first_assignments[KEY] == (2, 3) and resolve("leader of t-0", facts, 3) == 2
    allowing = evolve(PLAN, cluster=ClusterOptions(topics=(TopicOptions(unclean_leader_election=True),)))
    reasons = {(loss.start, loss.reason) for loss in derive_claims(allowing, facts, (APPEND, POLL)).loss}
    assert {start for start, _ in reasons} == {0, 6}, "of the election outside the ISR, and of the power loss"


def test_a_fault_makes_no_replicas():
    """Who has a replica is what brokers told; a fault of the cluster or of a broker without one must not
    change whom a role means."""
    facts = story()
    for kind, node in (("zookeeper_restart", -1), ("crash", 3), ("power_loss", 3)):
        facts.learn(Event(time=0, name=Name.FAULT_BEGAN, node=node, cause=kind))
    assert sorted(facts.partition(KEY).replicas) == [1, 2]


def test_roles_follow_the_facts():
    """A role is resolved by what ZooKeeper says when the fault begins."""
    facts = story(state(2, 1, (1, 2)))
    facts.learn(Event(time=0, name=Name.CONTROLLER_ZNODE, node=3, leader=3))
    assert resolve("controller", facts, 3) == 3
    assert resolve("leader of t-0", facts, 3) == 2
    assert resolve("follower 1 of t-0", facts, 3) == 1
    assert resolve("follower 2 of t-0", facts, 3) is None
    assert resolve("leader of t-9", facts, 3) is None


def test_a_leader_that_never_heard_of_what_retention_deleted_may_show_it_again():
    """Retention takes epochs away with records, so that a follower with other records in their place is not
    sent to cut its log. Known from the profile everything, seed 900205. Who has heard of the high watermark,
    or of the log start, explains nothing; nor does a log start that a client moved."""

    def forgotten(cause: str, *more: Event) -> list[tuple[int, int, int]]:
        moved = event(Name.LOG_START, 1, log_start_offset=8, cause=cause)
        facts = ObservedState()
        for each in (
            state(1, 0, (1, 2)),
            event(Name.APPENDED, 2, offset=0, leader_epoch=0, values=tuple(range(10)), cause="follower"),
            event(Name.HIGH_WATERMARK, 2, high_watermark=3, cause="follower"),
            moved,
            *more,
            state(2, 1, (2,)),
        ):
            facts.learn(each)
        return [(loss.node, loss.start, loss.end) for loss in facts.losses]

    assert forgotten("retention") == [(2, 3, 8)]
    assert forgotten("delete_records") == []
    assert forgotten("retention", event(Name.HIGH_WATERMARK, 2, high_watermark=8, cause="follower")) == []
    assert forgotten("retention", event(Name.LOG_START, 2, log_start_offset=8, cause="leader")) == []


def test_a_follower_may_keep_batches_below_the_log_start_of_its_leader() -> None:
    """Rule (COMMIT-SAFE): the leader's epochs went with its records, so that a follower with others in their
    place is sent to cut its log no further than to the log start. It knows the producers of its own batches,
    and acknowledges their retries when it leads (seed 43003682 of the profile everything)."""

    def kept(*more: Event, cut_at: int = 8, knows: int = 3) -> list[tuple[int, int, int]]:
        cut = {"offset": cut_at, "high_watermark": knows, "cause": "leader_epoch"}
        facts = ObservedState()
        for each in (
            state(1, 0, (1, 2)),
            event(Name.APPENDED, 2, offset=0, leader_epoch=0, values=tuple(range(10)), cause="leader"),
            event(Name.LOG_START, 1, log_start_offset=8, cause="retention"),
            event(Name.TRUNCATED, 2, **cut),
            *more,
            event(Name.LOG_START, 2, log_start_offset=8, cause="leader"),
            event(Name.HIGH_WATERMARK, 2, high_watermark=8, cause="follower"),
            state(2, 1, (2,)),
        ):
            facts.learn(each)
        return [(loss.node, loss.start, loss.end) for loss in facts.losses]

    assert kept() == [(2, 3, 8)]
    assert kept(cut_at=9) == kept(knows=8) == []
    assert kept(event(Name.TRUNCATED, 2, offset=8, high_watermark=3, cause="full")) == []
