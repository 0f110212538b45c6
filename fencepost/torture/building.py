"""Drivers are built in the user's cache, once for each version.

Owns the folders of the cache, and the calls of each toolchain. Must not know the drivers' protocol.

A build happens in a temporary folder that is renamed when it is complete. So an interrupted build
leaves nothing, and of two at the same time one wins. The cache's name holds a fingerprint of sources
and manifest. Nothing is ever written into the package. Exact versions come from the manifest; install scripts
of npm are off.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from attrs import field, frozen

from fencepost.torture.libraries import Wanted
from fencepost.traces.errors import EnvironmentError_

BUILD_S = 1_200
"""Longest build: librdkafka from its sources, on a machine that is busy, took five minutes."""
MOST_SHOWN = 600
"""Characters of a failed build that are shown: the last ones say what was missing."""
CACHE_VARIABLE = "FENCEPOST_DRIVERS"
SOURCES_VARIABLE = "FENCEPOST_SOURCE_DISTRIBUTIONS"
"""Set to anything, drivers in Python may be built from source distributions, which run their authors' code
while they are built. Without it only wheels are installed."""
NO_WHEEL = "no matching distribution found"
"""What pip says where a version has no wheel for this Python, or does not exist."""
LOG = "build.log"
OFFLINE = (
    "could not resolve",
    "no such host",
    "name resolution",
    "network is unreachable",
    "enotfound",
    "eai_again",
)
"""What toolchains say when there is no network."""


@frozen(kw_only=True)
class Toolchain:
    """How drivers of one language are built and run. In words of a command {build} is the folder."""

    # What must be on the path.
    programs: tuple[str, ...]
    # Commands, one after another, in the build's folder.
    steps: tuple[tuple[str, ...], ...]
    # The command of a driver that names none.
    run: tuple[str, ...]
    # Environment variables of the driver's process.
    environment: Mapping[str, str] = field(factory=dict)
    # What to install where a program is missing.
    hint: str = ""


TOOLCHAINS: Mapping[str, Toolchain] = {
    "python": Toolchain(
        programs=(),
        steps=(
            (
                *("{python}", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
                *("{wheels}", "--no-compile", "--target", "{build}/site"),
                *("-r", "requirements.txt"),
            ),
        ),
        run=("{python}", "{build}/driver.py"),
        environment={"PYTHONPATH": "{build}/site", "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"},
    ),
    "go": Toolchain(
        programs=("go",),
        steps=(("go", "mod", "tidy"), ("go", "build", "-o", "{build}/driver", ".")),
        run=("{build}/driver",),
        hint="install Go 1.24 or newer",
    ),
    "cargo": Toolchain(
        programs=("cargo", "cc"),
        steps=(
            ("cargo", "build", "--release", "--quiet", "--target-dir", "{build}/target"),
            ("cp", "{build}/target/release/driver", "{build}/driver"),
            ("rm", "-rf", "{build}/target"),
        ),
        run=("{build}/driver",),
        hint="install Rust and a C compiler",
    ),
    "node": Toolchain(
        programs=("node", "npm"),
        steps=(
            ("npm", "install", "--ignore-scripts", "--omit=optional", "--no-audit", "--no-fund", "--silent"),
        ),
        run=("{node}", "{build}/driver.mjs"),
        hint="install Node 20 or newer",
    ),
    "maven": Toolchain(
        programs=("java", "javac", "mvn"),
        steps=(
            ("mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory={build}/jars"),
            ("javac", "-nowarn", "-d", "{build}/classes", "-cp", "{build}/jars/*", "{javas}"),
        ),
        run=(
            *("{java}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m"),
            *("-cp", "{build}/classes:{build}/jars/*", "Driver"),
        ),
        hint="install a JDK 17 or newer and Maven",
    ),
    "none": Toolchain(programs=(), steps=(), run=("{build}/driver",)),
}


@frozen(kw_only=True)
class Built:
    """A driver that can be started."""

    wanted: Wanted
    folder: Path
    command: tuple[str, ...]
    # Environment variables of its process, in addition to ours.
    environment: Mapping[str, str]


def cache_folder() -> Path:
    """The folder of all builds: $FENCEPOST_DRIVERS, or fencepost/drivers in the user's cache."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fencepost" / "drivers"


def folder_of(wanted: Wanted) -> Path:
    """The folder of this build, whether it exists or not."""
    parts = [wanted.library.name, wanted.version]
    if wanted.library.toolchain == "python":
        parts.append(f"py{sys.version_info.major}{sys.version_info.minor}")
    return cache_folder() / "-".join([*parts, wanted.fingerprint()]).replace("+", "_")


