"""Preferred leader election (C15): by request through /admin/preferred_replica_election, and by the balance
task."""

from fencepost.impl.controller import elections
from fencepost.impl.controller.state import ControllerState
from fencepost.impl.core.procedures import ZooKeeperSteps
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Data, Delete, Exists, GetData, SetData
from fencepost.traces.events import Name

IMBALANCE_PERCENT = 10
"""leader.imbalance.per.broker.percentage"""


def preferred_election_requested(controller: ControllerState) -> ZooKeeperSteps:
    """Elect what the node asks for, then remove it. A new controller finds the node and does it again, which
    changes nothing that is done.

    A node as it was made, of version 0, is emptied before it is removed: a removal that is sent again because
    its reply was lost then meets another version in the node that an operator has made meanwhile (as
    reassignment.remove_entries). To empty it fires the watch, so that this is asked again, for nothing but
    the removal.
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
    """Not while its replicas change, nor while its topic goes."""
    context = controller.context
    return key in context.states and context.in_service(key) and key not in context.reassigning


def balance_leaders(controller: ControllerState) -> ZooKeeperSteps:
    """Give leadership back to preferred replicas where too many partitions of a broker are led elsewhere."""
    context = controller.context
    for broker in sorted(context.live_brokers):
        preferred = sorted(key for key, replicas in context.assignments.items() if replicas[0] == broker)
        moved = [
            key for key in preferred if eligible(controller, key) and context.states[key].leader != broker
        ]
        if len(moved) * 100 > len(preferred) * IMBALANCE_PERCENT:
            yield from elections.elect_preferred(controller, moved)
    controller.channels.flush(context)
