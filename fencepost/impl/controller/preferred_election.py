"""Preferred leader election (C15): by request through /admin/preferred_replica_election, and by the balance
task."""

from fencepost.impl.controller import elections
from fencepost.impl.controller.shared_state import ControllerState
from fencepost.impl.core.procedures import ZooKeeperSteps
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Data, Delete, Exists, GetData, SetData
from fencepost.traces.events import Name

IMBALANCE_PERCENT = 10
"""leader.imbalance.per.broker.percentage"""


def preferred_election_requested(controller: ControllerState) -> ZooKeeperSteps:
    """Elect the leaders that the node asks for, then remove the node. A new controller finds the node and
    repeats the work, which has no effect on finished partitions.

    A node of version 0, as it was created, is emptied before it is removed. If the reply to a removal is
    lost, the removal is sent again. It then finds another version in a node that an operator has created
    meanwhile (as in reassignment.remove_entries). Emptying the node fires the watch, so this procedure runs
    again, only for the removal.
    """
    yield Exists(znodes.PREFERRED_ELECTION, watch=True)
    reply = yield GetData(znodes.PREFERRED_ELECTION)
    if not isinstance(reply, Data):
        return
    yield from elections.elect_preferred(controller, _asked_for(controller, reply.data))
    version = reply.stat.version
    change: SetData | Delete = Delete(znodes.PREFERRED_ELECTION, version)
    if version == 0:
        change = SetData(znodes.PREFERRED_ELECTION, znodes.encode_partitions([]), version)
    yield from controller.writer.write(controller.context, change)
    controller.channels.flush(controller.context)


def _asked_for(controller: ControllerState, data: bytes) -> list[TopicPartition]:
    try:
        keys = znodes.decode_partitions(data)
    except znodes.BadZnodeError as error:
        controller.broker_context.record(Name.MARK, cause="preferred_election_refused", detail=str(error))
        return []
    return [key for key in keys if eligible(controller, key)]


def eligible(controller: ControllerState, key: TopicPartition) -> bool:
    """Whether a partition may be balanced: not while its replicas change, and not while its topic is deleted.

    Args:
        controller: the active controller.
        key: the partition.

    Returns:
        whether it may.
    """
    context = controller.context
    return key in context.states and context.in_service(key) and key not in context.reassigning


def balance_leaders(controller: ControllerState) -> ZooKeeperSteps:
    """Give leadership back to the preferred replicas of a broker if other brokers lead too many of its
    partitions."""
    context = controller.context
    for broker in sorted(context.live_brokers):
        preferred = sorted(key for key, replicas in context.assignments.items() if replicas[0] == broker)
        moved = [
            key for key in preferred if eligible(controller, key) and context.states[key].leader != broker
        ]
        if len(moved) * 100 > len(preferred) * IMBALANCE_PERCENT:
            yield from elections.elect_preferred(controller, moved)
    controller.channels.flush(context)
