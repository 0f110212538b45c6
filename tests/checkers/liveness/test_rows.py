"""Each row of the check of liveness finds what it is for, passes its neighbour, and is excused by a
disturbance of its subject."""

import json
from collections.abc import Sequence
from itertools import count

import pytest
from attrs import evolve

from fencepost.checkers.liveness import ROWS, counts_of, judge
from fencepost.checkers.liveness.forms import Form
from fencepost.record.settings import settings_of
from fencepost.record.timeline import Kind, Subject
from fencepost.traces import plan as plans
from fencepost.traces.anomalies import BY_NAME
from fencepost.traces.events import REPLICA_DELETED, Event, Name, Question
from fencepost.traces.operations import Function, Operation, Outcome, Position, Record
from fencepost.traces.plan_json import plan_to_json
from fencepost.traces.trace import Trace
from tests.checkers import lab

SECOND = 1_000_000_000
END = 100
OFFSETS = "__consumer_offsets"
PLAN = plans.Plan(
    seed=1,
    cluster=plans.ClusterOptions(
        topics=(plans.TopicOptions(), plans.TopicOptions(name="r", retention_ms=10_000)),
        log_retention_check_interval_ms=1_000,
        zookeeper_session_timeout_ms=1_000,
        replica_lag_time_max_ms=1_000,
        replica_fetch_wait_max_ms=100,
        replica_fetch_backoff_ms=100,
        controller_request_timeout_ms=200,
        isr_change_propagation_ms=200,
        leader_imbalance_check_ms=1_000,
        leader_imbalance_interval_ms=1_000,
        controlled_shutdown_retry_backoff_ms=200,
        groups=plans.GroupOptions(initial_rebalance_delay_ms=0),
    ),
    client=plans.ClientOptions(request_timeout_ms=1_000, delivery_timeout_ms=3_000),
    consumer=plans.ConsumerOptions(
        commit="auto",
        session_timeout_ms=1_000,
        heartbeat_interval_ms=200,
        max_poll_interval_ms=3_000,
        auto_commit_interval_ms=500,
        poll_timeout_ms=200,
        processing_ms=10,
    ),
    transform=plans.TransformOptions(transaction_timeout_ms=20_000),
)
numbers = count(1)


def event(at: float, name: Name, **fields) -> Event:
    """An event at so many seconds; a dict as detail becomes JSON."""
    detail = fields.pop("detail", "")
    text = detail if isinstance(detail, str) else json.dumps(detail)
    return Event(time=int(at * SECOND), name=name, detail=text, **fields)


def state(
    at: float, leader: int, epoch: int, isr: tuple[int, ...], topic: str = "t", writer: int = 1
) -> Event:
    """What was committed of partition 0."""
    return event(
        at,
        Name.PARTITION_STATE,
        node=writer,
        topic=topic,
        partition=0,
        leader=leader,
        leader_epoch=epoch,
        isr=isr,
    )


def role(at: float, node: int, leader: int, epoch: int) -> Event:
    """A broker took its role in partition t-0."""
    name = Name.BECAME_LEADER if node == leader else Name.BECAME_FOLLOWER
    return event(at, name, node=node, topic="t", partition=0, leader=leader, leader_epoch=epoch)


def roles(at: float, leader: int, epoch: int, *nodes: int) -> list[Event]:
    """Several of them."""
    return [role(at, node, leader, epoch) for node in nodes or (1, 2, 3)]


def znode(at: float, node: int, *, gone: bool = False) -> Event:
    """A broker is registered, or not any more."""
    return event(at, Name.BROKER_ZNODE, node=node, broker_epoch=-1 if gone else 1)


def fault(at: float, kind: str, node: int, number: int = 0, **detail) -> Event:
    """A fault begins."""
    return event(at, Name.FAULT_BEGAN, node=node, cause=kind, detail={"fault": number, **detail})


def over(at: float, kind: str, node: int, number: int = 0) -> Event:
    """It ends."""
    return event(at, Name.FAULT_ENDED, node=node, cause=kind, detail={"fault": number})


def assigned(at: float, replicas: tuple[int, ...], topic: str = "t") -> Event:
    """Replicas of partition 0."""
    return event(at, Name.ASSIGNMENT, topic=topic, partition=0, replicas=replicas)


def moving(at: float, replicas: tuple[int, ...]) -> Event:
    """A reassignment of t-0 is asked for, or over."""
    return event(at, Name.REASSIGNMENT, topic="t", partition=0, replicas=replicas)


def deletion(at: float, cause: str, topic: str = "t") -> Event:
    """The deletion of a topic is requested, or done."""
    return event(at, Name.TOPIC_DELETION, topic=topic, cause=cause)


def asked(at: float, question: Question, node: int, *, detail: dict | None = None, **fields) -> Event:
    """An answer, asked for 10 ms before."""
    said = {"asked": int((at - 0.01) * SECOND), **(detail or {})}
    return event(at, Name.ASKED, node=node, cause=question, detail=said, **fields)


def content(at: float, node: int, digest: str, begin: int = 0, **more) -> Event:
    """The records of a replica of t-0, of 64 offsets."""
    return asked(
        at,
        Question.CONTENT,
        node,
        **lab.T0,
        leader=1,
        detail={"ranges": [[begin, begin + 64, digest]], "keys": {}, "markers": [], **more},
    )


def epoch_ends(at: float, *ends: tuple[int, int, int], **more) -> Event:
    """What broker 1, leader of t-0 since the first of these epochs, says of their ends."""
    said = {"ends": ends, **more}
    return asked(at, Question.EPOCHS, 1, **lab.T0, leader=1, leader_epoch=ends[0][0], detail=said)


