"""Faults of links: how each begins and how it ends.

Owns these rows of the table in table.py. Must not decide whether a fault may happen (budget.py) or whom it
hits (roles.py). Messages are doubled and held back between brokers only: what a client sends comes over one
TCP connection, once and in order, and its own retries are another matter.
"""

from functools import partial

from fencepost.run.faults.kind import FaultKind, Reach, Real, RealHit, SimulatedHit
from fencepost.sim.zookeeper import ZOOKEEPER_NODE
from fencepost.systems.system import Pair, links_of_system


def _heal(hit: SimulatedHit) -> None:
    hit.world.heal(hit.name)


def _heal_real(hit: RealHit) -> None:
    hit.system.heal(hit.name)


LinkFault = partial(FaultKind, end=_heal, needs_up=False)
"""A fault at whose end its links are as they were."""
RealLinks = partial(Real, "links", end=_heal_real)
"""The same in a real system whose links can do more than be cut between brokers."""
RealCut = partial(Real, "cut", end=_heal_real)
"""The same in any system whose brokers' links can be cut."""


def ring(brokers: tuple[int, ...], first: int, *, reverse: bool) -> list[Pair]:
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


def _ring(hit: SimulatedHit) -> None:
    links = ring(hit.cluster.broker_ids, hit.node, reverse=hit.parameter % 2 == 1)
    hit.world.block(hit.name, links)


def _majority(hit: SimulatedHit) -> None:
    """The target's side is filled up in the order of ids from the target on; the other one of the fault, if
    it has any, is on the other side."""
    brokers = hit.cluster.broker_ids
    small = (len(brokers) - 1) // 2 or 1
    size = len(brokers) - small if hit.parameter >= 3 else small
    begin = brokers.index(hit.node)
    order = [broker for broker in (*brokers[begin:], *brokers[:begin]) if broker != hit.other]
    side = order[:size]
    rest = [broker for broker in brokers if broker not in side]
    minority, majority = (rest, side) if hit.parameter >= 3 else (side, rest)
    if hit.parameter % 3 >= 1:
        majority = [*majority, ZOOKEEPER_NODE]
    if hit.parameter % 3 == 2:
        majority += hit.cluster.client_nodes()
    hit.world.partition(hit.name, minority, majority)


def _from_clients(hit: SimulatedHit) -> None:
    clients = hit.cluster.client_nodes()
    asked = [(client, hit.node) for client in clients] if hit.parameter != 2 else []
    answered = [(hit.node, client) for client in clients] if hit.parameter != 1 else []
    hit.world.block(hit.name, asked + answered)


LINK_FAULTS: dict[str, FaultKind] = {
    "ring_partition": LinkFault(
        says="brokers in a ring that begins at the target: each hears a majority around its place, no two "
        "the same one; ZooKeeper and clients reach all",
        begin=_ring,
        reach=Reach.EVERYBODY,
        parameter=(0, 1),
        parameter_says="0 in the order of ids, 1 the other way round: with three brokers each hears the "
        "next, or the one before",
    ),
    "majority_partition": LinkFault(
        says="the brokers part into a minority and a majority that do not reach each other; the other one "
        "is on the other side than the target",
        begin=_majority,
        reach=Reach.EVERYBODY,
        parameter=(0, 5),
        parameter_says="from 3 on the target is in the majority, else in the minority; by 3, 1: ZooKeeper "
        "is with the majority alone, 2: clients, too",
    ),
    "client_partition": LinkFault(
        says="the target and all clients do not reach each other; brokers and ZooKeeper do",
        begin=_from_clients,
        real=RealLinks(
            lambda hit: links_of_system(hit.system).cut_clients(hit.name, hit.node, hit.parameter)
        ),
        reach=Reach.NOBODY,
        parameter=(0, 2),
        parameter_says="0 both ways, 1 only what clients send is lost, 2 only what they receive",
    ),
    "duplication": LinkFault(
        says="messages between the target and the other broker (all others) arrive twice more often",
        begin=lambda hit: hit.world.degrade(hit.name, hit.both_ways, duplicate_ppm=hit.parameter),
        reach=Reach.LINKS,
        parameter=(10_000, 500_000),
        parameter_says="per million, in addition",
    ),
    "reordering": LinkFault(
        says="messages between the target and the other broker (all others) are held back more often, until "
        "later ones have passed",
        begin=lambda hit: hit.world.degrade(hit.name, hit.both_ways, reorder_ppm=hit.parameter),
        reach=Reach.LINKS,
        parameter=(10_000, 700_000),
        parameter_says="per million, in addition",
    ),
}
