"""A state of the controller model in words.

Owns the text for people. Must not know actions or invariants.
"""

from fencepost.model.controller.controller_state import (
    NONE,
    PHASES,
    Context,
    ControllerState,
    Partition,
    members,
)


def describe(state: ControllerState) -> str:
    """ZooKeeper on two or three lines, each broker on one."""
    membership, count = state.membership, len(state.hosts)
    who = membership.controller
    lines = [
        f"ZooKeeper: {f'controller {who}' if who >= 0 else 'no controller'}, controller epoch "
        f"{membership.epoch}, "
        f"registered {[broker for broker in range(count) if membership.registrations[broker] >= 0]}",
        f"partition: {_partition(state.partition, count)}",
    ]
    if state.admin.asked or state.admin.deleting:
        target = f", to become {members(state.admin.target, count)}" if state.admin.target else ""
        deletion = ", to be deleted" if state.admin.deleting else ""
        lines.append(f"assignment: {members(state.admin.assignment, count)}{target}{deletion}")
    for broker, host in enumerate(state.hosts):
        if not host.running:
            lines.append(f"{broker}: down")
            continue
        replica, control = state.replicas[broker], state.controls[broker]
        alive = membership.registrations[broker] == host.incarnation
        words = [f"incarnation {host.incarnation}" if alive else f"zombie of incarnation {host.incarnation}"]
        role = "leads" if replica.leader == broker else f"follows {replica.leader} in"
        words.append(f"{role} epoch {replica.leader_epoch}" if replica.leader != NONE else "no role")
        words.append(f"obeys controller epoch {replica.obeyed}")
        if (broker, host.incarnation) in state.stopping:
            words.append("asked to stop")
        if control.epoch >= 0:
            known = f"knows {_known(control.context, count)}" if control.context else "loading"
            words.append(f"controller in epoch {control.epoch}, {known}")
        lines.append(f"{broker}: {', '.join(words)}")
    return "\n".join(lines)


def _known(context: Context, count: int) -> str:
    words = [_partition(context.partition, count)]
    if context.deletion:
        words.append(f"replicas {[PHASES[phase] for phase in context.phases]}")
    if any(incarnation != NONE for incarnation in context.leaving):
        leaving = [broker for broker in range(count) if context.leaving[broker] != NONE]
        words.append(f"stopping {leaving}")
    return "; ".join(words)


def _partition(partition: Partition, count: int) -> str:
    if partition.version == NONE:
        return "no state"
    leader = f"leader {partition.leader}" if partition.leader >= 0 else "no leader"
    isr = members(partition.isr, count)
    return f"{leader}, leader epoch {partition.leader_epoch}, ISR {isr}, version {partition.version}"
