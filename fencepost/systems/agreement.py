"""Whether a cluster of Kafka is healthy, as all its brokers say: what systems without ZooKeeper ask.

Owns the condition. Must not know what the brokers run on.
"""

from collections.abc import Mapping

from fencepost.traces.errors import EnvironmentError_
from fencepost.wire.client import Access, Address, look_around


async def all_agree(addresses: Mapping[int, Address]) -> bool:
    """Whether every broker answers, knows all the others and a controller, and names a leader and a full ISR
    of every partition.

    Parameters:
      addresses: of all brokers, by id.
    Returns: whether all say so.
    """
    brokers = tuple(sorted(addresses))
    for broker in brokers:
        try:
            _, seen = await look_around((addresses[broker],), Access())
        except EnvironmentError_:
            return False
        if seen.live_brokers != brokers or seen.controller_id not in brokers:
            return False
        if any(set(each.isr) != set(each.replicas) or each.leader < 0 for each in seen.partitions):
            return False
    return True
