"""Preferred leader election (C15): by request through /admin/preferred_replica_election, and by the balance task."""

from fencepost.impl import znodes
from fencepost.impl.controller import elections
from fencepost.impl.controller.state import ControllerState
from fencepost.impl.controller.writer import Steps
from fencepost.impl.messages import TopicPartition
from fencepost.impl.zookeeper import Data, Exists, GetData
from fencepost.traces.events import Name

IMBALANCE_PERCENT = 10
"""leader.imbalance.per.broker.percentage"""


def preferred_election_requested(controller: ControllerState) -> Steps:
    """Elect what the node asks for, then remove it. A new controller finds the node and does it again, which changes nothing that is done."""
    yield Exists(znodes.PREFERRED_ELECTION, watch=True)
    reply = yield GetData(znodes.PREFERRED_ELECTION)
    if not isinstance(reply, Data):
        return
    for key in _asked_for(controller, reply.data):
        yield from elections.elect_preferred(controller, key)
    yield from controller.writer.delete(controller.context, znodes.PREFERRED_ELECTION)
    controller.channels.flush(controller.context)


def _asked_for(controller: ControllerState, data: bytes) -> list[TopicPartition]:
    try:
        keys = znodes.decode_partitions(data)
    except (ValueError, KeyError, TypeError) as error:
        controller.shell.record(Name.MARK, cause="preferred_election_refused", detail=repr(error))
        return []
    return [key for key in keys if _eligible(controller, key)]


def _eligible(controller: ControllerState, key: TopicPartition) -> bool:
    """Not while its replicas change, nor while its topic goes."""
    context = controller.context
    return key in context.states and context.in_service(key) and key not in context.reassigning


def balance_leaders(controller: ControllerState) -> Steps:
    """Give leadership back to preferred replicas where too many partitions of a broker are led elsewhere."""
    context = controller.context
    for broker in sorted(context.live_brokers):
        preferred = sorted(key for key, replicas in context.assignments.items() if replicas[0] == broker)
        moved = [
            key for key in preferred if _eligible(controller, key) and context.states[key].leader != broker
        ]
        if len(moved) * 100 > len(preferred) * IMBALANCE_PERCENT:
            for key in moved:
                yield from elections.elect_preferred(controller, key)
    controller.channels.flush(context)
