"""Which client libraries have a driver, and how each is built: one folder and one driver.toml for each.

Owns the table and what `NAME@VERSION` means. Must not know how anything is built (building.py) or run
(driver_process.py). docs/reference/drivers.md describes the file for users.
"""

import hashlib
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from attrs import field, fields, frozen

from fencepost.traces.errors import FencepostError

DRIVERS = Path(__file__).parents[1] / "drivers"
"""In the repository a link to drivers/ at its top; the wheel has the files here."""
FILE = "driver.toml"
TOOLCHAINS = ("go", "cargo", "python", "node", "maven", "none")
VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+_-]{0,99}")
"""What a version may look like in every registry. It becomes part of a path and of a manifest, so nothing
else is taken."""
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,49}")
MOST_BYTES = 1 << 20
"""Most bytes of a driver.toml and of each source: a driver has about two hundred lines."""


@frozen(kw_only=True)
class When:
    """What is different in some versions of a library."""

    # Versions below this one; empty: no bound.
    below: str = ""
    # Texts that are replaced in sources and manifest.
    replace: Mapping[str, str] = field(factory=dict)
    # Files in place of those of the same name.
    manifest: Mapping[str, str] = field(factory=dict)
    # Sources in place of others, by the name that they get in the build's folder.
    sources: Mapping[str, str] = field(factory=dict)


@frozen(kw_only=True)
class Library:
    """A client library that has a driver."""

    # Its name on the command line.
    name: str
    # Its name in texts.
    title: str
    # One of TOOLCHAINS.
    toolchain: str
    # The default version; the newest release when the row was written.
    newest: str
    # Files of the driver, relative to its folder.
    sources: tuple[str, ...]
    # The first version that this driver builds with; empty: not known. An older one is refused.
    oldest: str = ""
    # The command; empty: the toolchain's own.
    run: tuple[str, ...] = ()
    # Files that pin exact versions, by name; {version} in them is replaced.
    manifest: Mapping[str, str] = field(factory=dict)
    # Exceptions; all that apply are taken, in order.
    when: tuple[When, ...] = ()
    # Its own settings by role, and the values that a seed may give them (drawing.py).
    draw: Mapping[str, Mapping[str, tuple[Any, ...]]] = field(factory=dict)
    # Where the library's bugs are reported.
    issues: str = ""
    # What the library's documentation promises, by the anomaly that breaks it (judges.py).
    promises: Mapping[str, str] = field(factory=dict)
    # Where the row was read.
    folder: Path


@frozen
class Wanted:
    """A library in one version."""

    library: Library
    version: str

    def __str__(self) -> str:
        return f"{self.library.name}@{self.version}"

    def files(self) -> dict[str, str]:
        """Every file of the build's folder by name, as this version needs it. Raises FencepostError for one
        that is not there."""
        library = self.library
        manifest = dict(library.manifest)
        replace: dict[str, str] = {}
        for when in self._exceptions():
            manifest |= when.manifest
            replace |= when.replace
        files = {name: _read(source) for name, source in self._sources().items()}
        files |= {name: text.replace("{version}", self.version) for name, text in manifest.items()}
        for old, new in replace.items():
            files = {name: text.replace(old, new) for name, text in files.items()}
        return files

    def programs(self) -> list[str]:
        """The names of those files that their author may run: they stay programs in the build's folder."""
        return [name for name, source in self._sources().items() if os.access(source, os.X_OK)]

    def _exceptions(self) -> list[When]:
        return [when for when in self.library.when if not when.below or is_below(self.version, when.below)]

    def _sources(self) -> dict[str, Path]:
        found = {Path(source).name: source for source in self.library.sources}
        for when in self._exceptions():
            found |= when.sources
        return {name: self.library.folder / source for name, source in found.items()}

    def fingerprint(self) -> str:
        """A digest of everything that the build is made from: another driver or manifest is another build."""
        content = hashlib.sha256(self.library.toolchain.encode())
        for name, text in sorted(self.files().items()):
            content.update(f"\0{name}\0{text}".encode())
        return content.hexdigest()[:12]


