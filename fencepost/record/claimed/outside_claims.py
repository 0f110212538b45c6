"""Claims from outside: what a caller knows about a trace, in one form for the command line and Python.

Owns the object of claims, what topic settings allow, and how all that replaces the claims of a trace. Must
not know how a claim is used.

A field in the file replaces that field of the trace's claims. Options and topic settings only allow more.
"""

import json
from collections.abc import Collection, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import attrs
import msgspec
from attrs import evolve, frozen

from fencepost.record.claimed.broker_settings import broker_claims, check_name, named_setting, read_settings
from fencepost.record.claimed.profiles import check_profile
from fencepost.traces.canonical_rows import check_claims
from fencepost.traces.digest import digest_of
from fencepost.traces.errors import FencepostError, unknown_name
from fencepost.traces.trace import Claims, LossRange, Trace

LARGEST_FILE = 1 << 20
"""Bytes. Ten thousand ranges of loss take less."""
LAST_OFFSET = 2**63 - 1
MOST_TOPICS_LISTED = 10
"""How many topics an error lists: they fit one line."""
EVERY = "*"
"""Instead of a topic's name: every topic."""
CLEANUP, UNCLEAN = "cleanup.policy", "unclean.leader.election.enable"
LIMITS = ("retention.ms", "retention.bytes")
SETTINGS = (CLEANUP, *LIMITS, UNCLEAN)
"""Kafka's topic settings that allow something in a log; no other one changes a verdict."""

CONFIGURED = ("topics", "broker")
"""Fields of the file that are settings, not claims."""

Settings = dict[str, dict[str, str]]
"""The settings of each topic by name: value by name of the setting."""


@frozen(kw_only=True)
class OutsideClaims:
    """Claims that the caller states."""

    # Fields of Claims by name, as JSON values; each replaces the trace's.
    fields: dict[str, Any] = {}  # noqa: RUF008 (frozen, never written)
    # Settings of topics, EVERY for all topics.
    topics: Settings = {}  # noqa: RUF008 (frozen, never written)
    # Records may be in a log twice: producers retried without idempotence.
    allow_duplicates: bool = False
    # A record that only its leader acknowledged may be lost.
    acks_1_may_lose: bool = False
    # Topics that options name. One that no trace has is a mistake: its setting would change nothing.
    named: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return self != OutsideClaims()


def outside_claims(
    *,
    claims_file: Path | Mapping[str, Any] | None = None,
    allow_duplicates: bool = False,
    acks_1_may_lose: bool = False,
    topic_settings: tuple[str, ...] = (),
    broker_config: Path | None = None,
    broker_settings: tuple[str, ...] = (),
) -> OutsideClaims:
    """The claims that the options state.

    Args:
        claims_file: of `--claims`, or the object that such a file holds.
        allow_duplicates: of `--allow-duplicates`.
        acks_1_may_lose: of `--acks-1-may-lose`.
        topic_settings: of `--topic-setting`.
        broker_config: of `--broker-config`.
        broker_settings: of `--broker-setting`.

    Raises:
        FencepostError: for a file or a setting that is not understood.
    """
    fields = {} if claims_file is None else _stated(claims_file)
    brokers = {} if broker_config is None else read_settings(broker_config)
    brokers |= fields.pop("broker", {})
    brokers |= dict(map(named_setting, broker_settings))
    where = "the settings of brokers"
    of_brokers = broker_claims(brokers, where)
    check_claims(msgspec.convert(of_brokers.fields, Claims), where)
    fields = {**of_brokers.fields, **fields}
    topics = fields.pop("topics", {})
    merged: Settings = {topic: dict(settings) for topic, settings in topics.items()}
    of_all = {
        name: _checked(name, text, "the settings of brokers") for name, text in of_brokers.topics.items()
    }
    if of_all:
        merged[EVERY] = {**of_all, **merged.get(EVERY, {})}
    named = set()
    for text in topic_settings:
        topic, name, value = _setting(text)
        merged.setdefault(topic, {})[name] = value
        named.add(topic)
    return OutsideClaims(
        fields=fields,
        topics=merged,
        allow_duplicates=allow_duplicates,
        acks_1_may_lose=acks_1_may_lose,
        named=frozenset(named - {EVERY}),
    )


