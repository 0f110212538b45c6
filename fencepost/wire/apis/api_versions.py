"""ApiVersions (KIP-35, KIP-511): what is spoken here."""

import re
from collections.abc import Mapping
from typing import Any

from kio.schema.api_versions.v0.response import ApiVersion as FirstApiVersion
from kio.schema.api_versions.v0.response import ApiVersionsResponse as FirstApiVersionsResponse
from kio.schema.errors import ErrorCode

from fencepost.wire.handling import Call, Handling

SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
"""Names and versions of client software (KIP-511)."""
FIRST_WITH_SOFTWARE = 3
FEATURE, SECOND_VERSION = "transaction.version", 2
"""What clients look for before they use the requests of KIP-890. A cluster of the first version announces no
feature, as one with ZooKeeper does."""


def api_versions(call: Call, request: Any) -> Handling:
    """The table of versions; INVALID_REQUEST with an empty one if the client's name is invalid. call: the
    request's context; request: kio's class."""
    yield ()
    error, apis = ErrorCode.none, call.apis
    if call.version >= FIRST_WITH_SOFTWARE:
        names = (request.client_software_name, request.client_software_version)
        if not all(SOFTWARE.fullmatch(name) for name in names):
            error, apis = ErrorCode.invalid_request, {}
    finalized = call.broker.transactions and call.broker.transaction_version >= SECOND_VERSION and apis
    level = {"min_version_level": SECOND_VERSION, "max_version_level": SECOND_VERSION}
    features = (
        {"finalized_features_epoch": 0, "finalized_features": [{"name": FEATURE, **level}]}
        if finalized and call.version >= FIRST_WITH_SOFTWARE
        else {}
    )
    return call.answer(
        **features,
        error_code=error,
        api_keys=[
            {"api_key": api.key, "min_version": api.lowest, "max_version": api.highest}
            for _, api in sorted(apis.items())
        ],
    )


def unsupported(apis: Mapping[int, Any]) -> Any:
    """The answer to an ApiVersions request of a version that is unknown here: in version 0, with the versions
    of ApiVersions itself, so that the client asks again in one of them."""
    own = apis[FirstApiVersionsResponse.__api_key__]
    return FirstApiVersionsResponse(
        error_code=ErrorCode.unsupported_version,
        api_keys=(FirstApiVersion(api_key=own.key, min_version=own.lowest, max_version=own.highest),),
    )
