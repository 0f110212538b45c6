"""Faults between a broker and clients from outside, in addition to the table of run/faults/table.py.

Owns these rows, and the whole table of an embedded cluster. The swarm does not draw them, so that its plans
stay what they were. What one connection meets (an answer lost, an error in its place) is no fault of a link.
"""

from collections.abc import Mapping

from fencepost.run.faults.kind import Breakable, FaultKind, Reach
from fencepost.run.faults.links import heal_links, name_of
from fencepost.run.faults.table import FAULTS
from fencepost.traces.plan import Fault


def _both_ways(cluster: Breakable, node: int) -> list[tuple[int, int]]:
    return [pair for client in cluster.client_nodes() for pair in ((client, node), (node, client))]


def _slow(cluster: Breakable, fault: Fault, node: int, other: int | None) -> None:
    cluster.world.degrade(name_of(fault), _both_ways(cluster, node), delay_us=fault.parameter)


def _loss(cluster: Breakable, fault: Fault, node: int, other: int | None) -> None:
    cluster.world.degrade(name_of(fault), _both_ways(cluster, node), loss_ppm=fault.parameter)


KINDS: Mapping[str, FaultKind] = {
    **FAULTS,
    "slow_client_link": FaultKind(
        says="what clients and the target send each other takes longer",
        begin=_slow,
        end=heal_links,
        reach=Reach.NOBODY,
        needs_up=False,
        parameter=(1_000, 2_000_000),
        parameter_says="microseconds more, each way",
    ),
    "client_loss": FaultKind(
        says="packets between clients and the target are lost more often: TCP sends them again 200 ms later",
        begin=_loss,
        end=heal_links,
        reach=Reach.NOBODY,
        needs_up=False,
        parameter=(10_000, 900_000),
        parameter_says="per million",
    ),
}
"""All kinds of fault that an embedded cluster has."""
