"""Plans that differ from a failing one in one respect, each a little kinder to the cluster.

Owns: which plans those are, and in what words. Must not know: how a run is judged or compared.
"""

from collections.abc import Iterator
from typing import Any

from attrs import evolve, frozen

from fencepost.bugs import BUGS
from fencepost.traces.plan import Plan

MOST_OPERATIONS = 40
"""Operations that are left out one at a time, spread evenly: a shrunk plan has fewer."""


@frozen(kw_only=True)
class Neighbour:
    """A plan near a failing one."""

    # Protection, fault, operation or delay.
    kind: str
    # What is different, after "with" or "without".
    says: str
    plan: Plan


def neighbours(plan: Plan) -> Iterator[Neighbour]:
    """One protection more, one fault less, one delay less, one operation less, in this order."""
    yield from _protections(plan)
    for index, fault in enumerate(plan.faults):
        left = (*plan.faults[:index], *plan.faults[index + 1 :])
        says = f"without the fault {fault.kind} of {fault.target} at {fault.at_ms} ms"
        yield Neighbour(kind="fault", says=says, plan=evolve(plan, faults=left))
    yield from _delays(plan)
    step = max(1, len(plan.operations) // MOST_OPERATIONS)
    for index in range(0, len(plan.operations), step):
        one = plan.operations[index]
        rest = (*plan.operations[:index], *plan.operations[index + 1 :])
        says = (
            f"without operation {one.op_id} ({one.function} to {one.topic}-{one.partition} at {one.at_ms} ms)"
        )
        yield Neighbour(kind="operation", says=says, plan=evolve(plan, operations=rest))


def _protections(plan: Plan) -> Iterator[Neighbour]:
    """Planted bugs taken out one at a time; options that protect, where they are off."""
    cluster = plan.cluster
    for bug in cluster.bugs:
        left = tuple(one for one in cluster.bugs if one != bug)
        name = BUGS[bug].protection.name if bug in BUGS else bug
        says = f"with the protection {name}, which {bug} takes away"
        yield Neighbour(kind="protection", says=says, plan=evolve(plan, cluster=evolve(cluster, bugs=left)))
    for index, topic in enumerate(cluster.topics):
        choices: tuple[tuple[str, Any, str], ...] = (
            ("flush_messages", 1, "a sync after each message"),
            ("unclean_leader_election", False, "no unclean leader election"),
            ("min_insync_replicas", min(2, topic.replication_factor), "at least two in-sync replicas"),
        )
        for name, value, says in choices:
            now = getattr(topic, name)
            if now != value and not (name == "min_insync_replicas" and now > value):
                topics = list(cluster.topics)
                topics[index] = evolve(topic, **{name: value})
                yield Neighbour(
                    kind="protection",
                    says=f"with {says} of topic {topic.name}",
                    plan=evolve(plan, cluster=evolve(cluster, topics=tuple(topics))),
                )


def _delays(plan: Plan) -> Iterator[Neighbour]:
    """Faults that last or wait half as long, and networks without their rates."""
    for index, fault in enumerate(plan.faults):
        for name in ("duration_ms", "delay_ms"):
            value = getattr(fault, name)
            if value > 1:
                faults = list(plan.faults)
                faults[index] = evolve(fault, **{name: value // 2})
                says = (
                    f"with {name} {value // 2} instead of {value} of the fault {fault.kind} at "
                    f"{fault.at_ms} ms"
                )
                yield Neighbour(kind="delay", says=says, plan=evolve(plan, faults=tuple(faults)))
    for name in ("loss_ppm", "duplicate_ppm", "reorder_ppm", "late_ppm", "latency_tail_us"):
        if getattr(plan.network, name):
            network = evolve(plan.network, **{name: 0})
            yield Neighbour(kind="delay", says=f"with network.{name} 0", plan=evolve(plan, network=network))
