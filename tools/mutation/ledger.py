"""Results as they come, and what they add up to.

Owns: the file of results, which of them still count, the score, the survivors and the reasons that
docs/explanation/exactness.md gives for them. Must not know how a fault is tried.
"""

import re
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec
from attrs import define, field, frozen

from tools.mutation.checkers import TOP
from tools.mutation.faults import Fault

REASONS = TOP / "docs" / "explanation" / "exactness.md"
EQUIVALENT = "equivalent"
"""How a reason begins that says so."""
ROW = re.compile(
    r"^\| `(?P<file>fencepost/[^`]+)` \| (?P<scope>[^|]+) \| `` (?P<change>.+?) `` \| (?P<reason>[^|]+) \|$",
    re.M,
)
"""A survivor in docs/explanation/exactness.md: file, function, replacement, reason."""


@frozen(kw_only=True)
class Result:
    """What became of a fault. source: digest of the file it was put into; outcome: noticed, survived, or
    unreached (no test runs the line); tests: digest of the tests that were asked."""

    name: str
    source: str
    outcome: str
    by: str = ""
    seconds: float = 0.0
    tests: str = ""


def digest(source: bytes) -> str:
    """Of a source: a result counts only for the text that it was found with."""
    return blake2b(source, digest_size=8).hexdigest()


@define
class Ledger:
    """The results of one checker, in a file that grows by a line per fault. known: by fault and source, the
    last line wins."""

    path: Path
    known: dict[tuple[str, str], Result] = field(factory=dict)

    def read(self) -> None:
        """What earlier runs found; a torn last line is left out."""
        if self.path.exists():
            for line in self.path.read_bytes().split(b"\n"):
                try:
                    result = msgspec.json.decode(line, type=Result)
                except msgspec.DecodeError:
                    continue
                self.known[result.name, result.source] = result

    def add(self, result: Result) -> None:
        """One more."""
        self.known[result.name, result.source] = result
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            file.write(msgspec.json.encode(result) + b"\n")

    def of(self, fault: Fault, source: str) -> Result | None:
        """The result that counts for a fault, if there is one."""
        return self.known.get((fault.name, source))


def change(fault: Fault) -> str:
    """The replacement, as docs/explanation/exactness.md writes it."""
    again = f" ({fault.occurrence + 1})" if fault.occurrence else ""
    return f"{fault.before} -> {fault.after}{again}".replace("|", "¦")


def reasons(text: str) -> dict[tuple[str, str, str], str]:
    """The reasons given for survivors, by file, function and replacement."""
    return {
        (found["file"], found["scope"].strip(), found["change"]): found["reason"].strip()
        for found in ROW.finditer(text)
    }


def reason_of(fault: Fault, given: dict[tuple[str, str, str], str]) -> str:
    """The reason given for a fault; "" if there is none."""
    return given.get((fault.file, fault.scope or "module", change(fault)), "")


@frozen(kw_only=True)
class Score:
    """Of one checker. tried: faults with a result; of: all that there are; survivors: (fault, outcome, reason
    or "")."""

    checker: str
    tried: int
    of: int
    noticed: int
    survivors: tuple[tuple[Fault, str, str], ...]

    @property
    def equivalent(self) -> int:
        """Survivors of which it is argued that no input tells them from the original."""
        return sum(reason.startswith(EQUIVALENT) for _, _, reason in self.survivors)

    @property
    def percent(self) -> float:
        """Noticed, of the faults that were tried and are not equivalent."""
        could = self.tried - self.equivalent
        return 100.0 * self.noticed / could if could else 0.0

    @property
    def percent_of_all(self) -> float:
        """Noticed, of all that were tried: the equivalent ones count against it."""
        return 100.0 * self.noticed / self.tried if self.tried else 0.0

    @property
    def unexplained(self) -> int:
        """Survivors without a reason."""
        return sum(not reason for _, _, reason in self.survivors)

    def as_dict(self) -> dict[str, Any]:
        """For --json."""
        return {
            "checker": self.checker,
            "faults": self.of,
            "tried": self.tried,
            "noticed": self.noticed,
            "equivalent": self.equivalent,
            "percent": round(self.percent, 2),
            "percent_of_all": round(self.percent_of_all, 2),
            "survivors": [
                {"file": fault.file, "line": fault.lines[0], "scope": fault.scope, "kind": fault.kind,
                 "change": change(fault), "outcome": outcome, "reason": reason}
                for fault, outcome, reason in self.survivors
            ],
        }  # fmt: skip


def score(
    checker: str,
    faults: list[Fault],
    digests: dict[str, str],
    ledger: Ledger,
    given: dict[tuple[str, str, str], str],
) -> Score:
    """What the results so far add up to."""
    noticed, tried = 0, 0
    survivors = []
    for fault in faults:
        result = ledger.of(fault, digests[fault.file])
        if result is None:
            continue
        tried += 1
        if result.outcome == "noticed":
            noticed += 1
        else:
            survivors.append((fault, result.outcome, reason_of(fault, given)))
    return Score(checker=checker, tried=tried, of=len(faults), noticed=noticed, survivors=tuple(survivors))
