"""Faults between brokers and clients from outside, and of what these clients ask.

Owns these rows of the table in table.py. The simulator's own runs have none of them, so that its plans stay
what they were: an embedded cluster has the first two, a real system the others.
"""

from functools import partial

from attrs import evolve

from fencepost.run.faults.kind import FaultKind, Reach, Real, RealHit, SimulatedHit, there_and_back
from fencepost.run.faults.link_faults import LinkFault, RealLinks
from fencepost.systems.system import Pair, links_of_system, requests_of_system

LATE_REQUESTS, BROKEN_REQUEST = "late_requests", "broken_request"


def _clients(hit: SimulatedHit) -> list[Pair]:
    return there_and_back(hit.node, hit.cluster.client_nodes())


def _break(hit: RealHit) -> None:
    from fencepost.proxy.faults import parse  # needs the extra kafka

    fault = parse(hit.fault.target)
    named = evolve(fault, topic=hit.names.get(fault.topic, fault.topic))
    requests_of_system(hit.system).break_requests(hit.name, named)


ClientFault = partial(LinkFault, reach=Reach.NOBODY)

OUTSIDE_FAULTS: dict[str, FaultKind] = {
    "slow_client_link": ClientFault(
        says="what clients and the target send each other takes longer",
        begin=lambda hit: hit.world.degrade(hit.name, _clients(hit), delay_us=hit.parameter),
        parameter=(1_000, 2_000_000),
        parameter_says="microseconds more, each way",
    ),
    "client_loss": ClientFault(
        says="packets between clients and the target are lost more often: TCP sends them again 200 ms later",
        begin=lambda hit: hit.world.degrade(hit.name, _clients(hit), loss_ppm=hit.parameter),
        parameter=(10_000, 900_000),
        parameter_says="per million",
    ),
    LATE_REQUESTS: ClientFault(
        says="connections of clients to the target are held back: what they send arrives late, even after "
        "the end and after its connection was closed",
        real=RealLinks(
            lambda hit: links_of_system(hit.system).delay_clients(hit.name, hit.node, hit.delay_ms)
        ),
        parameter_says="microseconds more",
    ),
    BROKEN_REQUEST: ClientFault(
        says="single requests of clients are broken; the target says how (docs/reference/request-faults.md)",
        on="request",
        real=Real("requests", _break, lambda hit: requests_of_system(hit.system).heal_requests(hit.name)),
    ),
}
