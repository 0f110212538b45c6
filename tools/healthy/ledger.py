"""What was swept, a line per slice of seeds, and what it adds up to. Must not know how it is swept."""

from functools import cache
from hashlib import blake2b
from pathlib import Path

import msgspec
from attrs import Factory, define, frozen

from fencepost.traces.errors import ExitCode, strongest

TOP = Path(__file__).parents[2]
JUDGED = ("campaign", "checkers", "impl", "model", "sim", "traces")
"""What a result depends on, of the package's folders."""


@frozen(kw_only=True)
class Slice:
    """Seeds [first, first + runs) of one profile. source: digest of the code; amiss: (seed, what was wrong
    with its run).

    exit_code: of its campaign; a run that was too weak to mean anything is no finding. cpu_s: processor time
    of all workers, wall_s: of the slice. memory: bytes that the workers had together, at even distances from
    the slice's first runs to its last (empty where the system does not tell).
    """

    source: str
    profile: str
    first: int
    runs: int
    operations: int
    events: int
    rechecked: int
    amiss: tuple[tuple[int, str], ...]
    cpu_s: float
    wall_s: float
    memory: tuple[int, ...] = ()
    exit_code: int = ExitCode.NOTHING_FOUND


@frozen(kw_only=True)
class Sum:
    """Of one profile, or of all."""

    runs: int = 0
    operations: int = 0
    events: int = 0
    rechecked: int = 0
    amiss: tuple[tuple[int, str], ...] = ()
    cpu_s: float = 0.0
    wall_s: float = 0.0
    exit_code: int = ExitCode.NOTHING_FOUND

    def __add__(self, other: "Slice | Sum") -> "Sum":
        return Sum(
            runs=self.runs + other.runs,
            operations=self.operations + other.operations,
            events=self.events + other.events,
            rechecked=self.rechecked + other.rechecked,
            amiss=self.amiss + other.amiss,
            cpu_s=self.cpu_s + other.cpu_s,
            wall_s=self.wall_s + other.wall_s,
            exit_code=strongest({ExitCode(self.exit_code), ExitCode(other.exit_code)}),
        )


@cache
def source_digest() -> str:
    """Of the code that runs and judges."""
    digest = blake2b(digest_size=8)
    for folder in JUDGED:
        for path in sorted((TOP / "fencepost" / folder).rglob("*.py")):
            digest.update(str(path.relative_to(TOP)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


@define
class Ledger:
    """The slices that count: those of the code as it is. by_place: the last word for each profile and first
    seed."""

    path: Path
    source: str
    by_place: dict[tuple[str, int], Slice] = Factory(dict)

    def read(self) -> None:
        """What earlier sittings swept; a torn last line is left out."""
        if not self.path.exists():
            return
        for line in self.path.read_bytes().split(b"\n"):
            try:
                one = msgspec.json.decode(line, type=Slice)
            except msgspec.DecodeError:
                continue
            if one.source == self.source:
                self.by_place[one.profile, one.first] = one

    def add(self, one: Slice) -> None:
        """One more."""
        self.by_place[one.profile, one.first] = one
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            file.write(msgspec.json.encode(one) + b"\n")

    def sum(self, profile: str) -> Sum:
        """What there is of a profile."""
        total = Sum()
        for one in self.by_place.values():
            if one.profile == profile:
                total += one
        return total
