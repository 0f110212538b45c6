"""Procedures behind the controller's watches and timers (C5, C9, C15): each reads ZooKeeper again and acts on what it finds, not on what the watch said."""

from fencepost.impl import znodes
from fencepost.impl.controller import elections
from fencepost.impl.controller.state import ControllerState
from fencepost.impl.controller.writer import Steps
from fencepost.impl.messages import TopicPartition
from fencepost.impl.zookeeper import Children, Data, GetChildren, GetData

IMBALANCE_PERCENT = 10
"""leader.imbalance.per.broker.percentage"""


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
    """The assignments of all topics, watched."""
    listed = yield GetChildren(znodes.TOPICS, watch=True)
    assert isinstance(listed, Children), listed
    assignments = {}
    for topic in listed.names:
        reply = yield GetData(znodes.topic_path(topic))
        if isinstance(reply, Data):
            for number, replicas in znodes.decode_topic(reply.data).items():
                assignments[TopicPartition(topic, number)] = replicas
    return assignments


def brokers_changed(controller: ControllerState) -> Steps:
    """Brokers came, went, or bounced (same id, another epoch: gone, then new)."""
    context = controller.context
    before = context.live_brokers
    now = yield from read_brokers(controller)
    gone = sorted(broker for broker in before if broker not in now)
    bounced = sorted(broker for broker in now if broker in before and now[broker] != before[broker])
    new = sorted(broker for broker in now if broker not in before)
    if gone or bounced:
        context.live_brokers = {broker: epoch for broker, epoch in now.items() if before.get(broker) == epoch}
        controller.channels.match(context.live_brokers)
        yield from _went_offline(controller, {*gone, *bounced})
        controller.channels.flush(context, metadata_always=True)
    if new or bounced:
        context.live_brokers = now
        controller.channels.match(now)
        yield from _came_online(controller, sorted({*new, *bounced}))


def _went_offline(controller: ControllerState, gone: set[int]) -> Steps:
    context = controller.context
    for key in sorted(context.assignments):
        if key not in context.states:
            continue
        if context.states[key].leader in gone:
            yield from elections.elect_offline(controller, key)
        elif gone.intersection(context.states[key].isr):
            yield from elections.remove_from_isr(controller, key, gone)


def _came_online(controller: ControllerState, new: list[int]) -> Steps:
    context = controller.context
    controller.channels.add_metadata(context.states)
    controller.channels.flush(context, metadata_always=True)  # before any LeaderAndIsr (KAFKA-4443)
    for broker in new:
        for key in context.partitions_on(broker):
            controller.channels.add_leader_and_isr((broker,), key)
    yield from elect_all_offline(controller)
    controller.channels.flush(context)


def elect_all_offline(controller: ControllerState) -> Steps:
    """Every partition without a live leader gets one if it can."""
    for key in controller.context.without_leader():
        if key in controller.context.states:
            yield from elections.elect_offline(controller, key)
        else:
            yield from elections.create(controller, key)


def topics_changed(controller: ControllerState) -> Steps:
    """New topics get leaders."""
    context = controller.context
    assignments = yield from read_topics(controller)
    for key, replicas in sorted(assignments.items()):
        if key not in context.assignments:
            context.assignments[key] = replicas
            yield from elections.create(controller, key)
    controller.channels.flush(context)


def isr_changed(controller: ControllerState) -> Steps:
    """Leaders changed ISRs: read them, tell everybody, remove the notifications."""
    context = controller.context
    listed = yield GetChildren(znodes.ISR_CHANGES, watch=True)
    assert isinstance(listed, Children), listed
    for name in listed.names:
        path = f"{znodes.ISR_CHANGES}/{name}"
        reply = yield GetData(path)
        if not isinstance(reply, Data):
            continue
        for key in znodes.decode_isr_changes(reply.data):
            if key in context.assignments:
                yield from controller.writer.read_state(context, key)
                controller.channels.add_metadata((key,))
        yield from controller.writer.delete(context, path)
    controller.channels.flush(context)


def balance_leaders(controller: ControllerState) -> Steps:
    """Give leadership back to preferred replicas where too many partitions of a broker are led elsewhere."""
    context = controller.context
    for broker in sorted(context.live_brokers):
        preferred = sorted(key for key, replicas in context.assignments.items() if replicas[0] == broker)
        moved = [key for key in preferred if key in context.states and context.states[key].leader != broker]
        if len(moved) * 100 > len(preferred) * IMBALANCE_PERCENT:
            for key in moved:
                yield from elections.elect_preferred(controller, key)
    controller.channels.flush(context)