def became_leader(at: float, epoch: int, end: int) -> Event:
    """Broker 1 leads t-0 from the end of its log on."""
    return event(at, Name.BECAME_LEADER, node=1, **lab.T0, leader=1, leader_epoch=epoch, offset=end)


def stored(at: float, records: list, **more) -> Event:
    """Records of the offsets that group g committed for t-0, as the leader has them."""
    said = {"group": "g", "of": ["t", 0], "records": records, **more}
    return asked(at, Question.OFFSET_RECORDS, 1, topic=OFFSETS, partition=0, leader=1, detail=said)


def described(at: float, state: str, epoch: int = 0) -> Event:
    """What the coordinator says of the transaction of x."""
    said = {"transactional_id": "x", "producer_id": 7, "producer_epoch": epoch, "started_ms": 30_000}
    return asked(
        at,
        Question.TRANSACTION,
        1,
        topic="__transaction_state",
        partition=0,
        detail={**said, "timeout_ms": 60_000, "partitions": [["t", 0]], "state": state},
    )


def op(function: Function, begin: float, end: float | None, **fields) -> Operation:
    """An operation of process 0 of t-0."""
    times = (int(begin * SECOND), None if end is None else int(end * SECOND))
    return lab.operation(next(numbers), function, *times, **{"process": 0, **lab.T0, **fields})


def of_group(function: Function, begin: float, end: float | None, **fields) -> Operation:
    """An operation of member m of group g."""
    place = {"topic": None, "partition": None, "group": "g", "member": "m", "generation": 1}
    return op(function, begin, end, **{**place, **fields})


def record(offset: int) -> Record:
    """Of t-0."""
    return Record(topic="t", partition=0, offset=offset, value=offset)


def place(offset: int) -> Position:
    """Of t-0."""
    return Position(topic="t", partition=0, offset=offset)


def polls(*times: float, offset: int = 0, **fields) -> list[Operation]:
    """Polls of a member that bring nothing."""
    return [of_group(Function.POLL, at, at + 0.2, positions=(place(offset),), **fields) for at in times]


def appended(begin: float, end: float, offset: int, node: int = 1, **fields) -> Operation:
    """One record of t-0 that all of the ISR have."""
    return op(Function.APPEND, begin, end, offset=offset, node=node, acks=-1, leader_epoch=0, **fields)


def by_time(begin: float, since: float, offset: int, stamped: float = -0.001, epoch: int = 0) -> Operation:
    """Broker 1 names the first record of t-0 since a time, all in seconds."""
    said = {"from_ms": int(since * 1_000), "offset": offset, "timestamp_ms": round(stamped * 1_000)}
    return op(
        Function.LIST_OFFSETS,
        begin,
        begin + 0.1,
        argument="by_time",
        node=1,
        result=json.dumps({**said, "leader_epoch": epoch if offset >= 0 else -1}),
    )


START = (
    *(event(0, Name.BROKER_STARTED, node=node) for node in (1, 2, 3)),
    *(znode(0.1, node) for node in (1, 2, 3)),
    event(0.2, Name.CONTROLLER_ZNODE, node=1, leader=1),
    event(0.2, Name.CONTROLLER_EPOCH, node=1, controller_epoch=1),
    assigned(0.3, (1, 2, 3)),
    state(0.4, 1, 0, (1, 2, 3)),
    *roles(0.5, 1, 0),
    event(1, Name.PHASE, cause="safety"),
)


def trace_of(parts: Sequence[Event | Operation]) -> Trace:
    """A healthy cluster to which this happens."""
    events = [one for one in parts if isinstance(one, Event)]
    end = event(END, Name.PHASE, cause="end")
    return lab.trace(
        (one for one in parts if isinstance(one, Operation)),
        trace_id=1,
        plan=plan_to_json(PLAN),
        events=tuple(sorted((*START, *events, end), key=lambda one: one.time)),
    )


def found(parts: Sequence[Event | Operation]) -> set[str]:
    """The anomalies."""
    return {finding.anomaly for finding in judge(trace_of(parts)).findings}


def begins(at: float, node: int, offset: int, cause: str = "leader") -> Event:
    """A replica of t-0 begins at an offset."""
    return event(at, Name.LOG_START, node=node, topic="t", partition=0, log_start_offset=offset, cause=cause)


def in_group(at: float, cause: str, *members: str, why: str = "") -> Event:
    """Broker 1 says in which state its group is, and with which members."""
    detail = {"group": "g", "generation": 3, "members": members, "leader": "", "why": why}
    return event(at, Name.GROUP_PHASE, node=1, topic=OFFSETS, partition=0, cause=cause, detail=detail)


DEATH = (fault(30, "crash", 3), znode(31, 3, gone=True))
NEW_LEADER = (state(50, 2, 1, (1, 2, 3)), *roles(50.1, 2, 1))
MEMBER = [of_group(Function.JOIN, 20, 20.1, positions=(place(-1),)), *polls(*range(21, 95))]
PREPARED = {"transactional_id": "x", "producer_id": 7, "producer_epoch": 0, "partitions": ["t-0"]}


SAYS_APPENDS = (event(40.05, Name.APPENDED, node=1, topic="t", partition=0, offset=5, values=(5,)),)
"""A broker's own word: its log starts and truncations are in the trace, too."""


def phase(at: float, cause: str, **more) -> Event:
    """A transaction of x comes into a state."""
    return event(
        at,
        Name.TRANSACTION_PHASE,
        node=1,
        topic="__transaction_state",
        partition=0,
        cause=cause,
        detail=PREPARED | more,
    )


