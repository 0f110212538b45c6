"""Moves that several histories share: replicate a batch, hold an election of which some hear, lose an
answer."""

from impl_lab import Lab

from fencepost.impl.broker.parts import Parts
from fencepost.impl.messages import broker_api as kafka

TWO = {"isr": (1, 2), "replicas": (1, 2), "live": (1, 2)}


def replicate(lab: Lab, leader: int, follower: int, *values: int) -> None:
    """One batch, taken by the follower, which says so with its next fetch; the high watermark past it stays
    with the leader."""
    lab.produce(leader, *values)
    lab.deliver(leader, follower, kafka.FetchResponse)
    lab.deliver(follower, leader, kafka.FetchRequest)


def two(leader: int, *values: int, parts: Parts | None = None) -> Lab:
    """Two brokers, of which one leads in epoch 0; each value is a batch that the other has taken."""
    lab = Lab(brokers=2, parts=parts).led(leader, 0, **TWO).settle()
    for value in values:
        replicate(lab, leader, 3 - leader, value)
    return lab


def take_over(
    lab: Lab, leader: int, epoch: int, *, to: tuple[int, ...], isr: tuple[int, ...] = (1, 2)
) -> None:
    """An election of which only these brokers hear; messages under way are lost."""
    lab.drop()
    lab.lead(leader, epoch, isr=isr, replicas=(1, 2), live=(1, 2), to=to)


def ask_anew(lab: Lab, follower: int) -> None:
    """The answer to its fetch of an earlier epoch is lost; it waits for its time-out, then asks."""
    lab.drop(target=follower)
    lab.advance(1_600, nodes=(follower,))
