"""Machines over the simulated cluster: the cluster as such, elections and fencing, races, relays, outages,
reassignments.

Owns which rules and which options go together. Every one of them has the model, the invariants and the log
judge in lockstep, and all judges over the whole trace at the end (steps.py).
"""

from typing import ClassVar

from attrs import evolve

from fencepost.machines.cluster.fall_rules import ReturnRules, SilenceRules
from fencepost.machines.cluster.operator_rules import OperatorRules
from fencepost.machines.cluster.relay_rules import RelayRules
from fencepost.machines.cluster.rules import (
    AppendRules,
    ClientRules,
    ElectionRules,
    NetworkRules,
    ProcessRules,
    RestartRules,
    SessionRules,
    TimeRules,
)
from fencepost.machines.cluster.steps import ClusterSteps
from fencepost.traces.plan import NetworkOptions, Plan, TopicOptions


class ClusterMachine(ClientRules, ProcessRules, NetworkRules, TimeRules):
    """Three brokers, one partition: processes die, lose power, pause and stop, links break."""


class ElectionMachine(ClientRules, SessionRules, ElectionRules, RestartRules, NetworkRules, TimeRules):
    """Elections and fencing: sessions end, zombies lead and control, leaders fall one after another."""


class ReassignmentMachine(OperatorRules, SessionRules, ProcessRules, TimeRules):
    """Four brokers, topics that operators move, make and remove, while processes and sessions fail."""

    def plan(
        self, seed: int, network: NetworkOptions, *, replicas: int, min_insync: int, session_ms: int
    ) -> Plan:
        """`t` has two partitions; `u` and `v` come later, `v` with one replica only.

        Args:
            seed: of the simulator.
            network: delays and losses.
            replicas: the replication factor of `t` and `u`.
            min_insync: their min.insync.replicas.
            session_ms: ZooKeeper's session time-out in milliseconds.
        """
        plan = super().plan(seed, network, replicas=replicas, min_insync=min_insync, session_ms=session_ms)
        topics = (
            TopicOptions(partitions=2, replication_factor=replicas, min_insync_replicas=min_insync),
            TopicOptions(name="u", partitions=2, replication_factor=2, created_later=True),
            TopicOptions(name="v", replication_factor=1, created_later=True),
        )
        return evolve(plan, cluster=evolve(plan.cluster, brokers=4, topics=topics))


class FourBrokers(ClusterSteps):
    """One partition on three or four of four brokers, any three of which may be down. No network is so near
    that nothing happens between two messages."""

    lag_ms: ClassVar[int]

    def plan(
        self, seed: int, network: NetworkOptions, *, replicas: int, min_insync: int, session_ms: int
    ) -> Plan:
        """The options of an example; replicas: one fewer than there are."""
        network = evolve(
            network,
            latency_min_us=max(network.latency_min_us, 20_000),
            latency_max_us=max(network.latency_max_us, 60_000),
        )
        plan = super().plan(
            seed, network, replicas=replicas + 1, min_insync=min_insync, session_ms=session_ms
        )
        cluster = evolve(plan.cluster, brokers=4, replica_lag_time_max_ms=self.lag_ms)
        return evolve(plan, cluster=cluster, budget=evolve(plan.budget, brokers_down=3))


class RaceMachine(AppendRules, SilenceRules, TimeRules, FourBrokers):
    """Four brokers, one partition: followers and leaders are cut off after a step of the protocol, before
    anybody replaces them. A leader that is alone in its ISR commits at once, so that nothing lags any
    more."""

    lag_ms = 1_001


class RelayMachine(AppendRules, RelayRules, FourBrokers):
    """Four brokers, one partition: rows of leaders, each of which goes after a step of the protocol, while
    somebody is late, and stays in the ISR for long."""

    lag_ms = 6_001

    def plan(
        self, seed: int, network: NetworkOptions, *, replicas: int, min_insync: int, session_ms: int
    ) -> Plan:
        """With a replica on each broker, whatever `replicas` says: the last member of an ISR leads."""
        return super().plan(seed, network, replicas=3, min_insync=min_insync, session_ms=session_ms)


class OutageMachine(AppendRules, RestartRules, ReturnRules, TimeRules):
    """Three brokers, one partition: the only one who may lead stays away, while others start, die and start
    again."""


MACHINES = {
    machine.__name__: machine
    for machine in (
        ClusterMachine,
        ElectionMachine,
        OutageMachine,
        RaceMachine,
        ReassignmentMachine,
        RelayMachine,
    )
}
