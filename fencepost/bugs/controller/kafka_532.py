"""KAFKA-532: brokers cannot tell a deposed controller from the current one."""

from fencepost.impl.broker.control_gate import ControlGate
from fencepost.impl.messages.broker_api import ControlRequest
from fencepost.traces.kafka_names.outcomes import ErrorCode


class ObeysAnyController(ControlGate):
    """Admits every controller epoch."""

    def controller_epoch_fencing(self, request: ControlRequest) -> ErrorCode:
        """Refuse nothing."""
        return ErrorCode.NONE
