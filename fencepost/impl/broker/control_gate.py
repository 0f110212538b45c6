"""The check of control requests: controller epoch and broker epoch (docs/spec/cluster.md C2).

Owns the highest controller epoch that this incarnation has obeyed. Must not know what a request asks for.

    a zombie controller                         broker                          the new controller
    1. pauses with a request in flight
    2.                                                                          becomes controller, epoch e+1
    3.                                          obeys epoch e+1
    4. resumes, sends again with epoch e  --->  refuses: STALE_CONTROLLER_EPOCH
"""

from attrs import define

from fencepost.impl.core.broker_context import BrokerContext
from fencepost.impl.messages.broker_api import ControlRequest
from fencepost.impl.messages.names import name_of
from fencepost.traces.events import Name
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode


@define
class ControlGate:
    """controller_epoch: the highest one obeyed since this process started; it never decreases."""

    broker_context: BrokerContext
    controller_epoch: int = -1

    def admit(self, request: ControlRequest) -> ErrorCode:
        """The error for a request; NONE if it may be executed. Its controller epoch is then the highest
        obeyed."""
        error = self.broker_epoch_fencing(request)
        if error is NO_ERROR:
            error = self.controller_epoch_fencing(request)
        kind = name_of(request)
        if error is NO_ERROR:
            self.controller_epoch = max(self.controller_epoch, request.controller_epoch)
            name, detail = Name.CONTROL_REQUEST_APPLIED, ""
        else:
            name, detail = Name.CONTROL_REQUEST_REFUSED, error.value
        self.broker_context.record(
            name,
            controller_epoch=request.controller_epoch,
            broker_epoch=request.broker_epoch,
            cause=kind,
            detail=detail,
        )
        return error

    def controller_epoch_fencing(self, request: ControlRequest) -> ErrorCode:
        """Protection KAFKA-532: refuse a controller if a later one was already obeyed."""
        if request.controller_epoch < self.controller_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        return NO_ERROR

    def broker_epoch_fencing(self, request: ControlRequest) -> ErrorCode:
        """Protection KIP-380: refuse a request for an earlier incarnation. Only `<` is stale, because the
        controller may know a newer incarnation before the broker does."""
        if request.broker_epoch < self.broker_context.broker_epoch:
            return ErrorCode.STALE_BROKER_EPOCH
        return NO_ERROR
