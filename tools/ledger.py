"""What a program finished, a line each, so that the next run of it goes on from there.

Owns the format: JSON lines. The first says whose ledger this is and what was asked; each other one is a row.
A process that was killed leaves half a line: it counts for nothing, and is cut before the next row is
written. Everything else that does not fit is refused: rows of another question would be counted as answers
to this one. Must not know what a row means.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

import msgspec
from attrs import define, field

from fencepost.traces.errors import FencepostError

TOP = Path(__file__).parents[1]
VERSION = 1
Row = TypeVar("Row")


def digest_of(content: bytes) -> str:
    """Of a text that a result depends on, as rows carry it."""
    return blake2b(content, digest_size=8).hexdigest()


def digest(paths: Iterable[Path], top: Path = TOP) -> str:
    """Of files, with their names.

    Args:
        paths: in any order.
        top: the folder that names begin at.
    """
    parts = sorted((str(path.relative_to(top)).encode(), path.read_bytes()) for path in paths)
    return digest_of(b"\0".join(part for both in parts for part in both))


@define
class Ledger(Generic[Row]):
    """The rows of one question. Use `open`."""

    path: Path
    key: Callable[[Row], Hashable]
    # What the first line says.
    header: dict[str, Any]
    # By key: the last row that was written.
    rows: dict[Any, Row] = field(factory=dict)
    # Bytes of whole lines in the file, in bytes; what follows was cut off when a process was killed.
    whole: int = 0

    @classmethod
    def open(
        cls,
        path: Path,
        row: type[Row],
        *,
        key: Callable[[Row], Hashable],
        of: str,
        asked: Mapping[str, str | int] | None = None,
    ) -> Self:
        """The ledger at a path; a new one is written with its first row.

        Args:
            path: of the file, whose folder need not exist.
            row: the class of its rows.
            key: of a row; a later row replaces an earlier one with the same key.
            of: whose ledger it is, in words.
            asked: what all its rows answer; another question is refused.

        Raises:
            FencepostError: the file is foreign, damaged, or answers another question.
        """
        header = {"ledger": VERSION, "of": of, "asked": dict(asked or {})}
        ledger = cls(path=path, key=key, header=header)
        content = path.read_bytes() if path.exists() else b""
        ledger.whole = content.rfind(b"\n") + 1
        lines = content[: ledger.whole].split(b"\n")[:-1]
        if lines:
            ledger._check(lines[0])
        for number, line in enumerate(lines[1:], start=2):
            try:
                one = msgspec.json.decode(line, type=row)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise ledger._refusal(f"{path}, line {number}", "a row", str(error)) from None
            ledger.rows[key(one)] = one
        return ledger

    def add(self, row: Row) -> None:
        """Write one more, at once."""
        self.rows[self.key(row)] = row
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lines = [msgspec.json.encode(row), b""]
        if not self.whole:
            lines.insert(0, msgspec.json.encode(self.header))
        with self.path.open("r+b" if self.path.exists() else "wb") as file:
            file.truncate(self.whole)
            file.seek(self.whole)
            self.whole += file.write(b"\n".join(lines))

    def _check(self, line: bytes) -> None:
        where, of = f"{self.path}, line 1", self.header["of"]
        try:
            found = msgspec.json.decode(line, type=dict[str, Any])
            version, whose, asked = found["ledger"], found["of"], dict(found["asked"])
        except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError, ValueError):
            raise self._refusal(where, f"the header of a ledger of {of}", "another line") from None
        if version != VERSION:
            raise self._refusal(where, f"a ledger of version {VERSION}", f"version {version}")
        if whose != of:
            raise self._refusal(where, f"a ledger of {of}", f"one of {whose}")
        wanted = self.header["asked"]
        for name in sorted({*asked, *wanted}):
            if asked.get(name) != wanted.get(name):
                raise self._refusal(where, f"{name}={wanted.get(name)}", f"{name}={asked.get(name)}")

    def _refusal(self, where: str, expected: str, seen: str) -> FencepostError:
        hint = "move the file away, or name another --out"
        return FencepostError(expected=expected, seen=seen, where=where, hint=hint)