def marker(at: float) -> Event:
    """It is marked in t-0."""
    return event(at, Name.MARKER_WRITTEN, node=1, **lab.T0, detail={"producer_id": 7, "commit": True})


def kept(at: float, *, until: float | None = None, cause: str = "leader") -> list[Event]:
    """Broker 1 has a record of topic r, which keeps it for 10 s; retention deletes it."""
    on = {"node": 1, "topic": "r", "partition": 0}
    found = [
        event(at, Name.APPENDED, offset=0, values=(77,), cause=cause, **on),
        event(at + 0.1, Name.HIGH_WATERMARK, high_watermark=1, cause="leader", **on),
    ]
    if until is not None:
        found.append(event(until, Name.LOG_START, log_start_offset=1, cause="retention", **on))
    return found


def configured(at: float, *nodes: int, value: str = "1") -> list[Event]:
    """Brokers apply a setting."""
    detail = {"retention.ms": value}
    return [event(at, Name.TOPIC_CONFIGURED, node=node, topic="t", detail=detail) for node in nodes]


def group_is(at: float, state: str) -> Event:
    """What the coordinator says of the group, with m as its member."""
    return asked(
        at, Question.GROUP, 1, detail={"group": "g", "state": state, "members": [["m", None, ["t", 0]]]}
    )


def controlled_by_2(at: float, said_by: int = -1) -> tuple[Event, Event]:
    """Broker 2 is the controller, of the next epoch."""
    return (
        event(at, Name.CONTROLLER_ZNODE, node=said_by, leader=2),
        event(at, Name.CONTROLLER_EPOCH, node=2, controller_epoch=2),
    )


