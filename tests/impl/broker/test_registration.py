"""/brokers/ids/N: one per session, whoever's node stands there."""

from impl_lab import Lab

from fencepost.impl.broker.broker import make_broker
from fencepost.impl.core.core_interface import Started
from fencepost.impl.zookeeper import znodes
from fencepost.traces.events import Name


def owner(lab: Lab) -> int:
    """Session that owns broker 1's node; 0 without one."""
    node = lab.tree.node(znodes.broker_path(1))
    return node.owner if node else 0


def test_the_broker_epoch_is_the_czxid_of_the_registration() -> None:
    """Rule (C2): the broker epoch comes from ZooKeeper, and grows with each registration."""
    lab = Lab(brokers=1)
    epochs = []
    for _ in range(3):
        node = lab.tree.node(znodes.broker_path(1))
        assert node is not None and lab.core(1).broker_context.broker_epoch == node.czxid
        epochs.append(node.czxid)
        lab.expire(1)
    assert epochs == sorted(set(epochs))
    registered = [event.broker_epoch for event in lab.recorded(Name.BROKER_REGISTERED)]
    assert registered[:3] == epochs and len(registered) == 4


def test_a_node_of_an_earlier_session_of_this_process_is_replaced() -> None:
    """Rule (KAFKA-1387, KAFKA-7165): the node would go with its old session and leave the broker
    unregistered, so it is made anew."""
    lab = Lab(brokers=1)
    first = lab.drivers[1].session
    lab.connect(1)  # a second session, while the server has not ended the first
    lab.advance(600)
    assert owner(lab) == lab.drivers[1].session != first
    del lab._sessions[first]
    lab.tree.end_session(first)
    assert owner(lab) == lab.drivers[1].session


def test_a_node_of_an_earlier_process_is_waited_for() -> None:
    """Rule: another process's node may be that of a broker that lives; only ZooKeeper ends it, then the
    broker registers."""
    lab = Lab(brokers=1)
    first, driver = lab.drivers[1].session, lab.drivers[1]
    driver.core = make_broker(1, lab.options, driver.disk, lab.parts, lab.now)
    driver.timers.clear()
    lab.step(1, Started())
    lab.connect(1)
    lab.advance(3_000)
    assert owner(lab) == first and lab.core(1).broker_context.broker_epoch == -1
    del lab._sessions[first]
    lab.tree.end_session(first)
    lab.advance(600)
    assert owner(lab) == driver.session and lab.core(1).broker_context.broker_epoch > 0


def test_a_lost_reply_to_the_registration_is_recognised() -> None:
    """Rule: the node is mine if my session owns it; the broker registers once."""
    lab = Lab(brokers=1, start=False)
    lab.hold_zookeeper(1)
    lab.start(1)
    for _ in range(100):
        if getattr(lab.drivers[1].held[0].request, "path", "") == znodes.broker_path(1):
            break
        lab.release_zookeeper(1, 1)
    lab.drivers[1].replies_to_lose = 1
    lab.release_zookeeper(1)
    assert owner(lab) == lab.drivers[1].session
    assert len(lab.recorded(Name.BROKER_REGISTERED)) == 1
    assert lab.recorded(Name.CONTROLLER_ELECTED) == []  # the script holds /controller


def test_sessions_in_quick_succession_end_in_one_registration_each() -> None:
    """Rule: a registration that began in an earlier session does not register twice in a later one."""
    lab = Lab(brokers=1)
    for _ in range(5):
        lab.hold_zookeeper(1)
        lab.end_session(1)
        lab.notice_expiry(1)
    lab.advance(2_000)
    assert owner(lab) == lab.drivers[1].session
    assert len(lab.recorded(Name.BROKER_REGISTERED)) == 6
