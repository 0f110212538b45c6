"""What the tests of the controller's procedures share: a cluster with a controller, requests below /admin, a
fail-over at a chosen ZooKeeper request."""

from collections.abc import Callable

from impl_lab import Lab

from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Create, Data, Delete, GetData
from fencepost.traces.events import Event, Name


def cluster(assignment: dict[int, tuple[int, ...]], brokers: int = 4, **options: object) -> Lab:
    """Broker 1 is the controller; topic t is created."""
    lab = Lab(brokers, scripted=False, **options)
    lab.create_topic(assignment).settle()
    assert lab.controllers() == [1]
    return lab


def reassign(lab: Lab, targets: dict[TopicPartition, tuple[int, ...]]) -> Lab:
    """As the admin tool does."""
    lab.admin(Create(znodes.REASSIGN, znodes.encode_reassignments(targets)))
    return lab


def pending(lab: Lab) -> dict[TopicPartition, tuple[int, ...]]:
    """What /admin/reassign_partitions holds; empty without the node."""
    node = lab.tree.node(znodes.REASSIGN)
    return znodes.decode_reassignments(node.data) if node else {}


def assigned(lab: Lab, topic: str = "t") -> dict[int, tuple[int, ...]]:
    """AR as ZooKeeper has it."""
    reply = lab.tree.apply(0, GetData(znodes.topic_path(topic))).reply
    assert isinstance(reply, Data), reply
    return znodes.decode_topic(reply.data)


def delete_topic(lab: Lab, topic: str = "t") -> Lab:
    """As the admin tool does."""
    lab.admin(Create(znodes.delete_topic_path(topic)))
    return lab


def on_disk(lab: Lab, node: int) -> list[str]:
    """Replicas that a broker's disk holds."""
    return [name for name in lab.drivers[node].disk.list("") if name.rpartition("-")[2].isdigit()]


def marks(lab: Lab, cause: str) -> list[Event]:
    """The marks of this name."""
    return [event for event in lab.recorded(Name.MARK) if event.cause == cause]


def refused_transitions(lab: Lab) -> int:
    """What the state machines of all controllers refused."""
    return len(marks(lab, "illegal_transition_refused"))


def settled(
    assignment: dict[int, tuple[int, ...]], brokers: int = 4, values: tuple[int, ...] = (), **options: object
) -> Lab:
    """Such a cluster, in which everything has come to rest. values: a batch that broker 2 appends before."""
    lab = cluster(assignment, brokers, **options)
    if values:
        lab.produce(2, *values)
    return lab.come_to_rest()


def fail_over_at(lab: Lab, begin: Callable[[], None], request: int) -> bool:
    """Begin, carry out `request` ZooKeeper requests of the controller from there, then its session ends and
    it dies. Returns False if there are not so many.

    Control requests that it sent are delivered; those it would have sent after its death never exist."""
    (controller,) = lab.controllers()
    lab.hold_zookeeper(controller)
    begin()
    for _ in range(request):
        for _ in range(60):
            if lab.drivers[controller].held:
                break
            lab.rest(200)
        if not lab.drivers[controller].held:
            return False
        lab.release_zookeeper(controller, 1)
    lab.crash(controller)
    return True


def remove(lab: Lab, path: str) -> None:
    """A node goes by an admin's hand."""
    lab.admin(Delete(path))


def until_sent(lab: Lab, kind: type) -> None:
    """Deliver one message after another, and let time pass, until a message of this kind is under way."""
    for _ in range(3_000):
        if any(isinstance(mail.message, kind) for mail in lab.mail):
            return
        if lab.mail:
            lab.deliver()
        else:
            lab.advance(100)
    raise AssertionError(f"no {kind} was ever sent")