# For each row: what it finds, and a neighbour that it passes.
CASES: dict[str, tuple[Sequence[Event | Operation], Sequence[Event | Operation]]] = {
    "slow_registration": lab.pair(
        lambda either: (
            *DEATH,
            event(40, Name.BROKER_STARTED, node=3),
            *either((), (znode(41, 3), state(32, 1, 1, (1, 2)), state(43, 1, 1, (1, 2, 3)))),
        )
    ),
    "session_lost": (
        (znode(50, 3, gone=True), znode(50.1, 3)),
        (fault(48, "pause", 3), znode(49.5, 3, gone=True), over(50, "pause", 3), znode(50.1, 3)),
    ),
    "no_controller": lab.pair(
        lambda either: (
            *(fault(30, "crash", 1), event(31, Name.CONTROLLER_ZNODE, leader=-1), znode(31, 1, gone=True)),
            *either((), controlled_by_2(31.5, said_by=2)),
        )
    ),
    "controller_moved": (
        controlled_by_2(50),
        (fault(49, "isolate_zookeeper", 1), *controlled_by_2(50), over(51, "isolate_zookeeper", 1)),
    ),
    "late_stop": (
        (fault(30, "clean_restart", 3),),
        (fault(30, "clean_restart", 3), event(31, Name.BROKER_STATE, node=3, cause="NotRunning")),
    ),
    "stopped_as_leader": lab.pair(
        lambda either: (
            fault(50, "clean_restart", 1),
            *either((), (state(50.5, 2, 1, (2, 3)), *roles(50.6, 2, 1))),
            znode(51, 1, gone=True),
        )
    ),
    "slow_election": lab.pair(
        lambda either: (
            fault(30, "crash", 1),
            znode(31, 1, gone=True),
            *either((), (state(32, 2, 1, (2, 3), writer=2), *roles(32.1, 2, 1, 2, 3))),
        )
    ),
    "late_removal": (DEATH, (*DEATH, state(32, 1, 1, (1, 2)), *roles(32.1, 1, 1, 1, 2))),
    "slow_recovery": (
        (state(50, 1, 0, (1, 2)),),
        (
            fault(50, "partition", 3),
            state(52, 1, 0, (1, 2)),
            over(53, "partition", 3),
            state(55, 1, 0, (1, 2, 3)),
        ),
    ),
    "late_preferred_election": (NEW_LEADER, (*NEW_LEADER, state(52, 1, 2, (1, 2, 3)), *roles(52.1, 1, 2))),
    "late_decision": ((state(50, 2, 1, (1, 2, 3)), *roles(50.1, 2, 1, 1, 2)), NEW_LEADER),
    "late_reassignment": lab.pair(
        lambda either: (
            moving(40, (1, 2)),
            *either(
                (),
                (state(41, 1, 1, (1, 2)), assigned(41.1, (1, 2)), moving(41.2, ()), *roles(41.3, 1, 1, 1, 2)),
            ),
        )
    ),
    "needless_truncation": (
        (event(50, Name.TRUNCATED, node=3, **lab.T0, offset=5, end_offset=9, cause="leader_epoch"),),
        (
            *NEW_LEADER,
            fault(49, "crash", 1),
            event(50.2, Name.TRUNCATED, node=3, **lab.T0, offset=5, end_offset=9, cause="leader_epoch"),
        ),
    ),
    "needless_shrink": (
        (state(50, 1, 0, (1, 2)), state(51, 1, 0, (1, 2, 3))),
        (fault(48, "pause", 3), state(50, 1, 0, (1, 2)), over(50.5, "pause", 3), state(51, 1, 0, (1, 2, 3))),
    ),
    "slow_commit": lab.pair(
        lambda either: (
            event(50, Name.APPENDED, node=1, topic="t", partition=0, offset=0, values=(1,)),
            *either((), (event(51, Name.HIGH_WATERMARK, node=1, topic="t", partition=0, high_watermark=1),)),
        )
    ),
    "record_of_another_time": lab.pair(
        lambda either: [appended(40, 40.1, 5), by_time(50, 39, 5, either(39.5, 40.05))]
    ),
    "record_skipped_by_time": (
        [*SAYS_APPENDS, appended(40, 40.1, 5), appended(42, 42.1, 6), by_time(50, 39, 6, 42.05)],
        [*SAYS_APPENDS, appended(40, 40.1, 5), appended(42, 42.1, 6), by_time(50, 40.2, 6, 42.05)],
    ),
    "wrong_epoch_end": (
        [became_leader(41, 2, 6), *SAYS_APPENDS, epoch_ends(50, (2, 2, 6), (1, 0, 7))],
        [*SAYS_APPENDS, became_leader(41, 2, 6), epoch_ends(50, (2, 2, 6), (1, 0, 6))],
    ),
    "other_epoch_served": lab.pair(
        lambda either: [epoch_ends(50, (2, 2, 6), refused=[[3, either("", "UNKNOWN_LEADER_EPOCH")]])]
    ),
    "late_topic_deletion": ((deletion(40, "requested"),), (deletion(40, "requested"), deletion(42, "done"))),
    "late_topic_creation": lab.pair(
        lambda either: (assigned(40, (1, 2, 3), "u"), *either((), (state(41, 1, 0, (1, 2, 3), "u"),)))
    ),
    "early_deletion": (kept(40, until=47), kept(40, until=51)),
    "late_deletion": (kept(40), kept(40, until=54)),
    "late_topic_settings": (configured(40, 1, 2), configured(40, 1, 2, 3)),
    "stale_topic_settings": lab.pair(
        lambda either: (
            *(*configured(30, 1), deletion(39, "requested"), deletion(40, "done")),
            *either((), (event(40.1, Name.TOPIC_CONFIGURED, node=1, topic="t", detail={}),)),
        )
    ),
    "partition_vanished": lab.pair(
        lambda either: (
            deletion(30, "requested", "other"),
            *either(
                (assigned(40, ()),), (deletion(39, "requested"), assigned(40, ()), deletion(40.1, "done"))
            ),
        )
    ),
    "replica_deleted_early": (
        (event(40, Name.MARK, node=3, topic="t", partition=0, cause=REPLICA_DELETED),),
        (
            *(
                moving(38, (1, 2)),
                state(39, 1, 1, (1, 2)),
                assigned(39.5, (1, 2)),
                moving(39.6, ()),
                *roles(39.6, 1, 1, 1, 2),
            ),
            event(40, Name.MARK, node=3, topic="t", partition=0, cause=REPLICA_DELETED),
        ),
    ),
    "reassigned_out_of_sync": (
        (moving(40, (1, 2, 4)), assigned(41, (1, 2, 4)), moving(41.1, ())),
        (moving(40, (1, 2, 4)), state(40.5, 1, 1, (1, 2, 3, 4)), assigned(41, (1, 2, 4)), moving(41.1, ())),
    ),
    "needless_retry": (
        [op(Function.APPEND, 40, 40.1, offset=1), op(Function.APPEND, 41, 41.2, offset=2, attempts=2)],
        [
            op(Function.APPEND, 40, 40.1, offset=1),
            op(Function.APPEND, 41, 41.2, offset=2),
            op(Function.APPEND, 44.9, 45.2, offset=3, attempts=2),
            *(state(45, 2, 1, (1, 2, 3)), *roles(45.1, 2, 1), state(46, 1, 2, (1, 2, 3)), *roles(46.1, 1, 2)),
        ],
    ),
    "needless_timeout": lab.pair(
        lambda either: [
            op(Function.POLL, 40, 40.1, offset=0),
            op(Function.POLL, 41, either(47, 41.5), offset=0),
        ]
    ),
    "waited_for_no_answer": (
        [op(Function.APPEND, 40, 41, acks=0, outcome=Outcome.UNKNOWN, error="NETWORK_EXCEPTION")],
        [op(Function.APPEND, 40, 40.1, acks=0)],
    ),
    "needless_refusal": (
        [*MEMBER, of_group(Function.COMMIT, 60, 60.1, outcome=Outcome.FAIL, error="UNKNOWN_MEMBER_ID")],
        [*MEMBER, of_group(Function.COMMIT, 60, 60.1, outcome=Outcome.FAIL, error="REBALANCE_IN_PROGRESS")],
    ),
    "slow_rebalance": (
        [*MEMBER, of_group(Function.JOIN, 60, 70, generation=2, process=0)],
        [*MEMBER, of_group(Function.JOIN, 60, 60.5, generation=1, process=0)],
    ),
    "needless_rebalance": lab.pair(
        lambda either: [
            *MEMBER,
            of_group(Function.JOIN, 60, 60.2, generation=2),
            *either((), (of_group(Function.JOIN, 59.9, 60.2, generation=2, process=5, member="n"),)),
        ]
    ),
    "needless_reprocessing": lab.pair(
        lambda either: [
            *MEMBER,
            of_group(Function.POLL, 60, 60.1, records=(record(5),)),
            of_group(Function.COMMIT, 60.5, 60.6, positions=(place(6),)),
            *either(
                (of_group(Function.POLL, 61, 61.1, records=(record(5),), member="n", generation=2),),
                (
                    of_group(Function.POLL, 61, 61.1, records=(record(6),), member="n", generation=2),
                    of_group(Function.COMMIT, 61.5, 61.6, positions=(place(7),), member="n", generation=2),
                ),
            ),
        ]
    ),
    "late_delivery": (
        [*MEMBER, op(Function.APPEND, 50, 50.1, process=9, acks=-1, offset=5)],
        [
            *MEMBER,
            op(Function.APPEND, 50, 50.1, process=9, acks=-1, offset=5),
            of_group(Function.POLL, 50.2, 50.3, records=(record(5),)),
            of_group(Function.COMMIT, 50.8, 50.9, positions=(place(6),)),
        ],
    ),
    "missing_commit": lab.pair(
        lambda either: [
            *MEMBER,
            of_group(Function.POLL, 50, 50.1, records=(record(5),)),
            *either((), (of_group(Function.COMMIT, 51, 51.1, positions=(place(6),)),)),
        ]
    ),
    "given_up_uncommitted": lab.pair(
        lambda either: [
            *MEMBER,
            of_group(Function.POLL, 50, 50.1, records=(record(5),)),
            *either((), (of_group(Function.COMMIT, 51, 51.1, positions=(place(6),)),)),
            of_group(Function.JOIN, 52, 52.1),
        ]
    ),
    "fenced_by_itself": lab.pair(
        lambda either: [
            *(assigned(0.3, (1, 2, 3), OFFSETS), state(0.4, 1, 0, (1, 2, 3), OFFSETS)),
            of_group(Function.JOIN, 20, 20.1, member="instance-0"),
            of_group(Function.POLL, 21, 21.1, member="instance-0-a"),
            *either((), (of_group(Function.JOIN, 59, 59.1, member="instance-0", session=1),)),
            of_group(
                Function.POLL,
                60,
                60,
                member="instance-0-a",
                outcome=Outcome.FAIL,
                error="FENCED_INSTANCE_ID",
                node=1,
            ),
        ]
    ),
    "leaver_stays_member": lab.pair(
        lambda either: (
            in_group(20, "Stable", "m1", "m2"),
            of_group(Function.LEAVE, 30, 30.1, member="m1", node=1),
            *either((), (in_group(30.05, "PreparingRebalance", "m2"),)),
        )
    ),
    "late_log_start": lab.pair(
        lambda either: (
            *(begins(40, 1, 5, "delete_records"), begins(40.3, 2, 5), begins(40.4, 3, 4)),
            *either((), (begins(40.6, 3, 5),)),
        )
    ),
    "late_marker": lab.pair(
        lambda either: (phase(40, "PrepareCommit"), *either((), (marker(41), phase(41.1, "CompleteCommit"))))
    ),
    "late_completion": lab.pair(
        lambda either: (phase(40, "PrepareCommit"), marker(41), *either((), (phase(41.1, "CompleteCommit"),)))
    ),
    "completed_without_marker": (
        (phase(40, "PrepareCommit"), phase(41, "CompleteCommit"), marker(41.5)),
        (phase(40, "PrepareCommit"), marker(40.5), phase(41, "CompleteCommit")),
    ),
    "aborted_early": lab.pair(
        lambda either: (
            phase(40, "Ongoing"),
            phase(either(45, 61), "PrepareAbort", why="its time is over"),
            marker(either(45.1, 61.1)),
            phase(either(45.2, 61.2), "CompleteAbort"),
        )
    ),
    "transaction_outlives_timeout": lab.pair(
        lambda either: (phase(20, "Ongoing"), *either((), (phase(45, "PrepareAbort"), marker(45.1))))
    ),
    "broker_not_known": lab.pair(
        lambda either: (asked(50, Question.BROKERS, 1, replicas=either((1, 2), (1, 2, 3))),)
    ),
    "stale_metadata": lab.pair(
        lambda either: (
            asked(50, Question.PARTITION, 1, **lab.T0, leader=either(2, 1), leader_epoch=either(1, 0)),
        )
    ),
    "committed_record_missing": lab.pair(
        lambda either: (
            asked(50, Question.LOG, 1, topic="t", partition=0, high_watermark=9, end_offset=9, offset=9),
            asked(50.1, Question.LOG, 3, topic="t", partition=0, end_offset=either(7, 9)),
        )
    ),
    "directory_not_as_assigned": (
        (asked(50, Question.LOG_DIRECTORIES, 1, detail={"logs": []}),),
        (asked(50, Question.LOG_DIRECTORIES, 1, detail={"logs": [["t", 0, 10, 0]]}),),
    ),
    "last_stable_offset_stuck": lab.pair(
        lambda either: (
            asked(50, Question.LOG, 1, **lab.T0, high_watermark=9, end_offset=9, offset=7),
            asked(
                *(50.1, Question.PRODUCERS, 1),
                **lab.T0,
                leader=1,
                detail={"producers": either([], [[7, 0, 0, 0, 7]])},
            ),
            asked(60, Question.LOG, 1, **lab.T0, high_watermark=9, end_offset=9, offset=7),
        )
    ),
    "group_not_stable": lab.pair(
        lambda either: [*MEMBER, group_is(60, either("PreparingRebalance", "Stable"))]
    ),
    "commit_not_served": lab.pair(
        lambda either: [
            *MEMBER,
            of_group(Function.COMMIT, 40, 40.1, positions=(place(6),)),
            asked(60, Question.COMMITTED, 1, detail={"group": "g", "offsets": [["t", 0, either(4, 6), -1]]}),
        ]
    ),
    "commit_not_stored": lab.pair(
        lambda either: [
            *MEMBER,
            of_group(Function.COMMIT, 40, 40.1, positions=(place(6),)),
            stored(60, [[1, 6, -1, True], [2, 4, either(-1, 9), either(True, None)]]),
        ]
    ),
    "replicas_differ": lab.pair(lambda either: [content(60, 1, "aa"), content(60.1, 2, either("bb", "aa"))]),
    "decision_stands": (
        [described(40, "PrepareCommit"), described(60, "PrepareCommit")],
        [described(40, "PrepareCommit"), described(60, "CompleteCommit")],
    ),
}


