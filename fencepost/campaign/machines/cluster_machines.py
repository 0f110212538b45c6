"""Three machines over the simulated cluster: the cluster as such, elections and fencing, reassignments.

Owns which rules and which options go together. Every one of them has the model, the invariants and the log judge in lockstep, and all judges over the whole
trace at the end (cluster_steps.py). `python -m fencepost.campaign.machines.cluster_hunt` runs them by the thousand, healthy or with planted bugs.
"""

from attrs import evolve

from fencepost.campaign.machines.cluster_rules import (
    ClientRules,
    ElectionRules,
    NetworkRules,
    ProcessRules,
    RestartRules,
    SessionRules,
    TimeRules,
)
from fencepost.campaign.machines.operator_rules import OperatorRules
from fencepost.traces.plan import NetworkOptions, Plan, TopicOptions


class ClusterMachine(ClientRules, ProcessRules, NetworkRules, TimeRules):
    """Three brokers, one partition: processes die, lose power, stand still and stop, links break."""


class ElectionMachine(ClientRules, SessionRules, ElectionRules, RestartRules, NetworkRules, TimeRules):
    """Elections and fencing: sessions end, zombies lead and control, leaders fall one after another."""


class ReassignmentMachine(OperatorRules, SessionRules, ProcessRules, TimeRules):
    """Four brokers, topics that operators move, make and remove, while processes and sessions fail."""

    def plan(
        self, seed: int, network: NetworkOptions, *, replicas: int, min_insync: int, session_ms: int
    ) -> Plan:
        """`t` has two partitions; `u` and `v` come later, `v` with one replica only."""
        plan = super().plan(seed, network, replicas=replicas, min_insync=min_insync, session_ms=session_ms)
        topics = (
            TopicOptions(partitions=2, replication_factor=replicas, min_insync_replicas=min_insync),
            TopicOptions(name="u", partitions=2, replication_factor=2, created_later=True),
            TopicOptions(name="v", replication_factor=1, created_later=True),
        )
        return evolve(plan, cluster=evolve(plan.cluster, brokers=4, topics=topics))


MACHINES = {machine.__name__: machine for machine in (ClusterMachine, ElectionMachine, ReassignmentMachine)}
