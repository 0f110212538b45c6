"""The wheel, the set-up scripts and the constraints: what a stranger's machine meets first."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
PINNED = re.compile(r"[A-Za-z0-9_.-]+==[A-Za-z0-9_.+!-]+( ; .+)?")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository to build in."""
    pytest.importorskip("setuptools", minversion="77")
    copy = tmp_path_factory.mktemp("tree") / "tree"
    left_out = (".*", "out", "build", "dist", "*.egg-info", "tests", "__pycache__")
    shutil.copytree(TOP, copy, symlinks=True, ignore=shutil.ignore_patterns(*left_out))
    return copy


def _run(folder: Path, *arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module", params=["checkout", "sdist"])
def wheel(request: pytest.FixtureRequest, tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel made from the tree, and one made from its source distribution."""
    built, source = tmp_path_factory.mktemp("built"), "."
    if request.param == "sdist":
        _run(tree, "-c", f"from setuptools.build_meta import build_sdist; build_sdist({str(built)!r})")
        source = str(next(built.glob("*.tar.gz")))
    options = ["--no-deps", "--no-build-isolation", "--quiet", "--wheel-dir", str(built)]
    _run(tree, "-m", "pip", "wheel", source, *options)
    return next(built.glob("*.whl"))


def test_the_wheel_installs_one_name(wheel: Path) -> None:
    """The links at the top of the repository stay out of the wheel; the types are in it."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert not any(entry.external_attr >> 28 == 0o12 for entry in archive.infolist()), "a link"
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"fencepost"}
    assert "fencepost/py.typed" in names
    in_tree = {str(path.relative_to(TOP)) for path in (TOP / "fencepost").rglob("*.py")}
    assert in_tree <= set(names)


def test_the_wheel_carries_the_drivers(wheel: Path, tmp_path: Path) -> None:
    """Every file of drivers/ is in the wheel as it is, and what is installed from it finds all of them."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    top = TOP / "drivers"
    files = [path.relative_to(top) for path in top.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert {str(file.parent) for file in files} >= {"shared", "aiokafka", "sarama", "kafkajs", "rdkafka"}
    installed = tmp_path / "fencepost" / "drivers"
    assert {path.relative_to(installed) for path in installed.rglob("*") if path.is_file()} == set(files)
    assert all((installed / file).read_bytes() == (top / file).read_bytes() for file in files)
    asks = "from fencepost.torture.libraries import libraries, Wanted\nfor row in libraries().values():"
    asks += "\n assert Wanted(row, row.newest).files()\n print(row.folder)"
    done = subprocess.run(
        [sys.executable, "-c", asks], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    named = sorted(str(installed / file.parent) for file in files if file.name == "driver.toml")
    assert done.stdout.splitlines() == named


HISTORY = """{:type :invoke, :f :write, :value 1, :process 0}
{:type :ok, :f :write, :value 1, :process 0}
{:type :invoke, :f :read, :value nil, :process 1}
{:type :ok, :f :read, :value 1, :process 1}
"""
USES_THE_PLUGIN = """
def test_a_history(fencepost_history):
    assert fencepost_history is not None
"""


def test_what_is_installed_from_the_wheel_works(wheel: Path, tmp_path: Path) -> None:
    """Its version, a check and the plugin, from a folder that has nothing of the checkout."""
    place, work = tmp_path / "installed", tmp_path / "work"
    work.mkdir()
    _run(tmp_path, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(place), str(wheel))
    (work / "history.edn").write_text(HISTORY)
    (work / "test_it.py").write_text(USES_THE_PLUGIN)
    environment = os.environ | {"PYTHONPATH": str(place)}
    where = "import fencepost; print(fencepost.__file__)"
    for arguments, says in (
        (["-c", where], str(place)),
        (
            ["-m", "fencepost", "--version"],
            tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["version"],
        ),
        (["-m", "fencepost", "check", "history.edn", "--model", "register"], "ok"),
        (["-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"], "1 passed"),
    ):
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=work,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert says in done.stdout
    licence = [path.name for path in place.glob("fencepost-*.dist-info/licenses/*")]
    assert licence == ["LICENSE"]


def test_the_constraints_pin_everything() -> None:
    """Each line is a name with its exact version: no address, no hash; every requirement of the project is
    among them."""
    lines = [
        line
        for line in (TOP / "constraints.txt").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    assert all(PINNED.fullmatch(line) for line in lines), [
        line for line in lines if not PINNED.fullmatch(line)
    ]
    pinned = {re.split("==", line)[0].lower().replace("_", "-") for line in lines}
    project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
    wanted = [
        *project["dependencies"],
        *(line for extra in project["optional-dependencies"].values() for line in extra),
    ]
    names = {re.split(r"[\[<>=~! ]", line)[0].lower().replace("_", "-") for line in wanted}
    assert names - {"fencepost"} <= pinned


def test_every_target_is_in_the_help() -> None:
    """`make help` has one line for each target that a person would call (not the look for Java)."""
    text = (TOP / "Makefile").read_text()
    done = subprocess.run(["make", "help"], cwd=TOP, capture_output=True, text=True, check=True)
    told = set(re.findall(r"^ *make ([a-z-]+) ", done.stdout, flags=re.M))
    phony = set(re.findall(r"^\.PHONY: ([a-z-]+)$", text, flags=re.M))
    assert phony - {"java"} == told


def _script(folder: Path, name: str, content: str) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{content}\n")
    path.chmod(0o755)


def _sh(script: str, path: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    environment = {"PATH": f"{path}:/usr/bin:/bin", "TMPDIR": str(path)}
    shell = shutil.which("sh")
    assert shell is not None
    return subprocess.run(
        [shell, str(TOP / "tools" / script), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("banner", "status"),
    [
        ('openjdk version "17.0.9" 2023-10-17', 0),
        ('java version "21" 2023-09-19', 0),
        ('java version "1.8.0_392"', 2),
        ('openjdk version "11.0.2" 2019-01-15', 2),
        ("nonsense", 2),
    ],
)
def test_make_checks_java(tmp_path: Path, banner: str, status: int) -> None:
    """A Java that is too old, or says nothing sensible, is refused in one sentence before anything starts."""
    _script(tmp_path / "bin", "java", f"echo '{banner}' >&2")
    done = _sh("java.sh", tmp_path / "bin")
    assert done.returncode == status
    if status:
        assert done.stderr.startswith("fencepost: expected a Java runtime of version 17 or later, saw")
        assert done.stderr.count("\n") == 1


def test_make_says_that_java_is_missing(tmp_path: Path) -> None:
    """No Java at all is one sentence as well."""
    _script(tmp_path / "bin", "java", "exit 127")
    done = _sh("java.sh", tmp_path / "bin")
    assert done.returncode == 2
    assert "install one, for example openjdk-17-jre-headless" in done.stderr


def test_make_says_which_python_it_wants(tmp_path: Path) -> None:
    """Without a Python of 3.11 to 3.13 the set-up ends in one sentence, and makes nothing."""
    for name in ("python3.13", "python3.12", "python3.11", "python3", "python"):
        _script(tmp_path / "bin", name, "echo 'Python 3.9.2'; exit 1")
    done = _sh("setup.sh", tmp_path / "bin", str(tmp_path / "venv"))
    assert done.returncode == 2
    assert done.stderr.startswith("fencepost: expected Python 3.11, 3.12 or 3.13, saw Python 3.9.2;")
    assert not (tmp_path / "venv").exists()
