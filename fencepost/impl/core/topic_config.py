"""Topic configuration: Kafka's names of settings, and their effect on the options of a topic.

Owns the tables, the parsing of values, and how Kafka prints them. Must not know which request changes a
setting, or which part uses it. Names, types, defaults and the broker's names for the same settings are
Kafka's (TopicConfig, LogConfig.TopicConfigSynonyms).
"""

from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Any

import msgspec
from attrs import evolve, fields_dict, frozen

from fencepost.traces.kafka_names.inherited_settings import DYNAMIC
from fencepost.traces.plan import CENTURY_MS, GIBIBYTE, MEBIBYTE, MILLION, PEBIBYTE, UNLIMITED, TopicOptions

LARGEST = (1 << 63) - 1
"""Kafka's value for "for ever" or "never"."""
LARGEST_INTEGER = (1 << 31) - 1


class Kind(StrEnum):
    """Kafka's type of a setting."""

    BOOLEAN = "BOOLEAN"
    STRING = "STRING"
    INT = "INT"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    LIST = "LIST"


@frozen
class Setting:
    """What is known about one setting."""

    # The field of TopicOptions; empty if the setting has no effect here.
    field: str
    # Parses the value. Raises ValueError for an invalid text.
    read: Callable[[str], int | bool | str]
    # The valid values, in words.
    expected: str
    kind: Kind = Kind.LONG
    # The broker's setting that is its default, if Kafka has one with a default.
    synonym: str = ""
    # Kafka's default. For a setting without effect here, also its value unless it is changed.
    default: str = ""
    # Formats the field's value as Kafka prints it.
    write: Callable[[Any], str] = str


def _number(
    field: str,
    low: int,
    high: int,
    kind: Kind = Kind.LONG,
    synonym: str = "",
    default: str = "",
    beyond: int | None = None,
) -> Setting:
    """A setting with a number. beyond: the value for larger numbers, up to Kafka's largest; None: they are
    refused."""

    def read(text: str) -> int:
        number = int(text) if text.lstrip("-").isdecimal() else LARGEST + 1
        if beyond is not None and high < number <= LARGEST:
            return beyond
        if not low <= number <= high:
            raise ValueError(text)
        return number

    return Setting(field, read, f"a whole number from {low} to {high}", kind, synonym, default)


def _flush_messages() -> Setting:
    """Kafka uses its largest number for "never"; here this is 0."""
    setting, never = _number("flush_messages", 0, MILLION), str(LARGEST)
    return evolve(
        setting,
        read=lambda text: 0 if text == never else setting.read(text),
        synonym="log.flush.interval.messages",
        default=never,
        write=lambda value: str(value) if value else never,
    )


def _ratio(text: str) -> int:
    try:
        ratio = Decimal(text)
        within = 0 <= ratio <= 1
    except InvalidOperation:  # not a number; comparing NaN is an error
        raise ValueError(text) from None
    if not within:
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


def _one_of(*values: str, kind: Kind = Kind.STRING, synonym: str = "") -> Setting:
    """A setting without effect here, so only the value that is in effect anyway is accepted. The first value
    is the default."""

    def read(text: str) -> str:
        if text not in values:
            raise ValueError(text)
        return text

    return Setting("", read, " or ".join(values), kind, synonym, values[0])


def _free(kind: Kind, synonym: str, default: str, high: int = LARGEST) -> Setting:
    """A setting with a number and without effect here; any number is accepted."""
    return _number("", 0, high, kind, synonym, default)


