"""Keep the classes that a Spark of the tests loads, parsed: `python -m tools.spark_classes FILE`.

Owns: the file, which the JVM maps (class data sharing, JEP 350). Must not know: the tests that use it. Every
JVM of Spark loads some ten thousand classes, which is half of what a short mining takes. A JVM that does not
fit the file (another Java, another class path) ignores it.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""As tests/conftest.py says."""
WORK = """
import sys
from fencepost.cli import run
run(["campaign", "--seeds", "0:1", "--jobs", "1", "--profile", "calm", "--out", "runs", "--json"])
sys.exit(int(run(["mine", "runs", "--out", "mined", "--master", "local[1]", "--json"])))
"""
TIMEOUT_S = 1_200
"""Generous, for a crowded machine: on an idle one it takes half a minute."""


def main(path: Path) -> int:
    """Make the file unless it is there. Returns 0 also where it could not be made: the tests are slower
    without it, nothing else."""
    if path.exists():
        return 0
    part = path.with_suffix(".part")
    options = f"{QUICK} -Xlog:disable -XX:ArchiveClassesAtExit={part}"
    paths = os.pathsep.join(filter(None, (str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", ""))))
    with tempfile.TemporaryDirectory(prefix="fencepost-classes-") as folder:
        try:
            done = subprocess.run(
                [sys.executable, "-c", WORK],
                cwd=folder,
                env={
                    **os.environ,
                    "SPARK_SUBMIT_OPTS": options,
                    "SPARK_LAUNCHER_OPTS": QUICK,
                    "PYTHONPATH": paths,
                },
                capture_output=True,
                text=True,
                timeout=TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            sys.stderr.write(f"Spark's classes are not kept: not ready in {TIMEOUT_S} s\n")
            return 0
    if done.returncode or not part.exists():
        sys.stderr.write(f"Spark's classes are not kept: {done.stderr.strip()[-300:]}\n")
        return 0
    part.replace(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
