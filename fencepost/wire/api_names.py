"""Kafka's names of its APIs, such as Produce and OffsetForLeaderEpoch, and whether an error asks for a retry.

Owns the translation to and from kio's words. Must not know what is spoken (versions.py).
"""

from collections.abc import Mapping
from functools import cache

from kio.schema.index import api_key_map

from fencepost.wire.error_answers import error_named


@cache
def api_keys() -> Mapping[str, int]:
    """The key of every API that kio knows, by Kafka's name."""
    return {"".join(word.capitalize() for word in name.split("_")): key for key, name in api_key_map.items()}


@cache
def _names() -> Mapping[int, str]:
    return {key: name for name, key in api_keys().items()}


def api_name(key: int) -> str:
    """Kafka's name of an API; its number for one that kio does not know."""
    return _names().get(key, f"API {key}")


def asks_for_retry(error: str) -> bool:
    """Whether Kafka's clients take an error of this name for a passing one."""
    return bool(error_named(error).retriable)
