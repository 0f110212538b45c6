"""FindCoordinator and InitProducerId: a client's first requests, which any broker answers.

Without transactions in the cluster, a client that asks for their coordinator, or for a transactional producer
id, gets an error.
"""

from typing import Any

from kio.schema.errors import ErrorCode as WireError

from fencepost.impl.messages.broker_api import InitProducerIdRequest
from fencepost.impl.messages.group_api import FindCoordinatorRequest
from fencepost.impl.messages.transaction_api import NO_PRODUCER, NO_PRODUCER_EPOCH
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode
from fencepost.wire.handling import Call, Handling, milliseconds
from fencepost.wire.plain import error_code

GROUP, TRANSACTION = 0, 1
"""Types of a coordinator's key (KIP-98)."""
FIRST_WITH_EPOCH = 3
"""Of InitProducerId: from here on a producer may name the id and the epoch that it has (KIP-360)."""
FIRST_WITH_FENCED = 4
"""Of InitProducerId: before it PRODUCER_FENCED is INVALID_PRODUCER_EPOCH (KIP-588)."""
NO_TRANSACTIONS = "Transactions are not supported by this broker"


def find_coordinator(call: Call, request: Any) -> Handling:
    """The broker that coordinates a group, and its address. call: the request's context; request: kio's
    class."""
    key_type = request.key_type if call.version >= 1 else GROUP
    transactional = key_type == TRANSACTION and call.broker.transactions
    if key_type != GROUP and not transactional:
        yield ()
        error = WireError.unsupported_version if key_type == TRANSACTION else WireError.invalid_request
        return _coordinator(call, error, message=NO_TRANSACTIONS if key_type == TRANSACTION else None)
    (answer,) = yield [
        FindCoordinatorRequest(
            correlation_id=call.next_id(), group_id=request.key, transactional=transactional
        )
    ]
    address = call.broker.addresses().get(answer.node)
    if answer.error is not NO_ERROR or address is None:
        error = error_code(ErrorCode.COORDINATOR_NOT_AVAILABLE if answer.error is NO_ERROR else answer.error)
        return _coordinator(call, error, message="The coordinator is not available.")
    return _coordinator(call, WireError.none, answer.node, *address)


def _coordinator(
    call: Call, error: WireError, node: int = -1, host: str = "", port: int = -1, message: str | None = None
) -> Any:
    return call.answer(error_code=error, error_message=message, node_id=node, host=host, port=port)


def init_producer_id(call: Call, request: Any) -> Handling:
    """A new producer id. An idempotent producer that lost its sequence asks for another id; its old one is
    ignored, as in Kafka (KIP-360). call: the request's context; request: kio's class."""
    half = call.version >= FIRST_WITH_EPOCH and (request.producer_id < 0) != (request.producer_epoch < 0)
    if request.transactional_id == "" or half:
        yield ()
        return _producer_id(call, WireError.invalid_request)
    if request.transactional_id is not None:
        return (yield from _transactional(call, request))
    (answer,) = yield [InitProducerIdRequest(correlation_id=call.next_id())]
    return _producer_id(call, error_code(answer.error), answer.producer_id, answer.producer_epoch)


def _transactional(call: Call, request: Any) -> Handling:
    if not call.broker.transactions:
        yield ()
        return _producer_id(call, WireError.unsupported_version)
    named = call.version >= FIRST_WITH_EPOCH
    (answer,) = yield [
        call.of(
            InitProducerIdRequest,
            request,
            transaction_timeout_ms=milliseconds(request.transaction_timeout),
            producer_id=request.producer_id if named else NO_PRODUCER,
            producer_epoch=request.producer_epoch if named else NO_PRODUCER_EPOCH,
        )
    ]
    error = answer.error
    if error is ErrorCode.PRODUCER_FENCED and call.version < FIRST_WITH_FENCED:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    return _producer_id(call, error_code(error), answer.producer_id, answer.producer_epoch)


def _producer_id(call: Call, error: WireError, producer_id: int = -1, epoch: int = -1) -> Any:
    return call.answer(error_code=error, producer_id=producer_id, producer_epoch=epoch)
