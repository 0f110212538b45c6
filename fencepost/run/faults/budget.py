"""The fault budget: what the faults may cost at most, applied when a fault begins, because only then the ISRs
are known.

Owns the decision. Must not carry a fault out.
"""

from collections.abc import Collection

from fencepost.record.observed_state import ObservedState
from fencepost.run.faults.kind import FaultKind
from fencepost.traces.plan import Plan


def outside_budget(
    kind: FaultKind,
    node: int,
    *,
    plan: Plan,
    observed_state: ObservedState,
    stopped: Collection[int],
    powerless: Collection[int],
) -> str:
    """Why this fault on this broker exceeds the plan's budget; "" if it does not.

    stopped: brokers that do not run now. powerless: brokers whose power failed and whose logs may not have
    caught up since.
    """
    budget = plan.budget
    if kind.stops and node not in stopped and len(stopped) + 1 > budget.brokers_down:
        return f"{len(stopped)} brokers are down, at most {budget.brokers_down} may be"
    if budget.keep_acknowledged:
        return ""  # keeping.py decides
    synced = all(topic.flush_messages == 1 for topic in plan.cluster.topics) and not (
        kind.rots or node in observed_state.lied
    )
    if kind.loses and not synced:
        for (topic, number), partition in sorted(observed_state.partitions.items()):
            others = sum(1 for member in partition.isr if member in powerless and member != node)
            if node in partition.isr and others + 1 > budget.isr_disks_lost:
                return (
                    f"{others + 1} ISR members of {topic}-{number} would have lost unsynced data, "
                    f"at most {budget.isr_disks_lost} may"
                )
    return ""
