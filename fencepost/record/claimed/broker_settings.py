"""What brokers were configured to do, as claims: `server.properties`, or one setting by name.

Owns the settings that allow something, their meaning, and the reading of the file. Must not know judges. A
setting that is not there claims nothing, whatever Kafka's default for it is.
"""

from pathlib import Path
from typing import Any

from attrs import frozen

from fencepost.traces.errors import FencepostError, unknown_name

LARGEST_FILE = 1 << 20
"""Bytes. Kafka's own file has seven thousand."""
MINUTES, HOURS = 60_000, 3_600_000
CLEANUP, UNCLEAN = "log.cleanup.policy", "unclean.leader.election.enable"
RETENTION = {"log.retention.ms": 1, "log.retention.minutes": MINUTES, "log.retention.hours": HOURS}
"""Milliseconds of each unit. The first that is set counts."""
SIZE = "log.retention.bytes"
DURATIONS = {
    "offsets.retention.minutes": ("offsets_expiry_ms", MINUTES),
    "transaction.max.timeout.ms": ("transaction_timeout_ms", 1),
    "producer.id.expiration.ms": ("producer_expiry_ms", 1),
    "transactional.id.expiration.ms": ("producer_expiry_ms", 1),
}
"""Name of the claim and milliseconds of the unit. Before Kafka 3.4 a producer expires with transactional ids;
of two settings the shorter one counts."""
NAMES = (*DURATIONS, *RETENTION, SIZE, CLEANUP, UNCLEAN)


@frozen
class BrokerClaims:
    """What settings of brokers claim."""

    # Fields of Claims by name.
    fields: dict[str, Any]
    # Settings of every topic that has none of its own, by Kafka's name for topics.
    topics: dict[str, str]


def read_settings(path: Path) -> dict[str, str]:
    """The settings of a file of properties that allow something; its other settings are left out.

    Args:
        path: `server.properties`.

    Raises:
        FencepostError: if it cannot be read.
    """
    where = f"--broker-config {path}"
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise FencepostError(
            expected="a readable file of properties", seen=error.strerror or str(error), where=where
        ) from None
    if len(data) > LARGEST_FILE:
        raise FencepostError(expected=f"at most {LARGEST_FILE:,} bytes", seen="more", where=where)
    text = data.decode("latin-1").replace("\\\r\n", "").replace("\\\n", "")  # Java's encoding of properties
    lines = (line.strip() for line in text.splitlines())
    stated = dict(_pair(line) for line in lines if line and line[0] not in "#!")
    return {name: stated[name] for name in NAMES if name in stated}


def _pair(line: str) -> tuple[str, str]:
    """Java's properties part at the first `=`, `:` or white space."""
    end = next((at for at, letter in enumerate(line) if letter in "=: \t"), len(line))
    rest = line[end:].strip()
    return line[:end], (rest[1:] if rest[:1] in ("=", ":") else rest).strip()


def named_setting(text: str) -> tuple[str, str]:
    """Name and value of `--broker-setting`.

    Args:
        text: of the option.

    Raises:
        FencepostError: for a text of another form, or another setting.
    """
    where = "--broker-setting"
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise FencepostError(expected="NAME=VALUE", seen=repr(text), where=where)
    check_name(name, where)
    return name, value


def check_name(name: str, where: str) -> None:
    """Refuse a setting that allows nothing.

    Args:
        name: of the setting.
        where: the place, for the message.

    Raises:
        FencepostError: for such a setting.
    """
    if name not in NAMES:
        raise FencepostError(
            expected=f"a setting of brokers out of {', '.join(NAMES)}",
            seen=unknown_name(name, NAMES),
            where=where,
        )


def broker_claims(settings: dict[str, str], where: str) -> BrokerClaims:
    """What settings claim.

    Args:
        settings: value by name, of NAMES.
        where: the place, for the message.

    Raises:
        FencepostError: for a number that is none.
    """
    fields: dict[str, int] = {}
    for name, (claim, unit) in DURATIONS.items():
        if name in settings:
            value = _integer(name, settings[name], where) * unit
            fields[claim] = min(value, fields.get(claim, value))
    topics = {}
    for name, unit in RETENTION.items():
        if name in settings:
            value = _integer(name, settings[name], where)
            topics["retention.ms"] = str(value if value < 0 else value * unit)
            break
    for name, of_topic in ((SIZE, "retention.bytes"), (CLEANUP, "cleanup.policy"), (UNCLEAN, UNCLEAN)):
        if name in settings:
            topics[of_topic] = settings[name]
    return BrokerClaims(fields, topics)


def _integer(name: str, value: str, where: str) -> int:
    if not value.removeprefix("-").isdecimal():
        raise FencepostError(expected=f"{name} as an integer", seen=repr(value), where=where)
    return int(value)
