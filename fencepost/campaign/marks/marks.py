"""Marks: what a campaign should reach sometimes, if its swarm is any good.

Owns the table: what each mark says, how a trace shows it, what makes it likelier. Must not know how a run
works, or what a judge looks for: a mark is neither good nor bad. A campaign that never cut a log has not
tested truncation, however many seeds it ran (FoundationDB's probes, Antithesis' "sometimes").

A mark is recognised from a trace alone, in one pass over its events with what happened before
(event_history.py), and one over its operations.
"""

from collections.abc import Callable, Iterable

from attrs import frozen

from fencepost.campaign.marks import predicates as sign
from fencepost.campaign.marks.event_history import EventHistory, replica_of
from fencepost.campaign.marks.predicates import EventPredicate, OperationPredicate
from fencepost.impl.client.producer.producer import LATE_SEND_REFUSED
from fencepost.impl.messages.group_api import NO_GENERATION
from fencepost.model.lives import events_with_lives
from fencepost.traces.events import OFFSET_DELETED, Name
from fencepost.traces.operations import CHANGED, COOPERATIVE, LATE, SEEK, Function, Outcome
from fencepost.traces.plan import STEP_START, STEP_STOP
from fencepost.traces.trace import Trace

OR = " or "


@frozen(kw_only=True)
class Mark:
    """A situation that a run may reach."""

    name: str
    says: str
    # The events that may show it; None: none does.
    on: Name | None = None
    # Whether one of these does; None: each does.
    seen: EventPredicate | None = None
    # Whether an operation shows it.
    row_predicate: OperationPredicate | None = None
    # Kinds of fault and request, and percentages of a profile, that make it likelier: where steering leans.
    leads: tuple[str, ...] = ()
    # Those without which it cannot happen, or not in a thousand seeds; each "this or that".
    needs: tuple[str, ...] = ()


LEADERS_FALL = ("expire_session", "isolate_zookeeper", "crash", "pause", "quick")
REQUESTS_MADE = ("administered",)
STEPS_OF_FILES = (
    ("checkpoint", "a checkpoint", (), 0),
    ("deletion", "a removal of a segment", ("small_segments", "retained"), 0),
    ("roll", "a roll", ("small_segments",), 0),
    (STEP_START, "its start: the next one recovered what a recovery had left", (), 0),
    (STEP_STOP, "a clean stop", ("clean_restart",), 1),
    ("swap", "a compaction or a recovery that puts a segment in place", ("compacted", "small_segments"), 0),
    ("truncation", "a truncation", ("quick",), 0),
)
"""Steps of a broker's work on its files: in words, what leads to them, and how much of that is needed."""

