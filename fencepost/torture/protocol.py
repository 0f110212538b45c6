"""The drivers' protocol: lines, their bounds, and what an error of an append proves.
docs/reference/drivers.md is its text.

Owns the bytes of lines and the rule of outcomes. Must not know processes (driver_process.py), or libraries.
"""

import base64
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from attrs import define, field, frozen

from fencepost.traces.errors import FencepostError
from fencepost.traces.operations import Outcome

PROTOCOL = 1
MOST_LINE = 1 << 20
"""Bytes of a line with its newline: a poll's answer at its bound, in base64, is 700,000."""
MOST_UNDER_WAY = 20_000
"""Commands without an answer that a driver takes."""
MOST_VALUE = 500_000
"""Bytes of a value that is appended."""

PROVES_FAILURE = frozenset({10, 17, 21, 29, 43, 87})
"""Kafka's errors that a broker gives before it appends anything, and after which no client tries again:
MESSAGE_TOO_LARGE, INVALID_TOPIC_EXCEPTION, INVALID_REQUIRED_ACKS, TOPIC_AUTHORIZATION_FAILED,
UNSUPPORTED_FOR_MESSAGE_FORMAT, INVALID_RECORD. Errors that ask for another attempt prove nothing, also with
`retries` 0: librdkafka does not count an attempt that a broker refused (NOT_ENOUGH_REPLICAS), and an earlier
one may have been written."""


class DriverError(FencepostError):
    """A driver that does not keep the protocol, or has ended."""


class DisturbedError(DriverError):
    """A driver that a signal from outside has ended: the run says nothing of the library."""


@frozen(kw_only=True)
class Ready:
    """The first line of a driver: what it can do."""

    # Version of the drivers' protocol.
    protocol: int
    # Name of the driver, and of the library with its version.
    driver: str
    library: str
    version: str
    # The language's runtime and its version.
    runtime: str
    # Commands that it knows.
    commands: tuple[str, ...]
    # Roles of clients: producer, consumer, admin.
    roles: tuple[str, ...]
    # What the library has.
    codecs: tuple[str, ...] = ()
    acks: tuple[int, ...] = ()
    idempotence: bool = False
    transactions: bool = False
    assignors: tuple[str, ...] = ()
    commit_modes: tuple[str, ...] = ()
    # Names of its settings.
    config: tuple[str, ...] = ()


@define(eq=False)
class Lines:
    """Bytes into lines, with a bound."""

    _rest: bytearray = field(factory=bytearray)

    def feed(self, chunk: bytes) -> Iterator[dict[str, Any]]:
        """The objects that are complete now. Raises DriverError for what is none."""
        self._rest += chunk
        while (end := self._rest.find(b"\n")) >= 0:
            line = bytes(self._rest[:end])
            del self._rest[: end + 1]
            yield parsed(line)
        if len(self._rest) >= MOST_LINE:
            raise DriverError(
                expected=f"lines of at most {MOST_LINE:,} bytes",
                seen="a longer one",
                where="a driver's output",
            )


def parsed(line: bytes) -> dict[str, Any]:
    """One event. Raises DriverError."""
    try:
        event = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError) as error:
        event, why = None, str(error)
    else:
        why = f"no event: {line[:80]!r}"
    if type(event) is not dict or type(event.get("event")) is not str:
        raise DriverError(
            expected="one JSON object with an event in each line",
            seen=why if event is not None else f"{line[:80]!r}",
            where="a driver's output",
            hint="standard output carries nothing else; logs go to standard error",
        )
    return event


def ready_of(event: Mapping[str, Any]) -> Ready:
    """The first line. Raises DriverError."""
    try:
        ready = msgspec.convert(event, Ready)
    except msgspec.ValidationError as error:
        raise DriverError(
            expected="what a driver can do", seen=str(error), where="a driver's first line"
        ) from None
    if event["event"] != "ready" or ready.protocol != PROTOCOL:
        raise DriverError(
            expected=f"the event ready of protocol {PROTOCOL}",
            seen=f"{event['event']} of protocol {ready.protocol}",
            where="a driver's first line",
        )
    return ready


def encoded(value: bytes | None) -> str | None:
    """Bytes as they are on a line."""
    return None if value is None else base64.b64encode(value).decode()


def decoded(value: str | None) -> bytes | None:
    """Decode base64. Raises DriverError."""
    try:
        return None if value is None else base64.b64decode(value, validate=True)
    except (ValueError, TypeError):
        raise DriverError(expected="base64", seen=repr(value)[:80], where="a driver's output") from None


def outcome_of_append(answer: Mapping[str, Any] | None, *, retries: int | None) -> Outcome:
    """What is known of an append. answer: its `done` or `refused`, None if there was none. retries: as the
    producer was opened; None: the library's own default."""
    if answer is None:
        return Outcome.UNKNOWN
    if answer["event"] == "refused":
        return Outcome.FAIL
    if answer.get("ok"):
        return Outcome.OK
    error = answer.get("error")
    code = error.get("code") if isinstance(error, dict) else None
    return Outcome.FAIL if retries == 0 and code in PROVES_FAILURE else Outcome.UNKNOWN


def error_in_words(answer: Mapping[str, Any] | None) -> str:
    """What went wrong, as the library says it; empty if nothing did."""
    if answer is None:
        return "no answer"
    if answer["event"] == "refused":
        return f"refused: expected {answer.get('expected')}, saw {answer.get('seen')}"
    error = answer.get("error")
    if answer.get("ok") or not isinstance(error, dict):
        return "" if answer.get("ok") else "failed without an error"
    code = "" if error.get("code") is None else f" ({error['code']})"
    return f"{error.get('name')}{code}: {str(error.get('text'))[:200]}"
