"""What the controller reads from ZooKeeper (C5): brokers and topics, and what stood below /admin at fail-over. Owns the reads and their watches."""

from fencepost.impl import znodes
from fencepost.impl.controller.context import AdminNodes
from fencepost.impl.controller.state import ControllerState
from fencepost.impl.controller.writer import Steps
from fencepost.impl.messages import TopicPartition
from fencepost.impl.zookeeper import Children, Data, Done, Exists, GetChildren, GetData


def read_brokers(controller: ControllerState) -> Steps:
    """The live brokers with their epochs, watched."""
    listed = yield GetChildren(znodes.BROKER_IDS, watch=True)
    assert isinstance(listed, Children), listed
    brokers = {}
    for name in listed.names:
        reply = yield GetData(znodes.broker_path(int(name)))
        if isinstance(reply, Data):
            brokers[int(name)] = reply.stat.czxid
    return brokers


def read_topics(controller: ControllerState) -> Steps:
    """The assignments of all topics, watched: topics that come and go, and partitions that are added."""
    listed = yield GetChildren(znodes.TOPICS, watch=True)
    assert isinstance(listed, Children), listed
    assignments = {}
    for topic in listed.names:
        reply = yield GetData(znodes.topic_path(topic), watch=True)
        if isinstance(reply, Data):
            for number, replicas in znodes.decode_topic(reply.data).items():
                assignments[TopicPartition(topic, number)] = replicas
    return assignments


def read_admin(controller: ControllerState) -> Steps:
    """What there is to resume below /admin, watched, into the context of this reign. It runs beside the fail-over: its requests go out right behind
    the first one, and since ZooKeeper answers in order, its answers are here before those to whatever is asked later."""
    context = controller.context
    topics, reassign, preferred = yield (
        GetChildren(znodes.DELETE_TOPICS, watch=True),
        Exists(znodes.REASSIGN, watch=True),
        Exists(znodes.PREFERRED_ELECTION, watch=True),
    )
    context.admin = AdminNodes(
        delete_topics=topics.names if isinstance(topics, Children) else (),
        reassign=isinstance(reassign, Done),
        preferred=isinstance(preferred, Done),
    )
