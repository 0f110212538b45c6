"""The archive for executors holds Fencepost and what it needs, and its Python finds them."""

import os
import subprocess
import sys
import tarfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from fencepost.cli import run
from fencepost.mining.spark import package as packaging
from fencepost.mining.spark.package import package
from fencepost.traces.errors import EnvironmentError_, FencepostError


def test_the_archive_runs_fencepost_from_where_it_is_unpacked(tmp_path: Path) -> None:
    """Unpacked anywhere, bin/python imports the packaged Fencepost with its templates and TLA+ files, in
    front of any other."""
    made = package(tmp_path / "out", libraries=False)
    with tarfile.open(made.archive) as tar:
        tar.extractall(tmp_path / "environment", filter="data")
    program = "import fencepost; print(fencepost.__file__)"
    told = subprocess.run(
        [tmp_path / "environment" / "bin" / "python", "-B", "-c", program],
        env={"PATH": os.environ["PATH"], "FENCEPOST_PYTHON": sys.executable},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    root = tmp_path / "environment" / "site-packages" / "fencepost"
    assert told.stdout.strip() == str(root / "__init__.py")
    for name in ("py.typed", "report/templates", "model/tla"):
        assert (root / name).exists(), name
    assert made.kernels == len(list(root.rglob("*.nbi")))
    assert not list(root.rglob("*.pyc"))
    assert compile(made.entry.read_text(), made.entry, "exec")


def test_the_libraries_are_those_that_are_needed_and_no_more() -> None:
    """What Fencepost requires, and what that requires, travels along; PySpark, which the cluster has, does
    not."""
    found = packaging._libraries()
    assert {"attrs", "numpy", "pyarrow", "numba", "llvmlite", "msgspec", "pandas"} <= set(found)
    assert not {"pyspark", "py4j", "kazoo", "ruff", "mypy", "fencepost"} & set(found)
    assert any(file.name == "attr/__init__.py" for file in packaging._files_of(found["attrs"]))


def test_a_library_without_a_list_of_files_is_told() -> None:
    """What a system's package manager installed without saying which files it has cannot travel, and is not
    left out silently."""
    with pytest.raises(
        EnvironmentError_, match="expected the list of files of the library mystery, saw none"
    ):
        list(packaging._files_of(SimpleNamespace(name="mystery", files=None)))


def test_a_file_in_the_way_is_told_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command line says what was expected, and writes nothing."""
    (tmp_path / "out").touch()
    assert run(["mine", "package", str(tmp_path / "out"), "--no-libraries"]) == 2
    assert "expected a folder for the archive, saw a file" in capsys.readouterr().err
    assert (tmp_path / "out").read_bytes() == b""


def test_a_folder_of_another_tool_is_refused(tmp_path: Path) -> None:
    """Rule: what something else has written there stays alone; an earlier archive is replaced."""
    (tmp_path / "campaign.json").write_text("{}")
    with pytest.raises(
        FencepostError, match=r"expected an empty folder, or an earlier archive .*campaign.json"
    ):
        package(tmp_path, libraries=False)
    assert [path.name for path in tmp_path.iterdir()] == ["campaign.json"]
    for _ in range(2):
        package(tmp_path / "own", libraries=False)