MARKS: tuple[Mark, ...] = (
    # ---- controllers
    Mark(
        name="session_expired",
        says="a broker that lived on learned that its session had ended",
        on=Name.SESSION_EXPIRED,
        seen=sign.always,
        leads=("isolate_zookeeper", "expire_session", "pause", "slow_zookeeper"),
    ),
    Mark(
        name="bounced_unnoticed",
        says="a broker was back before ZooKeeper knew that it had been away",
        on=Name.BROKER_STARTED,
        seen=lambda past, event: event.node in past.registered,
        leads=("bounce", "clean_restart"),
    ),
    Mark(
        name="two_controllers",
        says="a broker became the controller while another believed to be it",
        on=Name.CONTROLLER_ELECTED,
        seen=lambda past, event: bool(past.controllers - {event.node}),
        leads=("expire_session", "isolate_zookeeper", "pause"),
    ),
    Mark(
        name="zombie_controller_refused",
        says="ZooKeeper refused the write of a controller that had been replaced",
        on=Name.CONTROLLER_WRITE_REFUSED,
        seen=sign.always,
        leads=("expire_session", "slow_zookeeper", "pause"),
    ),
    Mark(
        name="stale_controller_refused",
        says="a broker refused a request of an earlier controller epoch",
        on=Name.CONTROL_REQUEST_REFUSED,
        seen=sign.detail("STALE_CONTROLLER_EPOCH"),
        leads=("expire_session", "slow_link", "pause", "stormy"),
    ),
    Mark(
        name="earlier_incarnation_refused",
        says="a broker refused a request that was meant for its earlier process",
        on=Name.CONTROL_REQUEST_REFUSED,
        seen=sign.detail("STALE_BROKER_EPOCH"),
        leads=("bounce", "slow_link", "stormy"),
    ),
    Mark(
        name="partition_without_leader",
        says="a partition had no leader, as nobody in its ISR was alive",
        on=Name.PARTITION_STATE,
        seen=lambda past, event: event.leader < 0,
        leads=LEADERS_FALL,
    ),
    Mark(
        name="unclean_election",
        says="a broker outside the ISR was elected",
        on=Name.PARTITION_STATE,
        seen=sign.unclean,
        leads=("unclean", "alter_topic", "administered", *LEADERS_FALL),
        needs=("unclean or alter_topic",),
    ),
    Mark(
        name="reassigned",
        says="a reassignment came to its end",
        on=Name.MARK,
        seen=sign.cause("reassigned"),
        leads=("reassign_grow", "reassign_move", "reassign_shrink", "reassign_reorder", *REQUESTS_MADE),
        needs=("reassign_grow or reassign_move or reassign_shrink or reassign_reorder",),
    ),
    Mark(
        name="failed_over_while_reassigning",
        says="a new controller took over in the midst of a reassignment",
        on=Name.MARK,
        seen=lambda past, event: event.cause == "failed_over" and bool(past.observed_state.reassigning),
        leads=("reassign_grow", "reassign_move", "expire_session", "restless", *REQUESTS_MADE),
        needs=("reassign_grow or reassign_move or reassign_shrink or reassign_reorder",),
    ),
    Mark(
        name="deletion_resumed",
        says="a topic's deletion was carried out by another controller than the one that was asked",
        on=Name.TOPIC_DELETION,
        seen=sign.deletion_resumed,
        leads=("delete_topic", "expire_session", "isolate_zookeeper", *REQUESTS_MADE),
        needs=("delete_topic",),
    ),
    Mark(
        name="configuration_applied",
        says="a broker took over a changed configuration of a topic",
        on=Name.TOPIC_CONFIGURED,
        seen=sign.always,
        leads=("alter_topic", *REQUESTS_MADE),
        needs=("alter_topic",),
    ),
    Mark(
        name="configured_back",
        says="a broker took back a configuration that a topic had had before the last one",
        on=Name.TOPIC_CONFIGURED,
        seen=lambda past, event: event.detail in past.configurations(event)[:-1],
        leads=("moved_settings", "alter_topic", *REQUESTS_MADE),
        needs=("alter_topic",),
    ),
    # ---- replication
    Mark(
        name="isr_shrunk_to_one",
        says="a leader was left alone in the ISR",
        on=Name.ISR_UPDATED,
        seen=lambda past, event: event.cause == "shrink" and len(event.isr) == 1,
        leads=("partition", "slow_link", "loss", "pause"),
    ),
    Mark(
        name="isr_change_refused",
        says="ZooKeeper refused a leader's change of the ISR: the state had another version",
        on=Name.ISR_REFUSED,
        seen=sign.always,
        leads=("lose_zookeeper_replies", "slow_zookeeper", "isolate_zookeeper"),
    ),
    Mark(
        name="fetch_fenced",
        says="a leader refused a fetch of an earlier leader epoch",
        on=Name.FETCH_REFUSED,
        seen=sign.detail("FENCED_LEADER_EPOCH"),
        leads=LEADERS_FALL,
    ),
    Mark(
        name="fetch_of_the_future",
        says="a leader refused a fetch of a leader epoch that it had not heard of",
        on=Name.FETCH_REFUSED,
        seen=sign.detail("UNKNOWN_LEADER_EPOCH"),
        leads=LEADERS_FALL,
    ),
    Mark(
        name="zombie_leader_appended",
        says="a leader wrote after ZooKeeper had another epoch",
        on=Name.APPENDED,
        seen=sign.epoch_of_the_past,
        leads=("isolate_zookeeper", "expire_session", "slow_link"),
    ),
    Mark(
        name="led_below_exposed",
        says="a leader began with a lower high watermark than an earlier one had exposed",
        on=Name.BECAME_LEADER,
        seen=lambda past, event: event.high_watermark < sign.exposed(past, event),
        leads=LEADERS_FALL,
    ),
    Mark(
        name="log_cut",
        says="a follower cut records that its leader does not have",
        on=Name.TRUNCATED,
        seen=lambda past, event: event.cause == "leader_epoch" and event.offset < event.end_offset,
        leads=("crash", "partition", "isolate_zookeeper", "quick"),
    ),
    Mark(
        name="cut_twice",
        says="a replica was cut twice before it appended anything",
        on=Name.TRUNCATED,
        seen=lambda past, event: replica_of(event) in past.cut,
        leads=("followed", *LEADERS_FALL),
        needs=("quick or unclean",),
    ),
    Mark(
        name="cut_across_epochs",
        says="what was cut from a log had been written in several leader epochs",
        on=Name.TRUNCATED,
        seen=lambda past, event: past.epochs_from(replica_of(event), event.offset) > 1,
        leads=("partition", *LEADERS_FALL),
    ),
    Mark(
        name="cut_below_exposed",
        says="a log was cut below a high watermark that an old leader had exposed",
        on=Name.TRUNCATED,
        seen=sign.cut_below_exposed,
        leads=("power_loss", "disks_lost", "unclean", "alter_topic"),
        needs=("power_loss or unclean or alter_topic", "disks_lost or unclean or alter_topic"),
    ),
    Mark(
        name="not_enough_replicas",
        says="an append with acks=all met an ISR that was too small",
        row_predicate=sign.error(Function.APPEND, "NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND"),
        leads=("partition", "pause", "crash", "loss"),
    ),
    # ---- logs
    Mark(
        name="torn_tail_cut",
        says="a log came back from a power loss shorter than it was: its tail was gone, or torn and cut",
        on=Name.LOG_RECOVERED,
        seen=sign.shorter,
        leads=("power_loss", "disks_lost"),
        needs=("power_loss or bit_rot",),
    ),
    *(
        Mark(
            name=f"{step}_interrupted",
            says=f"a broker died, or lost its power, in a file call of {words}",
            on=Name.FAULT_BEGAN,
            seen=sign.struck_inside(step),
            leads=("file_steps", "crash", *leads),
            needs=("file_steps", "crash or power_loss", *leads[:needed]),
        )
        for step, words, leads, needed in STEPS_OF_FILES
    ),
    Mark(
        name="log_start_passed_follower",
        says="a follower dropped all it had: its leader's log begins after the follower's end",
        on=Name.TRUNCATED,
        seen=lambda past, event: event.cause == "full" and event.offset > 0,
        leads=("retained", "deletions", "small_segments", "partition", "crash", "alter_topic"),
        needs=("retained or deletions or alter_topic",),
    ),
    Mark(
        name="log_start_moved",
        says="a leader gave up its first records",
        on=Name.LOG_START,
        seen=sign.cause("retention", "delete_records"),
        leads=("retained", "deletions", "small_segments", "alter_topic"),
        needs=("retained or deletions or alter_topic",),
    ),
    Mark(
        name="log_directory_failed",
        says="a file call failed, and the broker halted",
        on=Name.LOG_DIRECTORY_FAILED,
        seen=sign.always,
        leads=("io_error", "disk_full"),
        needs=("io_error or disk_full",),
    ),
    Mark(
        name="compacted",
        says="the cleaner dropped records",
        on=Name.COMPACTED,
        seen=lambda past, event: '"records_dropped":0,' not in event.detail,
        leads=("compacted", "small_segments"),
        needs=("compacted or groups",),
    ),
    # ---- groups and producers
    Mark(
        name="rebalance_during_commit",
        says="a rebalance began while a member's commit was under way",
        row_predicate=sign.commit_crossed,
        leads=("groups", "slow_link", "pause"),
        needs=("groups",),
    ),
    Mark(
        name="commit_refused",
        says="a commit of an earlier generation, or of somebody who is no member, was refused",
        row_predicate=sign.error(Function.COMMIT, "ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID"),
        leads=("groups", "pause"),
        needs=("groups",),
    ),
    Mark(
        name="late_commit_refused",
        says="a commit of an earlier generation was sent on purpose, and refused",
        row_predicate=sign.error(Function.COMMIT, "ILLEGAL_GENERATION", argument=LATE),
        leads=("groups",),
        needs=("groups",),
    ),
    Mark(
        name=LATE_SEND_REFUSED,
        says="a batch of a sequence long past, or of a transaction that had ended, was not taken",
        on=Name.MARK,
        seen=sign.cause(LATE_SEND_REFUSED),
        leads=("producers", "transactions"),
        needs=("producers or transactions",),
    ),
    Mark(
        name="coordinator_failed_over",
        says="another broker became the coordinator in the midst of a rebalance",
        on=Name.GROUPS_LOADED,
        seen=sign.coordinator_moved,
        leads=("groups", *LEADERS_FALL),
        needs=("groups",),
    ),
    Mark(
        name="sought",
        says="a consumer of a group went to another offset on purpose",
        row_predicate=lambda past, row: row.function is Function.ASSIGN and row.argument == SEEK,
        leads=("seeking", "groups", "transactions"),
        needs=("groups or transactions", "seeking or transactions"),
    ),
    Mark(
        name="subscribed_again",
        says="a consumer left its group and joined it again in the same process",
        row_predicate=lambda past, row: row.function is Function.SUBSCRIBE and row.group is not None,
        leads=("resubscribing", "groups"),
        needs=("resubscribing", "groups"),
    ),
    Mark(
        name="subscription_changed",
        says="a member subscribed to other topics and stayed one",
        row_predicate=lambda past, row: row.function is Function.SUBSCRIBE and row.argument == CHANGED,
        leads=("subscriptions", "resubscribing", "groups"),
        needs=("subscriptions", "resubscribing", "groups"),
    ),
    Mark(
        name="committed_alone",
        says="a consumer that is no member committed in a group",
        row_predicate=lambda past, row: (
            row.function is Function.COMMIT and row.outcome is Outcome.OK and row.generation == NO_GENERATION
        ),
        leads=("standalone", "groups"),
        needs=("standalone", "groups"),
    ),
    Mark(
        name="assignor_refused",
        says="a consumer was refused that names no assignor of all the others",
        row_predicate=sign.error(Function.JOIN, "INCONSISTENT_GROUP_PROTOCOL"),
        leads=("different", "groups"),
        needs=("different", "groups"),
    ),
    Mark(
        name="offset_deleted",
        says="an operator deleted what a group had committed",
        on=Name.GROUP_OFFSET_EXPIRED,
        seen=sign.cause(OFFSET_DELETED),
        leads=("managed", "groups"),
        needs=("managed", "groups"),
    ),
    Mark(
        name="compaction_ended",
        says="a broker was told that a topic's logs, which have gaps, are deleted from now on",
        on=Name.TOPIC_CONFIGURED,
        seen=sign.detail('{"cleanup.policy":"delete"'),
        leads=("compacted", "moved_settings"),
        needs=("moved_settings",),
    ),
    Mark(
        name="cooperative_rebalance",
        says="a member joined a generation that did not have to give everything up before",
        row_predicate=lambda past, row: row.argument == COOPERATIVE and row.outcome is Outcome.OK,
        leads=("cooperative", "groups", "transactions"),
        needs=("groups or transactions", "cooperative"),
    ),
    Mark(
        name="moved_in_two_steps",
        says="a member gave a partition up in one generation, and another one got it in a later one",
        row_predicate=sign.moved_in_two_steps,
        leads=("cooperative", "groups", "transactions"),
        needs=("groups or transactions", "cooperative"),
    ),
    Mark(
        name="too_large",
        says="an append failed for good, as its batch was too large",
        row_predicate=sign.error(Function.APPEND, "MESSAGE_TOO_LARGE"),
        leads=("limited", "moved_settings"),
        needs=("limited or moved_settings",),
    ),
    Mark(
        name="duplicate_known",
        says="an idempotent retry was answered by a leader that had not written the batch itself, and did "
        "not write it again",
        row_predicate=sign.answered_by_another,
        leads=("producers", *LEADERS_FALL),
        needs=("producers",),
    ),
    Mark(
        name="producer_epoch_raised",
        says="a producer began anew with a higher epoch after a batch that failed for good",
        row_predicate=lambda past, row: (row.producer_epoch or 0) > 0,
        leads=("producers", "partition", "retained"),
        needs=("producers",),
    ),
)
NAMES = tuple(mark.name for mark in MARKS)


