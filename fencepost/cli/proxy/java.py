"""Builds the tap for Java from the sources in the package, with a JDK."""

import shutil
import subprocess
import tempfile
from importlib.resources import files
from pathlib import Path

from fencepost.traces.errors import EnvironmentError_

COMPILE_S = 300
RELEASE = "11"
"""The oldest Java that clients of Kafka 4 run on."""


def build(kafka_clients: Path, out: Path) -> int:
    """Compile the tap into a jar. kafka_clients: the application's kafka-clients jar; out: the new jar.
    Returns the number of classes in it. Raises EnvironmentError_ without a JDK, or if javac refuses."""
    for tool in ("javac", "jar"):
        if shutil.which(tool) is None:
            raise EnvironmentError_(
                expected="a JDK",
                seen=f"no {tool} on the path",
                where="fencepost proxy tap",
                hint="install one, 11 or later",
            )
    sources = sorted(
        each.name
        for each in files("fencepost.application.blame").joinpath("java").iterdir()
        if each.name.endswith(".java")
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in sources:
            text = files("fencepost.application.blame").joinpath("java", name).read_text(encoding="utf-8")
            (Path(folder) / name).write_text(text, encoding="utf-8")
        classes = Path(folder) / "classes"
        _run(
            "javac",
            "--release",
            RELEASE,
            "-cp",
            str(kafka_clients),
            "-d",
            str(classes),
            *(f"{folder}/{name}" for name in sources),
        )
        _run("jar", "--create", "--file", str(out), "-C", str(classes), ".")
        return sum(1 for _ in classes.rglob("*.class"))


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_S, check=False)
    if done.returncode:
        raise EnvironmentError_(
            expected=f"{command[0]} to succeed",
            seen=(done.stderr or done.stdout).strip()[-500:],
            where="the tap for Java",
        )
