"""What a topic's configuration may say: Kafka's names, and what their values mean to the options of a topic.

Owns the table and the reading of values. Must not know who asked for the change, or who obeys it.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from attrs import evolve, fields_dict, frozen

from fencepost.traces.plan import CENTURY_MS, GIBIBYTE, MILLION, UNLIMITED, TopicOptions


@frozen
class Setting:
    """field: of TopicOptions. read: the field's value; raises ValueError for a text that is none. expected: what a value must be."""

    field: str
    read: Callable[[str], int | bool | str]
    expected: str


def _number(field: str, low: int, high: int) -> Setting:
    def read(text: str) -> int:
        number = int(text) if text.lstrip("-").isdecimal() else high + 1
        if not low <= number <= high:
            raise ValueError(text)
        return number

    return Setting(field, read, f"a whole number from {low} to {high}")


def _ratio(text: str) -> int:
    try:
        ratio = Decimal(text)
    except InvalidOperation:
        raise ValueError(text) from None
    if not 0 <= ratio <= 1:  # False for what is not a number, too
        raise ValueError(text)
    return int(ratio * MILLION)


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


def _policy(text: str) -> str:
    policy = ",".join(sorted(part.strip() for part in text.split(",")))
    if policy not in ("delete", "compact", "compact,delete"):
        raise ValueError(text)
    return policy


SETTINGS: Mapping[str, Setting] = {
    "cleanup.policy": Setting("cleanup_policy", _policy, "delete, compact or compact,delete"),
    "delete.retention.ms": _number("delete_retention_ms", 0, CENTURY_MS),
    "flush.messages": _number("flush_messages", 0, MILLION),
    "min.cleanable.dirty.ratio": Setting("min_cleanable_dirty_ppm", _ratio, "a number from 0 to 1"),
    "min.insync.replicas": _number("min_insync_replicas", 1, 16),
    "retention.bytes": _number("retention_bytes", UNLIMITED, GIBIBYTE),
    "retention.ms": _number("retention_ms", UNLIMITED, CENTURY_MS),
    "segment.bytes": _number("segment_bytes", 1, GIBIBYTE),
    "segment.ms": _number("segment_ms", 1, CENTURY_MS),
    "unclean.leader.election.enable": Setting("unclean_leader_election", _truth, "true or false"),
}
assert {setting.field for setting in SETTINGS.values()} <= fields_dict(TopicOptions).keys()


def configured(planned: TopicOptions, config: Mapping[str, str]) -> tuple[TopicOptions, dict[str, str]]:
    """The options with these overrides, and what was refused of them. An unknown name is ignored, as Kafka does."""
    values: dict[str, Any] = {}
    refused: dict[str, str] = {}
    for name, text in sorted(config.items()):
        setting = SETTINGS.get(name)
        if setting is None:
            continue
        try:
            values[setting.field] = setting.read(text)
        except ValueError:
            refused[name] = text
    return evolve(planned, **values), refused