SETTINGS: Mapping[str, Setting] = {
    "cleanup.policy": Setting(
        "cleanup_policy",
        _policy,
        "delete, compact or compact,delete",
        Kind.LIST,
        "log.cleanup.policy",
        "delete",
    ),
    "delete.retention.ms": _number(
        "delete_retention_ms",
        0,
        CENTURY_MS,
        synonym="log.cleaner.delete.retention.ms",
        default="86400000",
        beyond=CENTURY_MS,
    ),
    "flush.messages": _flush_messages(),
    "index.interval.bytes": _number(
        "index_interval_bytes", 0, GIBIBYTE, Kind.INT, "log.index.interval.bytes", "4096", beyond=GIBIBYTE
    ),
    "max.message.bytes": _number(
        "max_message_bytes", 1, GIBIBYTE, Kind.INT, "message.max.bytes", str(MEBIBYTE + 12)
    ),
    "min.cleanable.dirty.ratio": Setting(
        "min_cleanable_dirty_ppm",
        _ratio,
        "a number from 0 to 1",
        Kind.DOUBLE,
        "log.cleaner.min.cleanable.ratio",
        "0.5",
        lambda ppm: str(ppm / MILLION),
    ),
    "min.insync.replicas": _number("min_insync_replicas", 1, 16, Kind.INT, "min.insync.replicas", "1"),
    "retention.bytes": _number(
        "retention_bytes", UNLIMITED, PEBIBYTE, synonym="log.retention.bytes", default="-1"
    ),
    "retention.ms": _number("retention_ms", UNLIMITED, CENTURY_MS, default="604800000", beyond=CENTURY_MS),
    "segment.bytes": _number("segment_bytes", 1, GIBIBYTE, Kind.INT, "log.segment.bytes", "1073741824"),
    "segment.ms": _number("segment_ms", 1, CENTURY_MS, default="604800000", beyond=CENTURY_MS),
    "unclean.leader.election.enable": Setting(
        "unclean_leader_election",
        _truth,
        "true or false",
        Kind.BOOLEAN,
        "unclean.leader.election.enable",
        "false",
        lambda value: str(value).lower(),
    ),
}
assert {setting.field for setting in SETTINGS.values()} <= fields_dict(TopicOptions).keys()
assert SETTINGS.keys() == DYNAMIC.keys()

ACCEPTED: Mapping[str, Setting] = {
    "compression.type": _one_of("producer", synonym="compression.type"),
    "file.delete.delay.ms": _free(Kind.LONG, "log.segment.delete.delay.ms", "60000"),
    "flush.ms": _free(Kind.LONG, "", str(LARGEST)),
    "max.compaction.lag.ms": _free(Kind.LONG, "log.cleaner.max.compaction.lag.ms", str(LARGEST)),
    "message.timestamp.after.max.ms": _free(Kind.LONG, "log.message.timestamp.after.max.ms", str(LARGEST)),
    "message.timestamp.before.max.ms": _free(Kind.LONG, "log.message.timestamp.before.max.ms", str(LARGEST)),
    "message.timestamp.type": _one_of("CreateTime", synonym="log.message.timestamp.type"),
    "min.compaction.lag.ms": _free(Kind.LONG, "log.cleaner.min.compaction.lag.ms", "0"),
    "preallocate": _one_of("false", kind=Kind.BOOLEAN, synonym="log.preallocate"),
    "segment.index.bytes": _free(Kind.INT, "log.index.size.max.bytes", "10485760", LARGEST_INTEGER),
    "segment.jitter.ms": _free(Kind.LONG, "", "0"),
}
"""Kafka's settings that clients and tools name and the brokers here do not need. If a setting would change a
guarantee, only the value that is in effect anyway is accepted. The others are tuning: any value is stored and
printed."""


def planned_text(setting: Setting, planned: TopicOptions) -> str:
    """The value of a setting without an override."""
    return setting.write(getattr(planned, setting.field)) if setting.field else setting.default


def in_force(
    planned: TopicOptions, inherited: Mapping[str, str], overrides: Mapping[str, str]
) -> dict[str, str]:
    """What counts for a topic: what it has of its own, of the plan, too, and else what its broker inherited.

    Args:
        planned: the options without overrides.
        inherited: the broker's settings by Kafka's names: its own ones, and else those of all brokers.
        overrides: of the topic.
    """
    from_broker = {
        name: inherited[DYNAMIC[name]]
        for name, setting in SETTINGS.items()
        if DYNAMIC[name] in inherited and planned_text(setting, planned) == setting.default
    }
    return {**from_broker, **overrides}


def configured(planned: TopicOptions, config: Mapping[str, str]) -> tuple[TopicOptions, dict[str, str]]:
    """Apply overrides to the options of a topic.

    Args:
        planned: the options without overrides.
        config: overrides by Kafka's names. Unknown names are ignored, as in Kafka.

    Returns:
        the options with the overrides, and the refused values by name.
    """
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


def as_text(config: Mapping[str, str]) -> str:
    """As events say it: JSON, sorted, without blanks."""
    return msgspec.json.encode(config, order="sorted").decode()