IN_CALM = [
    row.name
    for row in ROWS
    if row.form in (Form.HOLD, Form.FOLLOW, Form.NEVER) and Kind.FAULT not in row.through
]


@pytest.mark.parametrize("row", CASES)
def test_a_row_finds_what_it_is_for_and_passes_its_neighbour(row: str) -> None:
    """Rule: each row convicts its history, and not the nearest one that is right."""
    wrong, right = CASES[row]
    assert row in found(wrong) and row not in found(right)


@pytest.mark.parametrize("row", IN_CALM)
def test_a_disturbance_of_its_subject_excuses_it(row: str) -> None:
    """Rule: what is asked of calm is not asked where a link, a process and the machine never come to rest."""
    wrong, _ = CASES[row]
    trouble = [fault(1 + number, "zookeeper_unreachable", 1, 900 + number) for number in range(2)]
    busy = event(END - 0.1, Name.BUSY, detail={"since": 0})
    assert row not in found([*wrong, *trouble, busy])


def test_a_healthy_cluster_is_passed() -> None:
    """The control: nothing happens, and the states that must hold are judged."""
    assert found(()) == set()
    counts = counts_of(trace_of(()))
    assert all(counts[row.name].judged for row in ROWS if row.form is Form.HOLD)


def test_the_forms_and_the_subjects_are_covered() -> None:
    """Rule: three rows of each form, two for each kind of subject; each is an anomaly with a definition."""
    for form in Form:
        assert sum(row.form is form for row in ROWS) >= 3
    for subject in Subject:
        assert sum(row.subject is subject for row in ROWS) >= 2
    assert set(CASES) == {row.name for row in ROWS} <= set(BY_NAME)


