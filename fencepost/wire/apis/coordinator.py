"""FindCoordinator and InitProducerId: a client's first requests, which any broker answers.

There are no transactions: a client that asks for their coordinator, or for a transactional producer id,
gets an error.
"""

from typing import Any

from kio.schema.errors import ErrorCode as WireError

from fencepost.impl.messages.broker_api import InitProducerIdRequest
from fencepost.impl.messages.group_api import FindCoordinatorRequest
from fencepost.traces.outcomes import NO_ERROR, ErrorCode
from fencepost.wire.handling import NO_THROTTLE, Call, Handling, error_code

GROUP, TRANSACTION = 0, 1
"""Types of a coordinator's key (KIP-98)."""
FIRST_WITH_EPOCH = 3
"""First version of InitProducerId in which a producer may name its id and epoch (KIP-360)."""
NO_TRANSACTIONS = "Transactions are not supported by this broker"


def find_coordinator(call: Call, request: Any) -> Handling:
    """The broker that coordinates a group, and its address. call: the request's context; request: kio's
    class."""
    key_type = request.key_type if call.version >= 1 else GROUP
    if key_type != GROUP:
        yield ()
        error = WireError.unsupported_version if key_type == TRANSACTION else WireError.invalid_request
        return _coordinator(call, error, message=NO_TRANSACTIONS if key_type == TRANSACTION else None)
    (answer,) = yield [FindCoordinatorRequest(correlation_id=call.next_id(), group_id=request.key)]
    address = call.broker.addresses().get(answer.node)
    if answer.error is not NO_ERROR or address is None:
        error = error_code(ErrorCode.COORDINATOR_NOT_AVAILABLE if answer.error is NO_ERROR else answer.error)
        return _coordinator(call, error, message="The coordinator is not available.")
    return _coordinator(call, WireError.none, answer.node, *address)


def _coordinator(
    call: Call, error: WireError, node: int = -1, host: str = "", port: int = -1, message: str | None = None
) -> Any:
    return call.make(
        "FindCoordinatorResponse",
        throttle_time=NO_THROTTLE,
        error_code=error,
        error_message=message,
        node_id=node,
        host=host,
        port=port,
    )


def init_producer_id(call: Call, request: Any) -> Handling:
    """A new producer id. An idempotent producer that lost its sequence asks for another id; its old one is
    ignored, as in Kafka (KIP-360). call: the request's context; request: kio's class."""
    half = call.version >= FIRST_WITH_EPOCH and (request.producer_id < 0) != (request.producer_epoch < 0)
    if request.transactional_id == "" or half:
        yield ()
        return _producer_id(call, WireError.invalid_request)
    if request.transactional_id is not None:
        yield ()
        return _producer_id(call, WireError.unsupported_version)
    (answer,) = yield [InitProducerIdRequest(correlation_id=call.next_id())]
    return _producer_id(call, error_code(answer.error), answer.producer_id, answer.producer_epoch)


def _producer_id(call: Call, error: WireError, producer_id: int = -1, epoch: int = -1) -> Any:
    return call.make(
        "InitProducerIdResponse",
        throttle_time=NO_THROTTLE,
        error_code=error,
        producer_id=producer_id,
        producer_epoch=epoch,
    )
