"""SaslHandshake and SaslAuthenticate (KIP-43, KIP-152)."""

from typing import Any

from kio.schema.errors import ErrorCode

from fencepost.wire.handling import Call, CloseConnection, Handling
from fencepost.wire.sasl import MECHANISMS


def sasl_handshake(call: Call, request: Any) -> Handling:
    """The client chooses a mechanism. After version 0 its tokens come without headers. call: the request's
    context; request: kio's class."""
    yield ()
    authentication = call.authentication
    if authentication.users is None or authentication.principal:
        error = ErrorCode.illegal_sasl_state
    elif not authentication.choose(request.mechanism, raw=call.version == 0):
        error = ErrorCode.unsupported_sasl_mechanism
    else:
        error = ErrorCode.none
    return call.answer(error_code=error, mechanisms=MECHANISMS)


def sasl_authenticate(call: Call, request: Any) -> Handling:
    """The client logs in. call: the request's context; request: kio's class."""
    yield ()
    authentication = call.authentication
    if authentication.users is None:
        return call.answer(
            error_code=ErrorCode.illegal_sasl_state,
            error_message="SaslAuthenticate on a listener that asks nobody who he is",
        )
    if not authentication.mechanism or authentication.principal:
        raise CloseConnection("SaslAuthenticate without a handshake before it")
    known = authentication.authenticate(request.auth_bytes)
    return call.answer(
        error_code=ErrorCode.none if known else ErrorCode.sasl_authentication_failed,
        error_message=None if known else "Authentication failed: Invalid username or password",
    )