def missing(wanted: Wanted) -> str:
    """Why this machine cannot build it, in words; empty if nothing is missing."""
    toolchain = TOOLCHAINS[wanted.library.toolchain]
    absent = [program for program in toolchain.programs if shutil.which(program) is None]
    return f"no {', '.join(absent)} on the path; {toolchain.hint}" if absent else ""


def built(wanted: Wanted) -> Built | None:
    """The build in the cache, None if there is none."""
    folder = folder_of(wanted)
    return _as_built(wanted, folder) if folder.is_dir() else None


def build(wanted: Wanted) -> Built:
    """Build it, unless it is in the cache. Raises EnvironmentError_ in one sentence: what is missing, or the
    end of what the toolchain said."""
    done = built(wanted)
    if done is not None:
        return done
    lacks = missing(wanted)
    if lacks:
        raise EnvironmentError_(expected=f"what builds {wanted}", seen=lacks, where=f"drivers build {wanted}")
    folder = folder_of(wanted)
    files = wanted.files()
    folder.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{wanted.library.name}-", dir=folder.parent))
    try:
        for name, text in files.items():
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            (work / name).write_text(text)
        for name in wanted.programs():
            (work / name).chmod(0o755)
        toolchain = TOOLCHAINS[wanted.library.toolchain]
        for step in toolchain.steps:
            _carry_out(wanted, work, step)
        work.chmod(0o755)
        try:
            work.rename(folder)
        except OSError:  # another build was faster
            if not folder.is_dir():
                raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return _as_built(wanted, folder)


def _carry_out(wanted: Wanted, work: Path, step: tuple[str, ...]) -> None:
    javas = sorted(str(path) for path in work.rglob("*.java"))
    words = [word for one in step for word in (javas if one == "{javas}" else _filled(wanted, work, [one]))]
    with (work / LOG).open("a+") as log:
        try:
            code = subprocess.run(
                words,
                cwd=work,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                timeout=BUILD_S,
                check=False,
                env={**os.environ, "GOFLAGS": "-mod=mod -buildvcs=false", "CARGO_TERM_COLOR": "never"},
            ).returncode
        except subprocess.TimeoutExpired:
            code = None
        except OSError as error:
            raise EnvironmentError_(
                expected="a toolchain that runs", seen=str(error), where=f"building {wanted}"
            ) from None
        if code == 0:
            return
        log.seek(0)
        said = log.read()
    raise EnvironmentError_(
        expected=f"`{' '.join(words[:4])} ...` to succeed within {BUILD_S} s",
        seen=f"that it {'took longer' if code is None else f'ended with {code}'}: "
        f"{said[-MOST_SHOWN:].strip()}",
        where=f"building {wanted}",
        hint=_hint(said.lower()),
    )


def _hint(said: str) -> str:
    """What to do about a failed build. said: what the toolchain said, in small letters."""
    if any(word in said for word in OFFLINE):
        return (
            "a build needs the package registry, and this machine seems to be offline; builds that are in"
            f" {cache_folder()} need no network"
        )
    if NO_WHEEL in said and not os.environ.get(SOURCES_VARIABLE):
        return (
            f"is there a wheel for Python {sys.version_info.major}.{sys.version_info.minor}? "
            f"{SOURCES_VARIABLE}=1 lets pip build a source distribution, which runs its authors' code"
        )
    return "does this version exist?"


def _as_built(wanted: Wanted, folder: Path) -> Built:
    toolchain = TOOLCHAINS[wanted.library.toolchain]
    environment = {name: _filled(wanted, folder, [value])[0] for name, value in toolchain.environment.items()}
    command = _filled(wanted, folder, wanted.library.run or toolchain.run)
    return Built(wanted=wanted, folder=folder, command=tuple(command), environment=environment)


def _filled(wanted: Wanted, folder: Path, words: "tuple[str, ...] | list[str]") -> list[str]:
    values = {
        "{build}": str(folder),
        "{source}": str(wanted.library.folder),
        "{version}": wanted.version,
        "{python}": sys.executable,
        "{wheels}": "--prefer-binary" if os.environ.get(SOURCES_VARIABLE) else "--only-binary=:all:",
        "{java}": "java",
        "{node}": "node",
    }
    filled = []
    for word in words:
        for name, value in values.items():
            word = word.replace(name, value)
        filled.append(word)
    return filled