def topics_of(trace: Trace) -> frozenset[str]:
    """The topics that operations of the trace name."""
    return frozenset(topic for topic, _ in _logs(trace))


def check_named(outside: OutsideClaims, found: Collection[str]) -> None:
    """Refuse options about topics that no trace has.

    Args:
        outside: the claims of the caller.
        found: topics of all traces.

    Raises:
        FencepostError: for such a topic.
    """
    for topic in sorted(outside.named - set(found)):
        listed = ", ".join(sorted(found)[:MOST_TOPICS_LISTED]) or "none"
        raise FencepostError(
            expected=f"a topic of the traces ({listed}), or {EVERY} for all",
            seen=unknown_name(topic, found),
            where="the setting of a topic",
        )


def claimed(
    trace: Trace, claims: Path | Mapping[str, Any] | None = None, *, broker_config: Path | None = None
) -> Trace:
    """The trace with what the caller knows, to be judged with `checkers.judges.judge`.

    Args:
        trace: the trace.
        claims: the object that `fencepost check --claims` reads, or its file (docs/reference/claims.md).
        broker_config: the `server.properties` of its brokers.

    Returns:
        the trace with other claims, and the digest that it has with them.

    Raises:
        FencepostError: for a claim, a setting or a file that is not understood.
    """
    stated = under_claims(trace, outside_claims(claims_file=claims, broker_config=broker_config))
    return evolve(stated, digest=digest_of(stated)) if trace.digest else stated


def under_claims(trace: Trace, outside: OutsideClaims | None) -> Trace:
    """The trace with the outside claims applied; unchanged for None."""
    if not outside:
        return trace
    stated = msgspec.convert({name: outside.fields[name] for name in outside.fields}, Claims)
    claims = evolve(trace.claims, **{name: getattr(stated, name) for name in outside.fields})
    claims = evolve(
        claims,
        duplicates=claims.duplicates or outside.allow_duplicates,
        acks_1_may_lose=claims.acks_1_may_lose or outside.acks_1_may_lose,
    )
    return evolve(trace, claims=_configured(claims, trace, outside.topics))


def _configured(claims: Claims, trace: Trace, topics: Settings) -> Claims:
    """The claims with what the settings of the trace's topics allow."""
    logs = sorted(_logs(trace))
    compacted, loss, retention = set(claims.compacted), list(claims.loss), claims.retention
    for topic in sorted({topic for topic, _ in logs}):
        settings = {**topics.get(EVERY, {}), **topics.get(topic, {})}
        policies = settings.get(CLEANUP, "delete").split(",")
        if "compact" in policies:
            compacted.add(topic)
        limited = any(settings.get(name, "-1") != "-1" for name in LIMITS)
        retention |= "delete" in policies and limited
        if settings.get(UNCLEAN) == "true":
            loss += [
                LossRange(
                    topic=topic, partition=partition, start=0, end=LAST_OFFSET, reason=f"{UNCLEAN}=true"
                )
                for name, partition in logs
                if name == topic
            ]
    changed = evolve(claims, compacted=tuple(sorted(compacted)), loss=tuple(loss), retention=retention)
    weaker = (changed.compacted, changed.loss, changed.retention) != (
        claims.compacted,
        claims.loss,
        claims.retention,
    )
    return evolve(changed, dense=False) if weaker else changed


def _logs(trace: Trace) -> set[tuple[str, int]]:
    """(topic, partition) of every log that operations name."""
    named = {(o.topic, o.partition) for o in trace.operations}
    named |= {(record.topic, record.partition) for o in trace.operations for record in o.records}
    named |= {(place.topic, place.partition) for o in trace.operations for place in o.positions}
    return {(topic, partition) for topic, partition in named if topic is not None and partition is not None}


def _stated(claims: Path | Mapping[str, Any]) -> dict[str, Any]:
    """The checked fields of a claims file, or of the object in it. Raises FencepostError."""
    if isinstance(claims, Path):
        return _checked_fields(_read(claims), f"--claims {claims}")
    return _checked_fields(deepcopy(dict(claims)), "the claims")


