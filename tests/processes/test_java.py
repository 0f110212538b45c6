"""java.py: which Java is taken, and the sentences for one that is missing, fails or is too old."""

from pathlib import Path

import pytest

from fencepost.processes.java import check_java, find_java, java_version
from fencepost.traces.errors import EnvironmentError_


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
    assert java_version(banner) == version


def java(folder: Path, script: str) -> str:
    """A program that is called Java."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return str(program)


@pytest.mark.parametrize(
    ("script", "seen"),
    [
        ("echo 'openjdk version \"11.0.2\"' >&2", "Java 11"),
        ("echo what >&2", "a java that does not say its version"),
        ("exit 1", r"that it does not run \(CalledProcessError\)"),
    ],
)
def test_a_java_that_will_not_do(tmp_path: Path, monkeypatch, script: str, seen: str) -> None:
    """Rule: one that is too old, or fails, is one sentence, before anything fails with a stack trace."""
    java(tmp_path, script)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(EnvironmentError_, match=f"expected Java 17 or newer for Spark, saw {seen}"):
        check_java("Spark")


def test_a_java_is_asked_once(tmp_path: Path, monkeypatch) -> None:
    """Rule: it is the one of JAVA_HOME, and says its version once in a process."""
    program = java(tmp_path, f"echo x >> {tmp_path}/asked; echo 'openjdk version \"17.0.2\"' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert [check_java("TLC", 11), check_java("Spark")] == [(program, 17)] * 2
    assert (tmp_path / "asked").read_text() == "x\n"


def test_no_java(tmp_path: Path, monkeypatch) -> None:
    """Rule: without Java, or with a JAVA_HOME that has none, the sentence says so; an empty one is none."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(EnvironmentError_, match=r"no java in .*JAVA_HOME"):
        find_java("TLC")
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentError_, match="no java on the path"):
        find_java("TLC")
