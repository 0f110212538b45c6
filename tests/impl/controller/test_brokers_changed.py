"""A broker goes: what the controller does for its partitions, whatever it remembers of them."""

import pytest
from controller_lab import cluster, refused_transitions, settle_all
from impl_lab import T0


@pytest.mark.parametrize("bounces", [False, True])
def test_a_follower_whose_return_was_not_announced_leaves_the_isr_when_it_dies(bounces: bool) -> None:
    """Rule (C9): the leader has taken a follower back, and the controller will hear of that with the next
    notification. The follower dies before; the controller asks ZooKeeper who is in the ISR, as Kafka does,
    not its memory."""
    lab = cluster({0: (2, 3)}, isr_change_propagation_ms=60_000)
    lab.produce(2, 11)
    settle_all(lab)
    lab.restart(3)
    settle_all(lab)
    assert lab.state().isr == (2, 3)
    assert lab.core(1).controller.state.context.states[T0].isr == (2,)
    epoch = lab.state().leader_epoch
    lab.crash(3)
    if bounces:
        lab.start(3)
    for _ in range(1_000):
        if lab.state().leader_epoch > epoch:
            break
        lab.deliver() if lab.mail else lab.advance(10)
    assert (lab.state().isr, lab.state().leader_epoch) == ((2,), epoch + 1)
    assert refused_transitions(lab) == 0