def test_nothing_is_judged_without_settings() -> None:
    """Rule: a trace whose settings nobody recorded has no bounds."""
    trace = evolve(trace_of(DEATH), plan="")
    assert not judge(trace).findings and not counts_of(trace)


def test_a_real_run_says_its_settings_itself() -> None:
    """Rule: a trace without a plan has them in an event, and is judged by them."""
    detail = json.loads(plan_to_json(PLAN)) | {"real": {"start_ms": 5_000, "quorum_ms": 0, "slack_ms": 1_000}}
    settings = event(0, Name.SETTINGS, detail={name: detail[name] for name in ("cluster", "client", "real")})
    trace = evolve(trace_of([*DEATH, settings]), plan="")
    assert {finding.anomaly for finding in judge(trace).findings} == {"late_removal"}


def test_retention_is_asked_of_brokers_that_run_and_whose_records_have_a_known_age() -> None:
    """Rule: a process that ended deletes nothing; a record that waited at a leader that was disturbed, or
    that only a follower was seen to append, is of any age; a wrong clock ends the judging."""
    ended = [fault(48, "crash", 1), znode(49, 1, gone=True)]
    assert "late_deletion" not in found([*kept(40), *ended])
    assert "late_deletion" in found([*kept(40), fault(60, "crash", 1), znode(61, 1, gone=True)])
    paused = [fault(38, "pause", 1), over(39.5, "pause", 1)]
    assert "early_deletion" not in found([*kept(40, until=47), *paused])
    assert "early_deletion" not in found(kept(40, until=47, cause="follower"))
    clock = fault(30, "clock_jump", 2)
    assert not {"early_deletion", "late_deletion"} & found([*kept(40), *kept(60, until=61), clock])
    of_ever = event(40, Name.LOG_START, node=1, topic="t", partition=0, log_start_offset=1, cause="retention")
    assert "early_deletion" in found([of_ever]), "nothing of t is ever too old"
    changed = event(30, Name.TOPIC_CONFIGURED, node=1, topic="t", detail={"retention.ms": "1"})
    assert "early_deletion" not in found([of_ever, changed])
    assert "early_deletion" not in found([of_ever, evolve(changed, topic=None)]), "t may be made after that"


def test_a_topic_has_what_its_broker_hands_on() -> None:
    """Rule (KIP-226): a topic that a broker says without what it inherits is found, and one with it, or with
    its own, or of the plan, is not; nor is a process that has not read it yet. What is inherited, no other
    broker must take over as if it had been said of the topic."""

    def said(node: int, topic: str | None, detail: dict[str, str], cause: str = "") -> Event:
        return event(40, Name.TOPIC_CONFIGURED, node=node, topic=topic, detail=detail, cause=cause)

    of_all = [said(node, None, {"log.retention.ms": "5"}) for node in (1, 2, 3)]
    inherits = said(1, "t", {"retention.ms": "5"}, "inherited")
    assert "setting_not_inherited" in found([*of_all, inherits, said(1, "t", {})])
    assert "setting_not_inherited" in found([*of_all, said(1, "t", {"segment.ms": "6"})])
    assert not found([*of_all, inherits])
    assert "late_topic_settings" in found([*of_all[:2], inherits])
    assert "setting_not_inherited" not in found([*of_all, said(1, "t", {"retention.ms": "6"})])
    anew = event(40, Name.BROKER_STARTED, node=1)
    assert "setting_not_inherited" not in found([*of_all, anew, said(1, "t", {})])
    assert "setting_not_inherited" not in found([*of_all, said(1, "r", {})]), "r has one by its plan"


