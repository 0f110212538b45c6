"""What Apache Kafka answered, and how an answer compares with it.

Owns the recorded facts (recorded.json), the departures of our own brokers (departures.json) and the
comparison. Must not know how cases are asked. Facts of a case may differ from release to release; a broker is
compared with the release whose advertised versions are nearest to its own, unless the caller names one.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
from attrs import frozen

from fencepost.conformance.case import Facts
from fencepost.conformance.runner import Result
from fencepost.report.event_words import printable
from fencepost.traces.errors import FencepostError

RECORDED, DEPARTURES = "recorded.json", "departures.json"
LONGEST = 4_000
"""Characters of one side of a difference."""
LARGEST_FILE = 16 << 20
"""Bytes of a file of departures or records: ours have half a megabyte."""


class Recorded(msgspec.Struct, frozen=True):
    """One release."""

    date: str
    brokers: int
    # Versions that it advertises, by API key.
    ranges: dict[int, tuple[int, int]]
    # Name -> facts; a case that was skipped is not there.
    cases: dict[str, Any]


class Status(StrEnum):
    """How an answer compares."""

    EQUAL = "equal"
    """As the release answered."""
    AS_ANOTHER = "as another release"
    """Not as the release it is compared with, but as another recorded one."""
    DEPARTS = "departs"
    """Different, and the table of departures says why."""
    DIFFERS = "differs"
    """Different from every recorded release."""
    DIED = "died"
    """A broker stopped answering while the case ran."""
    SKIPPED = "skipped"
    """The broker does not advertise the version, or the cluster is too small."""
    NO_RECORD = "no record"
    """The release was not asked."""


@frozen(kw_only=True)
class Compared:
    """A case, its answer and what was expected."""

    result: Result
    status: Status
    expected: Facts = None
    # Why the facts differ or the case was skipped; or the other release.
    reason: str = ""


@cache
def recorded() -> Mapping[str, Recorded]:
    """The recorded facts by version."""
    data = files("fencepost.conformance").joinpath(RECORDED).read_bytes()
    return msgspec.json.decode(data, type=dict[str, Recorded])


@cache
def departures_of_ours() -> Mapping[str, str]:
    """Case -> why fencepost's own brokers answer differently."""
    return departures_in(files("fencepost.conformance").joinpath(DEPARTURES).read_bytes(), DEPARTURES)


def departures_in(data: bytes, where: str) -> Mapping[str, str]:
    """Case -> reason, from a JSON object. data: the object; where: names the file in errors. A name that ends
    with * matches all that begin so."""
    try:
        return msgspec.json.decode(data, type=dict[str, str])
    except msgspec.MsgspecError as error:
        raise FencepostError(
            expected="a JSON object of case names and reasons", seen=str(error), where=where
        ) from None


def read_departures(path: Path) -> Mapping[str, str]:
    """Those of a file. Raises FencepostError."""
    if path.stat().st_size > LARGEST_FILE:
        raise FencepostError(
            expected=f"at most {LARGEST_FILE} bytes", seen=f"{path.stat().st_size}", where=str(path)
        )
    return departures_in(path.read_bytes(), str(path))


def nearest(ranges: Mapping[int, tuple[int, int]]) -> str:
    """The release that advertises most like this."""

    def distance(version: str) -> int:
        theirs = recorded()[version].ranges
        return sum(ranges.get(key) != theirs.get(key) for key in set(ranges) | set(theirs)) + sum(
            abs(bound - other)
            for key in set(ranges) & set(theirs)
            for bound, other in zip(ranges[key], theirs[key], strict=True)
        )

    return min(sorted(recorded()), key=distance)


def named(version: str) -> str:
    """The recorded release of this name, or of this beginning: 4 for 4.4.0. Raises FencepostError."""
    found = [each for each in sorted(recorded()) if each == version or each.startswith(f"{version}.")]
    if not found:
        raise FencepostError(
            expected=f"one of {', '.join(sorted(recorded()))}", seen=version, where="the recorded answers"
        )
    return found[-1]


def reason_for(case: str, departures: Mapping[str, str]) -> str:
    """Why this case may differ; empty if it may not."""
    if case in departures:
        return departures[case]
    fitting = [name for name in departures if name.endswith("*") and case.startswith(name[:-1])]
    return departures[max(fitting, key=len)] if fitting else ""


def compare(results: Sequence[Result], version: str, departures: Mapping[str, str]) -> list[Compared]:
    """Each with its status. departures: case -> reason."""
    return [_compared(result, version, departures) for result in results]


def _compared(result: Result, version: str, departures: Mapping[str, str]) -> Compared:
    name, known = result.case.name, recorded()
    if result.died:
        return Compared(result=result, status=Status.DIED, reason=result.died)
    if result.skipped:
        return Compared(result=result, status=Status.SKIPPED, reason=result.skipped)
    if name not in known[version].cases:
        return Compared(result=result, status=Status.NO_RECORD)
    expected = known[version].cases[name]
    if result.facts == expected:
        return Compared(result=result, status=Status.EQUAL, expected=expected)
    for other in sorted(known):
        if other != version and name in known[other].cases and known[other].cases[name] == result.facts:
            return Compared(result=result, status=Status.AS_ANOTHER, expected=expected, reason=other)
    why = reason_for(name, departures)
    status = Status.DEPARTS if why else Status.DIFFERS
    return Compared(result=result, status=status, expected=expected, reason=why)


def difference(compared: Compared) -> str:
    """Expected and seen, in one line each."""
    expected, seen = (
        msgspec.json.encode(each).decode() for each in (compared.expected, compared.result.facts)
    )
    return f"expected {printable(expected, LONGEST)}, saw {printable(seen, LONGEST)}"
