"""The examples of the control port in other languages, run as they stand (docs/reference/control.md; `make
clients`).

    python -m tools.clients_control [NAME ...]

Each runs in a copy of its folder, with this installation's `fencepost` on the path, and starts the cluster
itself. One that lacks its toolchain, or a network for its libraries, is skipped by name. Exit code 1 if one
failed.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from attrs import frozen

from fencepost.torture.building import MOST_SHOWN, OFFLINE

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


def run(example: Example) -> tuple[str, str]:
    """What became of it: ok, failed or skipped, and why."""
    for program in example.programs:
        if shutil.which(program) is None:
            return "skipped", f"no {program} on the path"
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
                return "failed", f"{' '.join(step)} took longer than {LONGEST_S} s"
            said = (done.stdout + done.stderr).strip()
            if done.returncode and any(words in said.lower() for words in OFFLINE):
                return "skipped", "its libraries are not here, and there is no network"
            if done.returncode:
                return "failed", f"{' '.join(step)}: exit code {done.returncode}: {said[-MOST_SHOWN:]}"
            if "--- SKIP" in said:
                return "failed", f"{' '.join(step)} skipped its test: {said[-MOST_SHOWN:]}"
    return "ok", ""


def main() -> None:
    """Run all, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("examples", nargs="*", metavar="NAME", help=f"{', '.join(CONTROL)}; all by default")
    names = parser.parse_args().examples or list(CONTROL)
    unknown = [name for name in names if name not in CONTROL]
    if unknown:
        parser.error(f"expected examples out of {', '.join(CONTROL)}, saw {', '.join(unknown)}")
    failed = False
    for name in names:
        outcome, why = run(CONTROL[name])
        failed |= outcome == "failed"
        print(f"control port from {name}: {outcome} {why}".rstrip(), flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