@pytest.mark.parametrize(
    "why",
    [
        "the record is not there yet",
        "another broker acknowledged it",
        "it may not be kept",
        "its key may be cleaned",
        "the log begins above it",
        "the log was cut",
        "the broker began anew",
        "the topic was deleted",
        "the outcome is not known",
        "nobody says where logs begin",
    ],
)
def test_a_record_that_may_be_missing_may_be_skipped_by_time(why: str) -> None:
    """Rule: an answer by time is wrong only where the answering broker must still have had the record."""
    place = {"node": 1, "topic": "t", "partition": 0}
    first = {
        "the record is not there yet": appended(49, 50.05, 5),
        "another broker acknowledged it": appended(40, 40.1, 5, node=2),
        "it may not be kept": evolve(appended(40, 40.1, 5), acks=1),
        "its key may be cleaned": appended(40, 40.1, 5, key="k"),
        "the outcome is not known": evolve(
            appended(40, 40.1, 5), outcome=Outcome.UNKNOWN, completion_time=None
        ),
    }
    then = {
        "the log begins above it": [event(45, Name.LOG_START, log_start_offset=6, **place)],
        "the log was cut": [event(45, Name.TRUNCATED, offset=5, **place)],
        "the broker began anew": [event(45, Name.BROKER_STARTED, node=1)],
        "the topic was deleted": [deletion(45, "requested")],
    }
    says = () if why == "nobody says where logs begin" else SAYS_APPENDS
    record = first.get(why) or appended(40, 40.1, 5)
    story = [*says, record, *then.get(why, ()), by_time(50, 39, -1)]
    assert "record_skipped_by_time" not in found(story)
    assert "record_skipped_by_time" in found([*SAYS_APPENDS, appended(40, 40.1, 5), by_time(50, 39, -1)])


@pytest.mark.parametrize(
    ("stamped", "epoch", "wrong"), [(38.9, 7, True), (40.2, 0, True), (40.2, 1, False), (40.1, 0, False)]
)
def test_the_named_record_is_of_the_time(stamped: float, epoch: int, wrong: bool) -> None:
    """Rule: never older than what was asked for; and if an append of the same epoch is at that offset, made
    while that append was under way."""
    story = [appended(40, 40.1, 5), by_time(50, 39, 5, stamped, epoch)]
    assert ("record_of_another_time" in found(story)) == wrong


def test_replicas_are_compared_where_both_were_read_and_nothing_is_cleaned() -> None:
    """Rule: other ranges say nothing, and records with keys may be gone in one of them."""
    assert "replicas_differ" not in found([content(60, 1, "aa"), content(60.1, 2, "bb", 64)])
    cleaned = content(60.1, 2, "bb", keys={"k": [5, "cc"]})
    assert "replicas_differ" not in found([content(60, 1, "aa"), cleaned])
    assert "replicas_differ" not in found([content(60, 1, "aa"), content(60.1, 1, "bb")])


def test_another_decision_is_not_the_one_that_stands() -> None:
    """Rule: the same transaction must stand, for longer than it takes to carry a decision out."""
    decided = described(40, "PrepareCommit")
    assert "decision_stands" not in found([decided, described(60, "PrepareCommit", epoch=1)])
    assert "decision_stands" not in found([decided, described(40.1, "PrepareCommit")])


@pytest.mark.parametrize(
    ("records", "more"),
    [
        ([[1, 6, -1, True], [2, 4, 9, False]], {}),
        ([[1, 6, -1, True], [2, None, -1, True]], {}),
        ([[1, 4, -1, True]], {"cut": True}),
        ([[1, {"version": 9, "bytes": 3}, -1, True]], {}),
    ],
)
def test_what_is_stored_counts_where_all_of_it_was_read(records: list, more: dict) -> None:
    """Rule: an aborted record does not count, and a tombstone, or what was not read or not understood, says
    nothing."""
    commit = of_group(Function.COMMIT, 40, 40.1, positions=(place(6),))
    assert "commit_not_stored" not in found([*MEMBER, commit, stored(60, records, **more)])


def test_a_round_that_begins_in_the_middle_says_nothing_of_open_transactions() -> None:
    """Rule: that none was open counts after the end that it is compared with; one may have begun between."""
    where = {"topic": "t", "partition": 0}
    end = {**where, "high_watermark": 9, "end_offset": 9, "offset": 7}
    nothing = asked(50.1, Question.PRODUCERS, 1, leader=1, detail={"producers": []}, **where)
    story = [nothing, asked(50.2, Question.LOG, 1, **end), asked(60, Question.LOG, 1, **end)]
    assert "last_stable_offset_stuck" not in found(story)


def found_with(plan: plans.Plan, parts: Sequence[Event | Operation]) -> set[str]:
    """The anomalies of a trace of another plan."""
    return {finding.anomaly for finding in judge(evolve(trace_of(parts), plan=plan_to_json(plan))).findings}


@pytest.mark.parametrize(("second", "wrong"), [("range", True), ("", False)])
def test_a_member_with_an_assignor_of_all_others_is_not_refused(second: str, wrong: bool) -> None:
    """Rule: a refusal as inconsistent is one where all consumers of the plan have an assignor in common."""
    plan = evolve(PLAN, consumers=(evolve(PLAN.consumer, assignor="sticky", second_assignor=second),))
    refused = of_group(Function.JOIN, 60, 60.1, outcome=Outcome.FAIL, error="INCONSISTENT_GROUP_PROTOCOL")
    assert ("needless_refusal" in found_with(plan, [*MEMBER, refused])) is wrong


