"""The twelve consumers again, in Java: their build, and where their results are.

Owns the compiler's call and the file that stands for a database. Must not know pytest, nor what a service
does.
"""

import shutil
import subprocess
import tempfile
from functools import cache
from importlib.resources import files
from pathlib import Path

from tests.services.promises import Result
from tests.services.zoo import PROGRAMS

SOURCES = PROGRAMS / "in_java"
STORE = "store.txt"
BUILD_S = 300
LIBRARIES = ("org/apache/kafka/kafka-clients", "org/slf4j/slf4j-api")
"""In Maven's local repository."""


def missing() -> str:
    """What is not there of the toolchain, in words; "" if all is."""
    lacking = [name for name in ("javac", "java") if shutil.which(name) is None]
    lacking += [name for name in LIBRARIES if not _jars(name)]
    return ", ".join(lacking)


def _jars(library: str) -> list[Path]:
    found = (Path.home() / ".m2" / "repository" / library).glob("*/*.jar")
    return sorted(path for path in found if not path.stem.endswith(("-sources", "-javadoc")))


@cache
def _built() -> tempfile.TemporaryDirectory[str]:
    """The classes; removed when this process ends."""
    folder = tempfile.TemporaryDirectory(prefix="fencepost-java-")
    emitter = files("fencepost.application").joinpath("emitters", "FencepostEvents.java")
    sources = [*sorted(map(str, SOURCES.glob("*.java"))), str(emitter)]
    words = ["javac", "-cp", _class_path(), "-d", folder.name, *sources]
    subprocess.run(words, check=True, timeout=BUILD_S)
    return folder


def _class_path() -> str:
    return ":".join(str(_jars(name)[-1]) for name in LIBRARIES)


def command(name: str, *, mistake: bool) -> list[str]:
    """The command of a consumer. name: of the zoo; mistake: whether it makes it."""
    main = "".join(part.capitalize() for part in name.split("_"))
    quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    form = f"-Dmistake={str(mistake).lower()}"
    return ["java", *quick, form, "-cp", f"{_class_path()}:{_built().name}", main]


def stored(folder: Path) -> list[Result]:
    """The results in a consumer's own store. folder: of the run."""
    path = folder / STORE
    text = path.read_bytes() if path.exists() else b""
    rows = [line.split(b"\t") for line in text.splitlines(keepends=True) if line.endswith(b"\n")]
    return [(key, value.rstrip(b"\n")) for _, _, key, value in rows]