def _read(path: Path) -> dict[str, Any]:
    """The object in a claims file. Raises FencepostError."""
    where = f"--claims {path}"
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise FencepostError(
            expected="a readable JSON file", seen=error.strerror or str(error), where=where
        ) from None
    if len(data) > LARGEST_FILE:
        raise FencepostError(expected=f"at most {LARGEST_FILE:,} bytes", seen="more", where=where)
    try:
        stated = msgspec.json.decode(data)
        json.loads(data, object_pairs_hook=_each_once)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise FencepostError(expected="a JSON object of claims", seen=str(error), where=where) from None
    if not isinstance(stated, dict):
        raise FencepostError(
            expected="a JSON object of claims", seen=f"a value of type {type(stated).__name__}", where=where
        )
    return stated


def _checked_fields(stated: dict[str, Any], where: str) -> dict[str, Any]:
    """The fields, with settings as Kafka writes them. Raises FencepostError."""
    known = [*(one.name for one in attrs.fields(Claims)), *CONFIGURED]
    unknown = sorted(set(stated) - set(known))
    if unknown:
        raise FencepostError(
            expected=f"claims out of {', '.join(known)}", seen=unknown_name(unknown[0], known), where=where
        )
    broker = stated.get("broker", {})
    if not isinstance(broker, dict):
        raise FencepostError(expected="settings of brokers as an object", seen=repr(broker)[:80], where=where)
    for name, value in broker.items():
        check_name(name, where)
        broker[name] = _text(value)
    topics = stated.get("topics", {})
    if not isinstance(topics, dict) or not all(isinstance(one, dict) for one in topics.values()):
        raise FencepostError(
            expected="topics as an object of objects",
            seen=msgspec.json.encode(topics).decode()[:80],
            where=where,
        )
    for topic, settings in topics.items():
        for name, value in settings.items():
            settings[name] = _checked(name, _text(value), f"{where}, topic {topic}")
    try:
        claims = msgspec.convert({name: stated[name] for name in stated if name not in CONFIGURED}, Claims)
    except msgspec.ValidationError as error:
        raise FencepostError(
            expected="claims of the documented types", seen=str(error), where=where
        ) from None
    check_profile(stated.get("check"))
    _check_loss(stated.get("loss", []), where)
    check_claims(claims, where)
    return stated


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; of two values of one name nobody knows which was meant."""
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError(f"a name twice among {', '.join(name for name, _ in pairs)[:80]}")
    return made


def _check_loss(loss: list[dict[str, Any]], where: str) -> None:
    known = {field.name for field in attrs.fields(LossRange)}
    unknown = sorted({name for one in loss for name in one} - known)
    if unknown:
        raise FencepostError(
            expected=f"ranges of loss with {', '.join(sorted(known))}",
            seen=unknown_name(unknown[0], known),
            where=where,
        )


def _text(value: Any) -> str:
    """A value of a setting as Kafka writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _setting(text: str) -> tuple[str, str, str]:
    where = "--topic-setting"
    topic, colon, rest = text.partition(":")
    name, equals, value = rest.partition("=")
    if not (topic and colon and name and equals and value):
        raise FencepostError(expected="TOPIC:NAME=VALUE", seen=repr(text), where=where)
    return topic, name, _checked(name, value, where)


def _checked(name: str, value: str, where: str) -> str:
    if name not in SETTINGS:
        raise FencepostError(
            expected=f"a topic setting out of {', '.join(SETTINGS)}",
            seen=unknown_name(name, SETTINGS),
            where=where,
        )
    if name == CLEANUP:
        policies = [policy.strip() for policy in value.split(",")]
        if not set(policies) <= {"compact", "delete"}:
            raise FencepostError(
                expected=f"{CLEANUP} as compact, delete or both", seen=repr(value), where=where
            )
        return ",".join(policies)
    if name == UNCLEAN and value not in ("true", "false"):
        raise FencepostError(expected=f"{UNCLEAN} as true or false", seen=repr(value), where=where)
    if name in LIMITS and not value.removeprefix("-").isdecimal():
        raise FencepostError(expected=f"{name} as an integer", seen=repr(value), where=where)
    return value
