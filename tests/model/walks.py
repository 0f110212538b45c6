"""Paths of the replication model, random or found by the explorer, told as the events that a recorder would
have written."""

from itertools import pairwise
from random import Random

from fencepost.model.explore import Step
from fencepost.model.replication.replica_steps import members
from fencepost.model.replication.replication_state import DOWN, ReplicationState
from fencepost.model.replication.replication_system import Replication
from fencepost.traces.events import Event, Name
from fencepost.traces.trace import Trace
from tests.checkers import lab

CONTROLLER = 9
ON = {"topic": "t", "partition": 0}


def walk(system: Replication, seed: int, length: int) -> list[Step]:
    """A random path: each enabled action name is equally likely, then each of its arguments."""
    random = Random(seed)
    (state,) = system.initial()
    path = [Step(("init",), state)]
    for _ in range(length):
        actions = list(system.actions(state))
        if not actions:
            break
        name = random.choice(sorted({action[0] for action in actions}))
        action = random.choice([action for action in actions if action[0] == name])
        state = system.apply(state, action)
        path.append(Step(action, state))
    return path


def trace_of(system: Replication, path: list[Step]) -> Trace:
    """The trace that this path would have left. Broker ids are replica numbers + 1."""
    events = _initial(path[0].state)
    for before, after in pairwise(path):
        events += _TELL[after.action[0]](before.state, after.state, *after.action[1:], system)
    events += _dumps(path[-1].state)
    stamped = tuple(
        Event(
            **{name: getattr(event, name) for name in Event.__slots__ if name not in ("time", "__weakref__")},
            time=at,
        )
        for at, event in enumerate(events)
    )
    return lab.trace(trace_id=1, events=stamped)


def _event(name: Name, **columns: object) -> Event:
    return Event(time=0, name=name, **ON, **columns)


def _initial(state: ReplicationState) -> list[Event]:
    events = [_quorum(state, CONTROLLER)]
    for number, replica in enumerate(state.replicas):
        events += _become_leader(state, state, number, 0, None) if replica.leader == number else []
        events += _become_follower(state, state, number, 0, None) if replica.leader != number else []
    return events


def _quorum(state: ReplicationState, writer: int) -> Event:
    leader, isr = state.quorum[-1]
    return _event(
        Name.PARTITION_STATE,
        node=writer,
        leader=leader + 1,
        leader_epoch=len(state.quorum) - 1,
        isr=tuple(member + 1 for member in members(isr, len(state.replicas))),
        controller_epoch=1,
    )


def _controller(before: ReplicationState, after: ReplicationState, *arguments: object) -> list[Event]:
    return [_quorum(after, CONTROLLER)]


def _become_leader(
    before: ReplicationState, after: ReplicationState, number: int, epoch: int, system: object
) -> list[Event]:
    replica = after.replicas[number]
    isr = tuple(member + 1 for member in members(after.quorum[epoch][1], len(after.replicas)))
    return [
        _event(
            Name.BECAME_LEADER,
            node=number + 1,
            leader_epoch=epoch,
            offset=len(replica.log),
            high_watermark=replica.high_watermark,
            isr=isr,
        )
    ]


def _become_follower(
    before: ReplicationState, after: ReplicationState, number: int, epoch: int, system: object
) -> list[Event]:
    replica = after.replicas[number]
    return [
        _event(
            Name.BECAME_FOLLOWER,
            node=number + 1,
            leader=replica.leader + 1,
            leader_epoch=epoch,
            offset=len(replica.log),
            high_watermark=replica.high_watermark,
        )
    ]


def _appended(before: ReplicationState, after: ReplicationState, number: int, cause: str) -> list[Event]:
    old, new = before.replicas[number].log, after.replicas[number].log
    return [
        _event(
            Name.APPENDED,
            node=number + 1,
            offset=offset,
            leader_epoch=new[offset][0],
            values=(new[offset][1],),
            cause=cause,
        )
        for offset in range(len(old), len(new))
    ]


def _watermark(before: ReplicationState, after: ReplicationState, number: int, cause: str) -> list[Event]:
    replica = after.replicas[number]
    if replica.high_watermark == before.replicas[number].high_watermark:
        return []
    return [
        _event(
            Name.HIGH_WATERMARK,
            node=number + 1,
            leader_epoch=replica.epoch,
            high_watermark=replica.high_watermark,
            cause=cause,
        )
    ]


def _append(before: ReplicationState, after: ReplicationState, number: int, system: object) -> list[Event]:
    return _appended(before, after, number, "leader")


def _fetch(before: ReplicationState, after: ReplicationState, number: int, system: object) -> list[Event]:
    return _appended(before, after, number, "follower") + _watermark(before, after, number, "follower")


def _truncate(
    before: ReplicationState, after: ReplicationState, number: int, system: Replication, cause: str = ""
) -> list[Event]:
    old, new = before.replicas[number], after.replicas[number]
    by_epoch = "truncate_by_epoch" not in system.constants.drop
    cut = _event(
        Name.TRUNCATED,
        node=number + 1,
        leader=new.leader + 1,
        leader_epoch=new.epoch,
        offset=len(new.log),
        end_offset=len(old.log),
        high_watermark=old.high_watermark,
        cause=cause or ("leader_epoch" if by_epoch else "high_watermark"),
    )
    return ([cut] if len(new.log) < len(old.log) else []) + _watermark(before, after, number, "follower")


def _out_of_range(
    before: ReplicationState, after: ReplicationState, number: int, system: Replication
) -> list[Event]:
    return _truncate(before, after, number, system, "full")


def _advance(before: ReplicationState, after: ReplicationState, number: int, system: object) -> list[Event]:
    return _watermark(before, after, number, "leader")


def _leader_writes(
    before: ReplicationState, after: ReplicationState, number: int, follower: int, system: object
) -> list[Event]:
    written = _quorum(after, number + 1)
    learned = _event(Name.ISR_UPDATED, node=number + 1, leader_epoch=written.leader_epoch, isr=written.isr)
    return [written, learned]


def _crash(
    before: ReplicationState, after: ReplicationState, number: int, lost: int, system: object
) -> list[Event]:
    return [Event(time=0, name=Name.FAULT_BEGAN, node=number + 1, cause="power_loss" if lost else "crash")]


def _restart(before: ReplicationState, after: ReplicationState, number: int, system: object) -> list[Event]:
    replica = after.replicas[number]
    started = Event(time=0, name=Name.BROKER_STARTED, node=number + 1)
    return [
        started,
        _event(
            Name.LOG_RECOVERED,
            node=number + 1,
            offset=len(replica.log),
            high_watermark=replica.high_watermark,
        ),
    ]


def _dumps(state: ReplicationState) -> list[Event]:
    events = []
    for number, replica in enumerate(state.replicas):
        if replica.leader == DOWN:
            continue
        same = {"node": number + 1, "end_offset": len(replica.log), "high_watermark": replica.high_watermark}
        events += [
            _event(Name.REPLICA_LOG, offset=offset, leader_epoch=epoch, values=(value,), **same)
            for offset, (epoch, value) in enumerate(replica.log)
        ] or [_event(Name.REPLICA_LOG, offset=0, **same)]
    return events


_TELL = {
    "elect": _controller,
    "shrink_by_controller": _controller,
    "become_leader": _become_leader,
    "become_follower": _become_follower,
    "append": _append,
    "fetch": _fetch,
    "truncate": _truncate,
    "out_of_range": _out_of_range,
    "advance_high_watermark": _advance,
    "shrink_isr": _leader_writes,
    "expand_isr": _leader_writes,
    "crash": _crash,
    "restart": _restart,
}
