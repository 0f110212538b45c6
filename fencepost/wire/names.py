"""Kafka's names of APIs and errors on the wire, such as OffsetForLeaderEpoch and NOT_LEADER_OR_FOLLOWER.

Owns the translation between Kafka's names (traces/kafka_names/protocol.py) and kio's values. Must not know
what is spoken (versions.py), or which errors a broker may answer. kio is older than Kafka: an error that it
lacks is a value like its own, so that an answer that names one is read, changed and written with its code.
"""

from collections.abc import Mapping
from functools import cache

from kio.schema.errors import ErrorCode as WireError
from kio.schema.index import api_key_map

from fencepost.traces.kafka_names.protocol import APIS, ERRORS

_APIS: Mapping[int, str] = {api.key: api.name for api in APIS}
_ERRORS: Mapping[str, int] = {error.name: error.code for error in ERRORS}
_RETRIABLE = frozenset(error.name for error in ERRORS if error.retriable)


@cache
def api_keys() -> Mapping[str, int]:
    """The key of every API that can be read, by Kafka's name."""
    return {name: key for key, name in _APIS.items() if key in api_key_map}


def api_name(key: int) -> str:
    """Kafka's name of an API, also of one that cannot be read; its number if Kafka has none of this key."""
    return _APIS.get(key, f"API {key}")


@cache
def error_names() -> tuple[str, ...]:
    """Kafka's names of all errors, by their codes."""
    return tuple(name for name in _ERRORS if name != "NONE")


def error_named(name: str) -> WireError:
    """kio's error of Kafka's name, such as NOT_LEADER_OR_FOLLOWER. Raises KeyError."""
    return wire_error(_ERRORS[name])


def wire_error(code: int) -> WireError:
    """kio's error of a code. Raises ValueError for a code that Kafka does not have either."""
    try:
        return WireError(code)
    except ValueError:
        return _later(code)


def asks_for_retry(error: str) -> bool:
    """Whether Kafka's clients take an error of this name for a passing one."""
    return error in _RETRIABLE


@cache
def _later(code: int) -> WireError:
    """One value for each code that kio lacks: errors are compared by identity too."""
    error = next((each for each in ERRORS if each.code == code), None)
    if error is None:
        raise ValueError(f"{code} is no error of Kafka's")
    value = int.__new__(WireError, code)  # an enumeration's class makes no others: its members are complete
    value._name_, value._value_ = error.name.lower(), code
    value.retriable = error.retriable
    return value
