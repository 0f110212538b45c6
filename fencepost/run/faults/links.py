"""Faults of many links at once, and of what brokers send each other: how each begins and how it ends.

Owns these rows of the table in table.py. Must not decide whether a fault may happen (budget.py) or whom it
hits (roles.py). Messages are doubled and held back between brokers only: what a client sends comes over one
TCP connection, once and in order, and its own retries are another matter.
"""

from fencepost.run.faults.kind import Breakable, FaultKind, Reach
from fencepost.sim.zookeeper import ZOOKEEPER_NODE
from fencepost.traces.plan import Fault

Pairs = list[tuple[int, int]]


def name_of(fault: Fault) -> str:
    """What the network calls a fault: two of a kind end independently."""
    return f"{fault.kind} {fault.fault_id}"


def heal_links(cluster: Breakable, fault: Fault, node: int) -> None:
    """The links of this fault are as they were."""
    cluster.world.heal(name_of(fault))


def both_ways(cluster: Breakable, node: int, other: int | None) -> Pairs:
    """The links between a broker and another one, in both directions.

    Args:
        cluster: names the other hosts.
        node: the broker's number.
        other: the other host's number; None: all others.
    """
    others = [broker for broker in cluster.broker_ids if broker != node] if other is None else [other]
    return [pair for broker in others for pair in ((node, broker), (broker, node))]


def ring(brokers: tuple[int, ...], first: int, *, reverse: bool) -> Pairs:
    """The links that a ring of majorities cuts. Each broker hears a majority around its place, itself
    included, and no two hear the same one.

    Args:
        brokers: their numbers.
        first: the number of the broker that is the first of the ring.
        reverse: whether the ring goes the other way round.
    """
    begin, count = brokers.index(first), len(brokers)
    order = [*brokers[begin:], *brokers[:begin]]
    if reverse:
        order.reverse()
    majority = count // 2 + 1
    heard = range(-((majority - 1) // 2), majority // 2 + 1)
    return [
        (source, target)
        for place, target in enumerate(order)
        for source in brokers
        if source not in {order[(place + away) % count] for away in heard}
    ]


def _ring(cluster: Breakable, fault: Fault, node: int, other: int | None) -> None:
    links = ring(cluster.broker_ids, node, reverse=fault.parameter % 2 == 1)
    cluster.world.block(name_of(fault), links)


def _majority(cluster: Breakable, fault: Fault, node: int, other: int | None) -> None:
    """The target's side is filled up in the order of ids from the target on; the other one of the fault, if
    it has any, is on the other side."""
    brokers = cluster.broker_ids
    small = (len(brokers) - 1) // 2 or 1
    size = len(brokers) - small if fault.parameter >= 3 else small
    begin = brokers.index(node)
    order = [broker for broker in (*brokers[begin:], *brokers[:begin]) if broker != other]
    side = order[:size]
    rest = [broker for broker in brokers if broker not in side]
    minority, majority = (rest, side) if fault.parameter >= 3 else (side, rest)
    if fault.parameter % 3 >= 1:
        majority = [*majority, ZOOKEEPER_NODE]
    if fault.parameter % 3 == 2:
        majority += cluster.client_nodes()
    cluster.world.partition(name_of(fault), minority, majority)


def _from_clients(cluster: Breakable, fault: Fault, node: int, other: int | None) -> None:
    asked = [(client, node) for client in cluster.client_nodes()] if fault.parameter != 2 else []
    answered = [(node, client) for client in cluster.client_nodes()] if fault.parameter != 1 else []
    cluster.world.block(name_of(fault), asked + answered)


def _duplication(cluster: Breakable, fault: Fault, node: int, other: int | None) -> None:
    links = both_ways(cluster, node, other)
    cluster.world.degrade(name_of(fault), links, duplicate_ppm=fault.parameter)


def _reordering(cluster: Breakable, fault: Fault, node: int, other: int | None) -> None:
    links = both_ways(cluster, node, other)
    cluster.world.degrade(name_of(fault), links, reorder_ppm=fault.parameter)


LINK_FAULTS: dict[str, FaultKind] = {
    "ring_partition": FaultKind(
        says="brokers in a ring that begins at the target: each hears a majority around its place, no two "
        "the same one; ZooKeeper and clients reach all",
        begin=_ring,
        end=heal_links,
        reach=Reach.EVERYBODY,
        needs_up=False,
        parameter=(0, 1),
        parameter_says="0 in the order of ids, 1 the other way round: with three brokers each hears the "
        "next, or the one before",
    ),
    "majority_partition": FaultKind(
        says="the brokers part into a minority and a majority that do not reach each other; the other one "
        "is on the other side than the target",
        begin=_majority,
        end=heal_links,
        reach=Reach.EVERYBODY,
        needs_up=False,
        parameter=(0, 5),
        parameter_says="from 3 on the target is in the majority, else in the minority; by 3, 1: ZooKeeper "
        "is with the majority alone, 2: clients, too",
    ),
    "client_partition": FaultKind(
        says="the target and all clients do not reach each other; brokers and ZooKeeper do",
        begin=_from_clients,
        end=heal_links,
        reach=Reach.NOBODY,
        needs_up=False,
        parameter=(0, 2),
        parameter_says="0 both ways, 1 only what clients send is lost, 2 only what they receive",
    ),
    "duplication": FaultKind(
        says="messages between the target and the other broker (all others) arrive twice more often",
        begin=_duplication,
        end=heal_links,
        reach=Reach.LINKS,
        needs_up=False,
        parameter=(10_000, 500_000),
        parameter_says="per million, in addition",
    ),
    "reordering": FaultKind(
        says="messages between the target and the other broker (all others) are held back more often, until "
        "later ones have passed",
        begin=_reordering,
        end=heal_links,
        reach=Reach.LINKS,
        needs_up=False,
        parameter=(10_000, 700_000),
        parameter_says="per million, in addition",
    ),
}
