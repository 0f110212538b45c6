"""What the machine lacks is told in one sentence."""

import subprocess
import sys
from pathlib import Path

import pytest

from fencepost.mining import session
from fencepost.traces.errors import EnvironmentError_, MissingExtraError


@pytest.mark.parametrize(
    ("banner", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "25-ea" 2025-09-16', 25),
        ("command not understood", None),
    ],
)
def test_versions_are_read_from_the_banner(banner: str, version: int | None) -> None:
    """Old and new numbering of Java are both understood."""
    assert session.java_version(banner) == version


def _java(folder: Path, banner: str) -> None:
    (folder / "bin").mkdir()
    java = folder / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho '{banner}' >&2\n")
    java.chmod(0o755)


def test_an_old_java_is_refused(tmp_path: Path, monkeypatch) -> None:
    """A Java below 17 is refused by its version, before Spark would fail with a stack trace."""
    _java(tmp_path, 'openjdk version "11.0.2"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(EnvironmentError_, match=r"expected Java 17 or newer for Spark, saw Java 11"):
        session.check_java()


def test_a_new_java_is_taken(tmp_path: Path, monkeypatch) -> None:
    """A Java of 17 or more passes."""
    _java(tmp_path, 'openjdk version "17.0.2"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert session.check_java() == 17


def test_no_java_is_refused(tmp_path: Path, monkeypatch) -> None:
    """Without Java, or with a JAVA_HOME that has none, the sentence says so."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(EnvironmentError_, match="No such file"):
        session.check_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentError_, match="no java on the path"):
        session.check_java()


def test_a_missing_pyspark_names_the_extra(monkeypatch) -> None:
    """Without pyspark the sentence says which extra to install."""
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'fencepost\[spark\]'"):
        session.check_pyspark()


def test_mining_imports_pyspark_only_when_it_runs() -> None:
    """The driver's modules are there without pyspark, so that a command line that mentions them starts quickly."""
    program = (
        "import sys; import fencepost.mining.mine, fencepost.mining.session; print('pyspark' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
