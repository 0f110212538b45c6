"""Roles: who a fault hits, said by what a broker is and not by its number, and resolved when the fault
begins.

controller                 the broker named in /controller
leader of t-0              the partition's leader in ZooKeeper
follower 1 of t-0          the first replica in ISR order, then the rest, that is not the leader (0 is the
                           first too)
broker 2                   broker 2
"""

import re

from fencepost.record.observed_state import ObservedState
from fencepost.traces.errors import PlanError
from fencepost.traces.events import Event
from fencepost.traces.plan import Fault

_ROLE = re.compile(
    r"controller|leader of (?P<led>.+)-(?P<led_number>\d+)"
    r"|follower (?P<place>\d+) of (?P<followed>.+)-(?P<followed_number>\d+)|broker (?P<broker>\d+)"
)


def parse_role(role: str) -> "re.Match[str]":
    """The role's parts. Raises PlanError for what is no role."""
    match = _ROLE.fullmatch(role)
    if match is None:
        raise PlanError(
            expected='a role such as "controller", "leader of t-0", "follower 1 of t-0" or "broker 2"',
            seen=repr(role),
            where="plan.faults: target",
            hint="-1 is the leader of a partition that has none, or does not exist"
            if role == "broker -1"
            else "docs/reference/plans.md lists the roles",
        )
    return match


def resolve(role: str, observed_state: ObservedState, brokers: int) -> int | None:
    """The broker that plays the role now; None if nobody does."""
    match = parse_role(role)
    if match["broker"]:
        broker = int(match["broker"])
        return broker if 1 <= broker <= brokers else None
    if match["led"]:
        partition = observed_state.partitions.get((match["led"], int(match["led_number"])))
        return partition.leader if partition and partition.leader >= 1 else None
    if match["followed"]:
        return _follower(
            observed_state, (match["followed"], int(match["followed_number"])), int(match["place"])
        )
    return observed_state.controller if observed_state.controller >= 1 else None


def follows(fault: Fault, event: Event) -> bool:
    """Whether this is the event that the fault waits for: of that name, and of the partition that the target
    names, if both name one."""
    if event.name.value != fault.follows:
        return False
    match = _ROLE.fullmatch(fault.target)
    topic = match and (match["led"] or match["followed"])
    if match is None or not topic or event.topic is None:
        return True
    return (event.topic, event.partition) == (topic, int(match["led_number"] or match["followed_number"]))


def _follower(observed_state: ObservedState, key: tuple[str, int], place: int) -> int | None:
    partition = observed_state.partitions.get(key)
    if partition is None:
        return None
    in_sync = [member for member in partition.isr if member != partition.leader]
    others = [
        node for node in sorted(partition.replicas) if node not in partition.isr and node != partition.leader
    ]
    candidates = in_sync + others
    return candidates[max(place, 1) - 1] if 0 < max(place, 1) <= len(candidates) else None
