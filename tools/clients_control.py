"""The examples of the control port in other languages, run as they stand (docs/reference/control.md; `make
clients`).

    python -m tools.clients_control [NAME ...]

Each runs in a copy of its folder, with this installation's `fencepost` on the path, and starts the cluster
itself. One that lacks its toolchain, or a network for its libraries, is skipped by name. Exit code 1 if one
failed.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import rich_click as click
from attrs import frozen

from fencepost.console.output import Output
from fencepost.torture.building import MOST_SHOWN, OFFLINE
from fencepost.traces.errors import ExitCode
from tools import program
from tools.program import FAILED, OK, SKIPPED, Done, run_cases

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples" / "control"
LONGEST_S = 900
"""Of a command: the first run downloads its libraries and compiles them, on a machine that may be busy."""


@frozen(kw_only=True)
class Example:
    """folder: below docs/examples/control. programs: what has to be on the path. steps: its commands."""

    folder: str
    programs: tuple[str, ...]
    steps: tuple[tuple[str, ...], ...]


CONTROL: Mapping[str, Example] = {
    "shell": Example(folder=".", programs=("sh", "curl"), steps=(("sh", "control.sh"),)),
    "go": Example(
        folder="go",
        programs=("go",),
        steps=(("go", "mod", "tidy"), ("go", "test", "-v", "-count=1", "./...")),
    ),
    "junit": Example(folder="junit", programs=("mvn", "javac"), steps=(("mvn", "-q", "-B", "test"),)),
}


def run(name: str, example: Example) -> Done:
    """What became of it."""
    outcome, why = _outcome(example)
    return Done(case=name, outcome=outcome, why=why)


def _outcome(example: Example) -> tuple[str, str]:
    for name in example.programs:
        if shutil.which(name) is None:
            return SKIPPED, f"no {name} on the path"
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    with tempfile.TemporaryDirectory(prefix="fencepost-control-") as folder:
        shutil.copytree(EXAMPLES / example.folder, folder, dirs_exist_ok=True)
        for step in example.steps:
            try:
                done = subprocess.run(
                    step,
                    cwd=folder,
                    env={**os.environ, "PATH": path},
                    capture_output=True,
                    text=True,
                    timeout=LONGEST_S,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                return FAILED, f"{' '.join(step)} took longer than {LONGEST_S} s"
            said = (done.stdout + done.stderr).strip()
            if done.returncode and any(words in said.lower() for words in OFFLINE):
                return SKIPPED, "its libraries are not here, and there is no network"
            if done.returncode:
                return FAILED, f"{' '.join(step)}: exit code {done.returncode}: {said[-MOST_SHOWN:]}"
            if "--- SKIP" in said:
                return FAILED, f"{' '.join(step)} skipped its test: {said[-MOST_SHOWN:]}"
    return OK, ""


@click.command("clients_control", help=__doc__)
@click.argument("words", nargs=-1)
def command(words: tuple[str, ...]) -> ExitCode:
    """Run all, or those that are named."""
    cases = {name: partial(run, name, example) for name, example in CONTROL.items()}
    return run_cases(cases, words, Output())


if __name__ == "__main__":
    program.run(command, "clients_control")
