"""Spark's JVM dies: one sentence, and how to go on."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from fencepost.cli import run
from fencepost.mining.spark import spark_engine
from fencepost.mining.spark.jvm import jvm_needed
from tests.checkers import lab

DIES = """
import os, signal, sys
from fencepost.cli import main
from fencepost.mining.spark import spark_engine
run = spark_engine.run_tasks
def dying(spark, *words, **more):
    run(spark, *words, **more)
    os.kill(spark.sparkContext._gateway.proc.pid, signal.SIGKILL)
    return run(spark, *words, **more)
spark_engine.run_tasks = dying
main()
"""
SAID = "saw its JVM end with -9 (killed)"


@pytest.fixture
def words(make, tmp_path: Path) -> list[str]:
    """A mining of a few traces."""
    lab.stored(tmp_path / "in", (make(number, "legal") for number in range(4)))
    return ["mine", str(tmp_path / "in"), "--out", str(tmp_path / "out"), "--master", "local[2]"]


@pytest.mark.spark
def test_a_jvm_that_dies_is_one_sentence(words: list[str], spark) -> None:
    """Rule: no traceback and no refused connection: the sentence names the JVM, and --resume, which then does
    continue."""
    done = subprocess.run([sys.executable, "-c", DIES, *words], capture_output=True, text=True, check=False)
    lines = done.stderr.splitlines()
    said = [line for line in lines if line.strip() and not line.startswith("tasks: ")]  # a crowded machine
    assert done.returncode == 2 and len(said) == 1, done.stderr
    assert SAID in said[0] and "--resume continues" in said[0]
    assert run([*words, "--resume"]) in (0, 1)


def test_a_jvm_that_dies_before_anything_is_kept_leaves_nothing_to_resume(
    words: list[str], tmp_path: Path, monkeypatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rule: then there is no folder, and the sentence names no --resume."""

    @contextmanager
    def session(master, *, goes_on, **_):
        with subprocess.Popen(["sleep", "600"]) as process:
            spark = SimpleNamespace(sparkContext=SimpleNamespace(_gateway=SimpleNamespace(proc=process)))
            with jvm_needed(spark, master, goes_on):
                yield spark

    def dying(spark, *_, **__):
        os.kill(spark.sparkContext._gateway.proc.pid, signal.SIGKILL)
        raise ConnectionRefusedError

    monkeypatch.setattr(spark_engine, "session", session)
    monkeypatch.setattr(spark_engine, "run_tasks", dying)
    assert run(words) == 2
    said = capsys.readouterr().err
    assert SAID in said.replace("\n", " ") and "--resume" not in said
    assert not (tmp_path / "out").exists()
