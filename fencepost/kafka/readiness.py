"""Whether a test may go on: every broker of an embedded cluster has heard what is decided.

Owns the comparison of brokers with ZooKeeper. It is for whoever waits, such as a test before its next
step. No system and no run asks it.
"""

from collections.abc import Collection

from fencepost.impl.admin.cluster_state import ClusterTopics, read_cluster, read_states
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.systems.requests import carry_out
from fencepost.systems.simulation import Simulation


def all_heard(simulation: Simulation) -> bool:
    """Whether the cluster is healthy, and every broker knows all others and each leader.

    Parameters:
      simulation: to be read in its own thread.
    Returns: whether it is so.
    """
    if not simulation.healthy():
        return False
    cores = [simulation.world.hosts[broker].core for broker in simulation.brokers]
    if not all(core is not None and core.metadata.live_brokers == simulation.brokers for core in cores):
        return False
    seen: ClusterTopics = carry_out(read_cluster(), simulation.world.admin)
    return led(simulation, seen.partitions(), in_sync=True)


def led(simulation: Simulation, keys: Collection[TopicPartition], *, in_sync: bool = False) -> bool:
    """Whether each of these partitions has a leader that leads, and of which all brokers know that run.

    Parameters:
      simulation: to be read in its own thread.
      keys: the partitions.
      in_sync: and a full ISR.
    Returns: whether it is so.
    """
    states = carry_out(read_states(keys), simulation.world.admin) if keys else {}
    cores = {broker: simulation.world.hosts[broker].core for broker in simulation.brokers}
    for key in keys:
        state = states.get(key)
        leader = None if state is None else cores.get(state.leader)
        replica = None if leader is None else leader.replicas.partitions.get(key)
        if state is None or replica is None or replica.leader != state.leader:
            return False
        known = (state.leader, state.leader_epoch)
        if any(core is not None and core.metadata.leaders.get(key) != known for core in cores.values()):
            return False
        if in_sync and not (set(replica.replicas) == set(replica.isr) == set(state.isr)):
            return False
    return True
