"""Spark's JVM dies: one sentence, and how to go on."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.checkers import lab

pytestmark = pytest.mark.spark
DIES = """
import os, signal, sys
from fencepost.cli import main
from fencepost.mining.spark import spark_engine
run = spark_engine.run_tasks
def dying(spark, *words, **more):
    answers = run(spark, *words, **more) if {after} else None
    os.kill(spark.sparkContext._gateway.proc.pid, signal.SIGKILL)
    return run(spark, *words, **more)
spark_engine.run_tasks = dying
main()
"""


@pytest.mark.parametrize("after", [False, True])
def test_a_jvm_that_dies_is_one_sentence(make, tmp_path: Path, after: bool) -> None:
    """Rule: no traceback and no refused connection: the sentence names the JVM, and --resume where something
    was kept, which then does continue."""
    lab.stored(tmp_path / "in", (make(number, "legal") for number in range(4)))
    words = ["mine", str(tmp_path / "in"), "--out", str(tmp_path / "out"), "--master", "local[2]"]
    done = subprocess.run(
        [sys.executable, "-c", DIES.format(after=after), *words], capture_output=True, text=True, check=False
    )
    said = [line for line in done.stderr.splitlines() if line.strip()]
    assert done.returncode == 2 and len(said) == 1, done.stderr
    assert "saw its JVM end with -9 (killed)" in said[0]
    assert ("--resume continues" in said[0]) == after == (tmp_path / "out").exists()
    if after:
        again = [sys.executable, "-m", "fencepost", *words, "--resume"]
        assert subprocess.run(again, stdout=subprocess.DEVNULL, check=False).returncode in (0, 1)
