"""What was swept, a line per stretch of seeds, and what it adds up to. Must not know how it is swept."""

from hashlib import blake2b
from pathlib import Path

import msgspec
from attrs import define, field, frozen

from tools.exact.subjects import Subject


@frozen(kw_only=True)
class Stretch:
    """Seeds [seed, seed + histories). source: digest of the code that was compared."""

    source: str
    seed: int
    histories: int
    wrong: int
    illegal: int | None
    seconds: float


@frozen(kw_only=True)
class Sum:
    """Of one subject."""

    subject: str
    histories: int
    wrong: int
    illegal: int | None
    seconds: float


def digest_of(subject: Subject) -> str:
    """Of everything a result depends on."""
    digest = blake2b(digest_size=8)
    for path in subject.files():
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


@define
class Ledger:
    """The stretches of one subject that count: those of the code as it is. by_seed: the last word for
    each."""

    path: Path
    source: str
    by_seed: dict[int, Stretch] = field(factory=dict)

    def read(self) -> None:
        """What earlier runs swept; a torn last line is left out."""
        if not self.path.exists():
            return
        for line in self.path.read_bytes().split(b"\n"):
            try:
                stretch = msgspec.json.decode(line, type=Stretch)
            except msgspec.DecodeError:
                continue
            if stretch.source == self.source:
                self.by_seed[stretch.seed] = stretch

    def add(self, stretch: Stretch) -> None:
        """One more."""
        self.by_seed[stretch.seed] = stretch
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            file.write(msgspec.json.encode(stretch) + b"\n")

    def sum(self, subject: str) -> Sum:
        """What there is."""
        stretches = list(self.by_seed.values())
        illegal = [stretch.illegal for stretch in stretches]
        return Sum(
            subject=subject,
            histories=sum(stretch.histories for stretch in stretches),
            wrong=sum(stretch.wrong for stretch in stretches),
            illegal=None if None in illegal else sum(count for count in illegal if count is not None),
            seconds=sum(stretch.seconds for stretch in stretches),
        )
