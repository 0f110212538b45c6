"""Results as they come, in a file that grows by a line for each mutant, and what they add up to.

Owns the counts, which are never added up: convicted by a judge, by an exception, by no progress. Must not
know how a mutant is tried.
"""

from collections import Counter
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec
from attrs import define, field

from tools.mutants.trial import Outcome, Result
from tools.mutation.checkers import TOP
from tools.mutation.fault import Fault

PAGE = TOP / "docs" / "explanation" / "mutants.md"
COUNTED = tuple(outcome for outcome in Outcome if outcome is not Outcome.BROKEN)


def name_of(fault: Fault) -> str:
    """One line."""
    return " ".join(fault.name.split())


def digest(source: bytes) -> str:
    """Of a source: a result counts only for the text that it was found with."""
    return blake2b(source, digest_size=8).hexdigest()


def equivalents(page: str) -> dict[str, str]:
    """Mutants that no run can tell from the original, with the reason, from the table of
    docs/explanation/mutants.md."""
    found = {}
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.split(" | ")]
        if line.startswith("| `` ") and len(cells) == 2:
            found[cells[0].removeprefix("| `` ").removesuffix(" ``")] = cells[1].removesuffix("|").strip()
    return found


@define
class Ledger:
    """known: by mutant, source and what it was tried with; the last line wins."""

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

    def counts(self, results: list[Result], page: str) -> dict[str, Any]:
        """What the results add up to. score: by a judge or no progress, of all that could be convicted; with
        the log machine: those that only it convicts, too."""
        given = equivalents(page)
        counted = [result for result in results if result.outcome != Outcome.BROKEN]
        same = [
            result
            for result in counted
            if result.outcome in (Outcome.SURVIVED, Outcome.UNREACHED) and result.name in given
        ]
        by = Counter(result.outcome for result in counted)
        could = len(counted) - len(same)
        convicted = by[Outcome.JUDGED] + by[Outcome.NO_PROGRESS]
        return {
            "mutants": len(counted),
            "convicted": {
                "by a judge": by[Outcome.JUDGED],
                "by an exception": by[Outcome.RAISED],
                "by no progress": by[Outcome.NO_PROGRESS],
                "by the log machine only": by[Outcome.LOG_MACHINE],
            },
            "survived": by[Outcome.SURVIVED],
            "unreached": by[Outcome.UNREACHED],
            "equivalent": len(same),
            "not counted, as they raise in their first run": len(results) - len(counted),
            "score": _percent(convicted, could),
            "score with the log machine": _percent(convicted + by[Outcome.LOG_MACHINE], could),
            "cpu_s": round(sum(result.cpu_s for result in results), 1),
        }


def _percent(part: int, whole: int) -> float:
    return round(100 * part / whole, 1) if whole else 0.0
