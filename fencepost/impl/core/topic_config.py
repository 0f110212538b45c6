"""What a topic's configuration may say: Kafka's names, and what their values mean to the options of a topic.

Owns the tables, the reading of values, and how Kafka prints them. Must not know who asked for the change, or
who obeys it. Names, types, defaults and the brokers' names for the same setting are Kafka's (TopicConfig,
LogConfig.TopicConfigSynonyms).
"""

from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Any

from attrs import evolve, fields_dict, frozen

from fencepost.traces.plan import CENTURY_MS, GIBIBYTE, MILLION, PEBIBYTE, UNLIMITED, TopicOptions

LARGEST = (1 << 63) - 1
"""Kafka's way to say for ever, or never."""
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
    """What is known of one name."""

    field: str
    """Of TopicOptions; empty for a setting without meaning here."""
    read: Callable[[str], int | bool | str]
    """The field's value. Raises ValueError for a text that is none."""
    expected: str
    """What a value must be, in words."""
    kind: Kind = Kind.LONG
    synonym: str = ""
    """The brokers' setting that is its default, where Kafka has one with a default of its own."""
    default: str = ""
    """Kafka's default; of a setting without meaning here also its value where nobody says another."""
    write: Callable[[Any], str] = str
    """The text of a field's value, as Kafka prints it."""


def _number(
    field: str,
    low: int,
    high: int,
    kind: Kind = Kind.LONG,
    synonym: str = "",
    default: str = "",
    beyond: int | None = None,
) -> Setting:
    """beyond: what a larger number is taken for, up to Kafka's largest; None: it is refused."""

    def read(text: str) -> int:
        number = int(text) if text.lstrip("-").isdecimal() else LARGEST + 1
        if beyond is not None and high < number <= LARGEST:
            return beyond
        if not low <= number <= high:
            raise ValueError(text)
        return number

    return Setting(field, read, f"a whole number from {low} to {high}", kind, synonym, default)


def _flush_messages() -> Setting:
    """Kafka says its largest number for what is 0 here: never."""
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
    except InvalidOperation:  # no number, or one that is called not-a-number: to compare that is an error
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
    """Without meaning here, so that only what is the case anyway is taken. The first value is the default."""

    def read(text: str) -> str:
        if text not in values:
            raise ValueError(text)
        return text

    return Setting("", read, " or ".join(values), kind, synonym, values[0])


def _free(kind: Kind, synonym: str, default: str, high: int = LARGEST) -> Setting:
    """A number without meaning here; any is taken."""
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

ACCEPTED: Mapping[str, Setting] = {
    "compression.type": _one_of("producer", synonym="compression.type"),
    "file.delete.delay.ms": _free(Kind.LONG, "log.segment.delete.delay.ms", "60000"),
    "flush.ms": _free(Kind.LONG, "", str(LARGEST)),
    "index.interval.bytes": _free(Kind.INT, "log.index.interval.bytes", "4096", LARGEST_INTEGER),
    "max.compaction.lag.ms": _free(Kind.LONG, "log.cleaner.max.compaction.lag.ms", str(LARGEST)),
    "max.message.bytes": _one_of("1048588", kind=Kind.INT, synonym="message.max.bytes"),
    "message.timestamp.after.max.ms": _free(Kind.LONG, "log.message.timestamp.after.max.ms", str(LARGEST)),
    "message.timestamp.before.max.ms": _free(Kind.LONG, "log.message.timestamp.before.max.ms", str(LARGEST)),
    "message.timestamp.type": _one_of("CreateTime", synonym="log.message.timestamp.type"),
    "min.compaction.lag.ms": _free(Kind.LONG, "log.cleaner.min.compaction.lag.ms", "0"),
    "preallocate": _one_of("false", kind=Kind.BOOLEAN, synonym="log.preallocate"),
    "segment.index.bytes": _free(Kind.INT, "log.index.size.max.bytes", "10485760", LARGEST_INTEGER),
    "segment.jitter.ms": _free(Kind.LONG, "", "0"),
}
"""Settings of Kafka's that clients and tools name and brokers here do not need. One that would change what a
client is promised is taken only with the value that is the case anyway; the others are tuning, and any value
of theirs is kept and printed."""


def configured(planned: TopicOptions, config: Mapping[str, str]) -> tuple[TopicOptions, dict[str, str]]:
    """The options with these overrides, and what was refused of them. An unknown name is ignored, as Kafka
    does."""
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