def is_below(version: str, bound: str) -> bool:
    """Whether a version is older: numbers are compared as numbers, and a pre-release is below its release."""
    return _order(version) < _order(bound)


def _order(version: str) -> tuple[tuple[int, ...], bool]:
    number = re.match(r"[0-9.]*", version)
    text = number.group() if number else ""
    parts = [int(part) for part in text.split(".") if part]
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts), len(text) == len(version) or version[len(text)] == "+"


def libraries(folder: Path = DRIVERS) -> dict[str, Library]:
    """The table, by name, in its order. Raises FencepostError for a row that cannot be read."""
    rows = [read_library(path.parent) for path in sorted(folder.glob(f"*/{FILE}"))]
    return {row.name: row for row in rows}


def wanted(text: str) -> Wanted:
    """What `NAME`, `NAME@VERSION` or `FOLDER@VERSION` means. Raises FencepostError."""
    name, at, version = text.partition("@") if not text.startswith("@") else ("", "", "")
    if "/" in name or name.startswith("."):
        library = read_library(Path(name))
    else:
        table = libraries()
        if name not in table:
            raise FencepostError(
                expected=f"one of {', '.join(table)}, or a folder with {FILE}, as NAME[@VERSION]",
                seen=repr(text),
                where="the client library",
                hint="fencepost torture drivers list",
            )
        library = table[name]
    if at and not VERSION.fullmatch(version):
        raise FencepostError(
            expected="an exact version such as 1.43.2", seen=repr(version), where=f"the version of {name}"
        )
    if at and library.oldest and is_below(version, library.oldest):
        raise FencepostError(
            expected=f"{library.name}@{library.oldest} or newer, which its driver builds with",
            seen=version,
            where=f"the version of {name}",
        )
    return Wanted(library, version or library.newest)


def read_library(folder: Path) -> Library:
    """The row of a folder. Raises FencepostError in one sentence for what is no driver.toml."""
    path = folder / FILE
    try:
        rows = tomllib.loads(_read(path))
        _check_names(rows, path)
        library = msgspec.convert({**rows, "folder": str(folder.absolute())}, Library, dec_hook=_decode)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise FencepostError(
            expected="the table of a driver",
            seen=str(error),
            where=str(path),
            hint="docs/reference/drivers.md has one",
        ) from None
    for what, value, known in (
        ("name", library.name, bool(NAME.fullmatch(library.name))),
        ("newest", library.newest, bool(VERSION.fullmatch(library.newest))),
        ("toolchain", library.toolchain, library.toolchain in TOOLCHAINS),
    ):
        if not known:
            allowed = f"one of {', '.join(TOOLCHAINS)}" if what == "toolchain" else f"a plain {what}"
            raise FencepostError(expected=allowed, seen=repr(value), where=f"{path}, {what}")
    return library


def _decode(kind: type, value: Any) -> Any:
    assert kind is Path
    return Path(value)


def _check_names(rows: Mapping[str, Any], path: Path) -> None:
    """Raise FencepostError for a name that means nothing: a setting that is misspelt must not be ignored."""
    for kind, given in [(Library, rows), *((When, one) for one in rows.get("when", ()) if type(one) is dict)]:
        names = [one.name for one in fields(kind) if one.name != "folder"]
        for name in given:
            if name not in names:
                raise FencepostError(
                    expected=f"one of {', '.join(names)}", seen=repr(name), where=f"{path}, a name"
                )


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise FencepostError(expected=f"at most {MOST_BYTES:,} bytes", seen="more", where=str(path))
        return content.decode()
    except OSError as error:
        raise FencepostError(
            expected=f"a file of a driver (a folder with {FILE} and what it names)",
            seen=error.strerror or str(error),
            where=str(path),
        ) from None
    except UnicodeDecodeError as error:
        raise FencepostError(expected="text in UTF-8", seen=str(error), where=str(path)) from None