def marks_of(trace: Trace, marks: tuple[Mark, ...] = MARKS) -> tuple[str, ...]:
    """The names of the marks that a run reached, in the order of the table.

    Args:
        trace: of the run.
        marks: those to look for.
    """
    past, reached = EventHistory(), set()
    wanted: dict[Name, list[tuple[str, EventPredicate]]] = {}
    for mark in marks:
        if mark.on is not None and mark.seen is not None:
            wanted.setdefault(mark.on, []).append((mark.name, mark.seen))
    for event in events_with_lives(trace.events):
        for name, seen in wanted.get(event.name, ()):
            if name not in reached and seen(past, event):
                reached.add(name)
        past.learn(event)
    for mark in marks:
        if mark.row_predicate is not None and any(mark.row_predicate(past, row) for row in trace.operations):
            reached.add(mark.name)
    return tuple(mark.name for mark in marks if mark.name in reached)


def possible(mark: Mark, has: Callable[[str], bool]) -> bool:
    """Whether it can be reached with what there is. has: whether a kind of fault or request, or a percentage
    of the profile, is there."""
    return all(any(has(each) for each in need.split(OR)) for need in mark.needs)


def named(names: Iterable[str], marks: tuple[Mark, ...] = MARKS) -> tuple[Mark, ...]:
    """The marks of these names, in the order of the table.

    Args:
        names: some of them.
        marks: the table.
    """
    wanted = set(names)
    return tuple(mark for mark in marks if mark.name in wanted)
