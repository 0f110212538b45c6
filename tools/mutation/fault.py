"""A fault: a piece of text of a source, and what stands there instead. Must not know how one is found or
tried."""

from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path

from attrs import frozen


@frozen(kw_only=True)
class Fault:
    """`after` instead of `before` at bytes [start, end) of `file`."""

    file: str
    # The function or class, "" outside of any.
    scope: str
    kind: str
    before: str
    after: str
    start: int
    end: int
    # First and last of the statement, whose tests are asked.
    lines: tuple[int, int]
    # It runs when the module is imported.
    at_import: bool
    # Of the same replacement there, from 0.
    occurrence: int = 0

    @property
    def name(self) -> str:
        """Unique among the faults of all files, and independent of line numbers."""
        again = f" ({self.occurrence + 1})" if self.occurrence else ""
        return f"{self.file} {self.scope or 'module'}: {self.before} -> {self.after}{again}"

    @property
    def line(self) -> str:
        """The name in one line, as results and pages have it."""
        return " ".join(self.name.split())

    def applied(self, source: bytes) -> bytes:
        """The source with the fault in it."""
        return source[: self.start] + self.after.encode() + source[self.end :]


def in_order(faults: Iterable[Fault], word: str) -> list[Fault]:
    """An order that depends on names and the word only, so that a larger sample contains a smaller one."""
    return sorted(faults, key=lambda fault: blake2b((word + fault.name).encode()).digest())


def module_of(file: str) -> str:
    """The module that a source is."""
    return Path(file).with_suffix("").as_posix().removesuffix("/__init__").replace("/", ".")
