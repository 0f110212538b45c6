"""Rows about brokers and the controller: who is there, and who decides.

Owns these rows. A registration is ZooKeeper's node, or an unfenced registration with KRaft.
"""

from collections.abc import Iterator

from fencepost.checkers.liveness.forms import Case, Form, Row
from fencepost.record import bounds
from fencepost.record.facts import Facts, Told
from fencepost.record.settings import MILLISECOND
from fencepost.record.timeline import FOR_EVER, Kind, Subject, Timeline
from fencepost.traces.events import Name


def _absences(told: list[Told]) -> Iterator[tuple[Told, int]]:
    """When a broker was not registered, each with when it was again."""
    for place, change in enumerate(told):
        if not change.value and (place == 0 or told[place - 1].value):
            later = (each.time for each in told[place:] if each.value)
            yield change, next(later, FOR_EVER)


def _unregistered(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    """A process runs, and its broker is not registered."""
    for broker, starts in facts.runs.items():
        for place, start in enumerate(starts):
            if not start.value or (place and starts[place - 1].value):
                continue
            ended = next((each.time for each in starts[place:] if not each.value), FOR_EVER)
            told = facts.registered.get(broker, [])
            there = next((each for each in told if each.value and start.time <= each.time), None)
            if ended < FOR_EVER and (there is None or there.time > ended):
                continue
            until = FOR_EVER if there is None else there.time
            yield Case(
                subject=(Subject.BROKER, broker),
                since=start.time,
                until=until,
                expected=f"broker {broker}, whose process runs, to be registered",
                seen="it never was" if there is None else "it took longer",
                events=(start.position,) if there is None else (start.position, there.position),
            )


def _lost_sessions(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    for broker, told in facts.registered.items():
        for gone, _ in _absences(told):
            if gone.time == 0:
                continue
            yield Case(
                subject=(Subject.SESSION, broker),
                since=gone.time,
                expected=f"broker {broker} to stay registered",
                seen="its registration was gone",
                fine=not facts.is_running(broker, gone.time) or facts.is_stopping(broker, gone.time),
                events=(gone.position,),
            )


def _no_controller(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    for place, told in enumerate(facts.controller):
        if told.value:
            continue
        until = next((each.time for each in facts.controller[place:] if each.value), FOR_EVER)
        for begin, end in facts.candidates(facts.registered, told.time, until):
            yield Case(
                subject=(Subject.CONTROLLER, None),
                since=begin,
                until=end,
                expected="a broker to be controller",
                seen="nobody was",
                events=(told.position,),
            )


def _new_controllers(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    """The controller changed: it was away, or lost its session, or resigned because it stops."""
    epochs = [(position, event) for position, event in facts.of(Name.CONTROLLER_EPOCH) if event.time > 0]
    for position, event in epochs:
        held = [told for told in facts.controller if told.value and told.time < event.time]
        former = held[-1].value[0] if held else -1
        if former < 0 or event.time < facts.begun:
            continue
        yield Case(
            subject=(Subject.SESSION, former),
            since=event.time,
            expected=f"broker {former} to stay controller",
            fine=facts.is_stopping(former, event.time),
            seen=f"broker {event.node} became controller of epoch {event.controller_epoch}",
            events=(held[-1].position, position),
        )


def _stops(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    """A broker that was asked to stop ends."""
    for broker, told in facts.stopping.items():
        for asked in told:
            if not asked.value:
                continue
            ends = (
                each.time for each in facts.runs.get(broker, ()) if not each.value and each.time >= asked.time
            )
            starts = (each.time for each in told if not each.value and each.time > asked.time)
            yield Case(
                subject=(Subject.CONTROLLER, None),
                since=asked.time,
                until=min(next(ends, FOR_EVER), next(starts, FOR_EVER)),
                expected=f"broker {broker}, which was asked to stop, to end",
                seen="it ran on",
                events=(asked.position,),
            )


def _left_leading(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    """When a broker that was asked to stop goes, it leads nothing that another member of the ISR could."""
    for broker, told in facts.registered.items():
        for gone, _ in _absences(told):
            if not facts.is_stopping(broker, gone.time) or not facts.is_running(broker, gone.time - 1):
                continue
            for key, states in facts.states.items():
                before = [state for state in states if state.position < gone.position]
                if not before or facts.is_going(key[0], gone.time) or facts.is_moving(key, gone.time):
                    continue
                state = before[-1]
                others = [
                    member
                    for member in state.isr
                    if member != broker
                    and facts.is_registered(member, gone.time)
                    and not facts.is_stopping(member, gone.time)
                ]
                yield Case(
                    subject=(Subject.PARTITION, key),
                    since=gone.time,
                    fine=state.leader != broker or not others,
                    expected=f"broker {broker} to have handed {key[0]}-{key[1]} to one of {others}, which "
                    f"are in the ISR, before it went",
                    seen="it led to the end",
                    topic=key[0],
                    partition=key[1],
                    events=(state.position, gone.position),
                )


TIME_OUTS = frozenset({Kind.NOISE, Kind.START, Kind.FAULT, Kind.BUSY, Kind.BACK})
"""What makes a time-out end though its process runs."""
ROWS = (
    Row(
        name="slow_registration",
        form=Form.HOLD,
        only_wrong=True,
        subject=Subject.BROKER,
        cases=_unregistered,
        bound=bounds.registered,
        through=frozenset({Kind.BACK}),
    ),
    Row(
        name="session_lost",
        form=Form.CAUSE,
        subject=Subject.SESSION,
        cases=_lost_sessions,
        bound=bounds.session,
        causes=TIME_OUTS | {Kind.AWAY, Kind.STOP},
    ),
    Row(
        name="no_controller",
        form=Form.HOLD,
        only_wrong=True,
        subject=Subject.CONTROLLER,
        cases=_no_controller,
        bound=bounds.quorum,
        through=frozenset({Kind.CONTROLLER, Kind.REQUEST}),
    ),
    Row(
        name="controller_moved",
        form=Form.CAUSE,
        subject=Subject.SESSION,
        cases=_new_controllers,
        bound=lambda of: bounds.session(of) + bounds.quorum(of),
        causes=TIME_OUTS | {Kind.AWAY, Kind.STOP},
    ),
    Row(
        name="late_stop",
        form=Form.FOLLOW,
        subject=Subject.CONTROLLER,
        cases=_stops,
        bound=lambda of: (
            3 * of.cluster.controlled_shutdown_retry_backoff_ms * MILLISECOND + 3 * bounds.led(of)
        ),
        through=frozenset({Kind.STOP, Kind.REQUEST}),
    ),
    Row(
        name="stopped_as_leader",
        form=Form.NEVER,
        subject=Subject.PARTITION,
        cases=_left_leading,
        bound=bounds.caught_up,
        through=frozenset({Kind.STOP}),
    ),
)
