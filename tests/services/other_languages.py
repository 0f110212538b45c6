"""Consumers of the zoo in other languages: which there are, their build, and where their results are.

A language is a folder `programs/in_LANGUAGE` with a driver.toml, and is built as torture's drivers are. Must
not know pytest, nor what a service does.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from fencepost.torture.building import Built, build
from fencepost.torture.libraries import wanted
from tests.services.promises import Result
from tests.services.zoo import PROGRAMS

JAVA, GO, JAVASCRIPT = LANGUAGES = ("java", "go", "javascript")
STORE = "store.txt"


def library(language: str) -> str:
    """What is built for a language, as `wanted` takes it."""
    return str(PROGRAMS / f"in_{language}")


def programs(language: str) -> Mapping[str, Path]:
    """The programs of a language, by their names in small letters, without underscores."""
    row = wanted(library(language)).library
    found = (row.folder / source for source in row.sources)
    return {path.stem.replace("_", "").lower(): path for path in found}


def is_written(name: str, language: str) -> bool:
    """Whether there is a consumer in this language. name: of the zoo."""
    return name.replace("_", "") in programs(language)


@cache
def _built(language: str) -> Built:
    return build(wanted(library(language)))


def command(name: str, language: str) -> list[str]:
    """The command of a consumer; its build comes first, where it is not in the cache. name: of the zoo.
    Raises EnvironmentError_ where something is missing for that."""
    main = ["".join(part.capitalize() for part in name.split("_"))] if language == JAVA else []
    return [*_built(language).command, *main]


def stored(folder: Path) -> list[Result]:
    """The results in a consumer's own store. folder: of the run."""
    path = folder / STORE
    text = path.read_bytes() if path.exists() else b""
    rows = [line.split(b"\t") for line in text.splitlines(keepends=True) if line.endswith(b"\n")]
    return [(key, value.rstrip(b"\n")) for _, _, key, value in rows]
