"""What each verb does to a request and to its answer.

Owns the verdicts. Must not know whether the fault strikes (fault_engine.py).
"""

import dataclasses
from datetime import timedelta
from typing import Any

from attrs import evolve

from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.proxy.faults.allowed import fits
from fencepost.proxy.faults.fault import RequestFault
from fencepost.proxy.faults.lasting import MILLISECOND, Lasting
from fencepost.proxy.faults.refused import in_error, refused, with_rows
from fencepost.proxy.faults.request import Asked, Carried, Plan
from fencepost.wire.hook import Cut, Delay, Drop, Half, Hold, Last, Replace, Silence, Verdict

MIDDLE = 500
"""Of an answer's thousand parts: where half an answer ends."""
ANSWERS: dict[str, Verdict] = {
    "lose answer": Cut(),
    "silence answer": Silence(),
    "cut after": Last(),
    "half answer": Half(MIDDLE),
    "skip answer": Drop(),
}
"""Verbs that only need an answer."""


def carry_request(fault: RequestFault, asked: Asked, lasting: Lasting, now: int) -> Carried | None:
    """What becomes of a request that the fault hits; None where it cannot hit it."""
    match fault.verb:
        case "cut before":
            return Carried(verdict=Cut())
        case "silence":
            return Carried(verdict=Silence())
        case "delay":
            return Carried(verdict=Delay(fault.milliseconds), lasts_ms=fault.milliseconds)
        case "hold" | "hold connection":
            held = Hold(fault.milliseconds, ends=fault.verb == "hold")
            return Carried(verdict=held, lasts_ms=fault.milliseconds)
        case "answer":
            return _answer(fault, asked)
        case "move leader" | "move coordinator" | "forget member":
            return _begins(fault, asked, lasting, now)
        case _:
            return Carried(plan=Plan(fault=fault, counts=True)) if asked.answered else None


def _answer(fault: RequestFault, asked: Asked) -> Carried | None:
    if fault.legal and not fits(fault, asked.header.version, asked.body):
        return None
    if not fault.after_effect:
        return refused(asked, fault.error, asked.hit(fault.topic, fault.partition), fault)
    if not asked.answered:
        return None
    return Carried(plan=Plan(fault=fault, counts=True))


def _begins(fault: RequestFault, asked: Asked, lasting: Lasting, now: int) -> Carried | None:
    until, group = now + fault.milliseconds * MILLISECOND, asked.group or ""
    hit: tuple[TopicPartition, ...] = ()
    if fault.verb == "move leader":
        hit, error = asked.hit(fault.topic, fault.partition), "NOT_LEADER_OR_FOLLOWER"
    elif fault.verb == "move coordinator":
        error = "NOT_COORDINATOR"
    elif asked.member:
        error = "UNKNOWN_MEMBER_ID"
    else:
        return None  # it joins as a new one

    def begin() -> None:
        if fault.verb == "move leader":
            for key in hit:
                lasting.move_leader(key, until, fault)
        elif fault.verb == "move coordinator":
            lasting.move_coordinator(group, until, fault)
        else:
            lasting.forget(group, asked.member, fault)

    carried = refused(asked, error, hit, fault)
    return None if carried is None else evolve(carried, begin=begin, lasts_ms=fault.milliseconds)


def carry_answer(plan: Plan, asked: Asked, answer: Any) -> Carried | None:
    """What becomes of the answer of a request; None where there is nothing to be done to it."""
    fault = plan.fault
    if plan.extra is not None:
        return Carried(verdict=Replace(with_rows(answer, plan.extra)))
    if fault.verb in ANSWERS:
        return Carried(verdict=ANSWERS[fault.verb])
    if fault.verb == "delay answer":
        return Carried(verdict=Delay(fault.milliseconds, answer), lasts_ms=fault.milliseconds)
    if fault.verb == "throttle":
        if not hasattr(answer, "throttle_time"):
            return None
        throttled = dataclasses.replace(answer, throttle_time=timedelta(milliseconds=fault.milliseconds))
        return Carried(verdict=Replace(throttled), lasts_ms=fault.milliseconds, mute_ms=fault.milliseconds)
    changed = in_error(fault, asked, answer)
    return None if changed is None or changed == answer else Carried(verdict=Replace(changed))