def test_a_member_that_polls_while_it_joins_commits_then() -> None:
    """Rule: a cooperative one; and however long that takes, it is another row's matter."""
    poll = of_group(Function.POLL, 50, 50.1, records=(record(5),))
    story = [*MEMBER, poll, of_group(Function.COMMIT, 70.1, 70.2, positions=(place(6),))]
    join = of_group(Function.JOIN, 49.9, 70, argument="cooperative")
    assert "missing_commit" in found(story)
    assert "missing_commit" not in found([*story, join])


@pytest.mark.parametrize(("sent", "wrong"), [("sync", True), ("late", False)])
def test_what_is_sent_to_be_refused_may_be(sent: str, wrong: bool) -> None:
    """Rule: not a commit that its member sends late on purpose."""
    story, fenced = CASES["fenced_by_itself"][0], "FENCED_INSTANCE_ID"
    commit = evolve(story[-1], function=Function.COMMIT, argument=sent)
    assert ("fenced_by_itself" in found([*story[:-1], commit])) is wrong
    refused = of_group(Function.COMMIT, 60, 60.1, outcome=Outcome.FAIL, error=fenced, argument=sent)
    assert ("needless_refusal" in found([*MEMBER, refused])) is wrong


def test_what_an_idempotent_producer_sends_is_appended_once() -> None:
    """Rule: by one leader in one epoch, whatever was deleted since; not by one that started again or cut its
    log, nor by the next leader, nor where producers number nothing, nor of an output of transactions."""
    plan = evolve(
        PLAN, client=evolve(PLAN.client, producer=plans.ProducerOptions(pipelined=True, idempotent=True))
    )

    def at(time: float, offset: int, node: int = 1, epoch: int = 0, topic: str = "t") -> Event:
        fields = {"node": node, "topic": topic, "partition": 0, "leader_epoch": epoch, "cause": "leader"}
        return event(time, Name.APPENDED, offset=offset, values=(7, 8), **fields)

    def again(*story: Event, plan: plans.Plan = plan) -> bool:
        return "appended_again" in found_with(plan, story)

    deleted = event(41, Name.LOG_START, node=1, topic="t", partition=0, log_start_offset=7, cause="retention")
    assert again(at(40, 5), deleted, at(42, 7))
    assert not again(at(40, 5), at(42, 5, node=2), at(42, 9, topic="r")), "a follower's copy, another log"
    assert not again(at(40, 5), at(42, 7, epoch=1))
    assert not again(at(40, 5), event(41, Name.BROKER_STARTED, node=1), at(42, 7))
    assert not again(at(40, 5), deleted, at(42, 7), plan=PLAN)
    assert not again(at(40, 5, topic="out"), at(42, 7, topic="out"))


def test_a_batch_is_too_large_where_the_limit_may_be_so_low() -> None:
    """Rule: by the plan's limit, or if the topic's settings changed; else a refusal is one without a
    reason."""
    large = op(Function.APPEND, 41, 41.1, outcome=Outcome.FAIL, error="MESSAGE_TOO_LARGE")
    story = [op(Function.APPEND, 40, 40.1, offset=1), large]
    low = evolve(PLAN, cluster=evolve(PLAN.cluster, topics=(plans.TopicOptions(max_message_bytes=60),)))
    changed = event(30, Name.TOPIC_CONFIGURED, node=1, topic="t", detail={"max.message.bytes": "60"})
    assert "needless_retry" in found(story)
    assert "needless_retry" not in found_with(low, story)
    assert "needless_retry" not in found([*story, changed])


def test_a_bound_holds_for_each_of_the_clients() -> None:
    """Rule: where they differ, each time is the longest, patience the shortest, and what has no order is not
    known."""
    slow = evolve(PLAN.consumer, session_timeout_ms=9_000, heartbeat_interval_ms=100, commit="sync")
    hasty = evolve(PLAN.consumer, request_timeout_ms=10)
    plan = evolve(PLAN, consumers=(slow,), clients=(evolve(PLAN.client, request_timeout_ms=5_000),))
    alike, of = settings_of(plan_to_json(PLAN), ()), settings_of(plan_to_json(plan), ())
    assert alike is not None and of is not None
    assert (of.consumer.session_timeout_ms, of.consumer.heartbeat_interval_ms) == (9_000, 200)
    assert (alike.consumer.commit, of.consumer.commit, of.client.request_timeout_ms) == ("auto", "", 5_000)
    impatient = settings_of(plan_to_json(evolve(plan, consumers=(slow, hasty))), ())
    assert impatient is not None and impatient.hasty and not of.hasty


def test_a_step_begins_long_before_it_is_recorded() -> None:
    """Rule: what a broker became is recorded when the step ends. A leader's clock began with it, and who is
    asked to stop while it starts is stopping."""
    where = {"node": 2, "topic": "t", "partition": 0, "leader": 2, "leader_epoch": 1, "isr": (1, 2, 3)}
    leads = event(50.9, Name.BECAME_LEADER, **where)
    shrinks = event(51, Name.ISR_PROPOSED, **{**where, "isr": (2,)}, cause="shrink")
    busy = event(50.9, Name.BUSY, node=2, detail={"since": 49_800_000_000})
    assert "needless_shrink" in found([leads, shrinks])
    assert "needless_shrink" not in found([busy, leads, shrinks])
    asked_to, started = fault(50, "clean_restart", 2), event(50.9, Name.BROKER_STARTED, node=2)
    goes = znode(80, 2, gone=True)
    assert "session_lost" in found([asked_to, started, goes])
    assert "session_lost" not in found([asked_to, busy, started, goes])
