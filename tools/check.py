"""`python -m tools.check` (`make check`): the tests of the folders that changed since the branch left main,
within a budget of time.

Owns which tests answer for which file, and which of them are left out where there are too many. What belongs
to no folder of tests is answered for by tests/test_architecture.py, which always runs. Arguments go to
pytest.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterable

import msgspec
import rich_click as click

from fencepost.traces.errors import EnvironmentError_
from tools import program
from tools.ledger import TOP

ALWAYS = "tests/test_architecture.py"
OF_TOP = {"drivers": "torture"}
"""The folder of tests for a folder at the top that has another name."""
BRANCHES = ("main", "origin/main")
SECONDS = "out/test-seconds.json"
"""What each file of tests took last; tests/conftest.py writes it."""
BUDGET_S = 80.0
"""For the tests: with lint, types and the collection before it two minutes. With half of it the slow files of
one folder do not fit."""
UNKNOWN_S = 5.0
"""What a file is taken to need that was not measured yet; no test begins after the budget in any case."""


def tests_of(files: Iterable[str]) -> list[str]:
    """The folders and files of tests for these files of the repository, as paths from the top."""
    found = {ALWAYS}
    for file in files:
        top, _, rest = file.partition("/")
        if top == "tests" and "/" not in rest:
            found |= {file} if rest.startswith("test_") and (TOP / file).exists() else set()
            continue
        name = rest.partition("/")[0] if top in ("fencepost", "tests") else OF_TOP.get(top, top)
        if name and (TOP / "tests" / name).is_dir():
            found.add(f"tests/{name}")
    return sorted(found)


def changed() -> list[str]:
    """Files that differ from where the branch left main, those that git does not know yet among them. Raises
    EnvironmentError_ without such a branch."""
    for branch in BRANCHES:
        base = _git("merge-base", branch, "HEAD")
        if base is not None:
            lines = (_git("diff", "--name-only", *base), _git("ls-files", "--others", "--exclude-standard"))
            return [file for each in lines for file in each or ()]
    raise EnvironmentError_(
        expected=f"a branch {' or '.join(BRANCHES)}", seen="none", where="git", hint="fetch it, or: make test"
    )


def _git(*words: str) -> list[str] | None:
    done = subprocess.run(["git", *words], cwd=TOP, capture_output=True, text=True, check=False)
    return None if done.returncode else done.stdout.splitlines()


def selection(
    wanted: Iterable[str], changed_tests: Iterable[str], *, seconds_in_all: float
) -> tuple[list[str], list[str]]:
    """What of these tests is run: first what always is and what has changed, then the quickest file of each
    folder, the next of each, and so on.

    Args:
        wanted: folders and files of tests, as `tests_of` has them.
        changed_tests: files of tests.
        seconds_in_all: how long they may take together.

    Returns:
        the files in their order, and those that are left out.
    """
    known = _known()
    first = [ALWAYS, *(one for one in changed_tests if one != ALWAYS)]
    turns = []
    for one in wanted:
        files = sorted((TOP / one).rglob("test_*.py")) if (TOP / one).is_dir() else [TOP / one]
        names = [str(file.relative_to(TOP)) for file in files]
        names.sort(key=lambda name: (known.get(name, UNKNOWN_S), (TOP / name).stat().st_size))
        turns += enumerate(names)
    turns.sort(key=lambda turn: turn[0])
    chosen, left, taken = [], [], 0.0
    for name in dict.fromkeys([*first, *(name for _, name in turns)]):
        takes = known.get(name, UNKNOWN_S)
        if name in first or taken + takes <= seconds_in_all:
            chosen.append(name)
            taken += takes
        else:
            left.append(name)
    return chosen, left


def _known() -> dict[str, float]:
    """What each file took last, in seconds; nothing, if the file of them is gone or damaged."""
    try:
        return msgspec.json.decode((TOP / SECONDS).read_bytes(), type=dict[str, float])
    except (OSError, msgspec.DecodeError):
        return {}


def _jobs(context: click.Context, option: click.Parameter, text: str) -> int:
    """As make's JOBS has it: a number, or auto for one of each processor."""
    return os.cpu_count() or 1 if text == "auto" else click.IntRange(1)(text, option, context)


@click.command("check", context_settings={"ignore_unknown_options": True})
@click.option("--jobs", callback=_jobs, default="1", show_default=True, help="Tests at a time, or auto.")
@click.option("--budget", type=click.FloatRange(0), default=BUDGET_S, show_default=True, help="Seconds.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(jobs: int, budget: float, arguments: tuple[str, ...]) -> int:
    """Run the tests of what changed, as many as the budget allows; ends with what was left out."""
    until, files = time.time() + budget, changed()
    tests = [one for one in files if one.startswith("tests/") and "/test_" in one and (TOP / one).exists()]
    chosen, left = selection(tests_of(files), tests, seconds_in_all=budget * jobs)
    together = ["-n", str(jobs), "--dist", "loadfile", "--no-loadscope-reorder"] if jobs > 1 else []
    limits = [f"--until={until}", f"--seconds={TOP / SECONDS}"]
    line = [sys.executable, "-m", "pytest", "-q", *together, *limits, *arguments, *chosen]
    code = subprocess.call(line, cwd=TOP)
    if left:
        click.echo(f"left out, as the budget of {budget:g} s is too small: {len(left)} files of tests")
        folders = sorted({name.split("/")[1] for name in left})
        for folder in folders:
            names = [name for name in left if name.startswith(f"tests/{folder}/")] or [f"tests/{folder}"]
            click.echo(f"  {len(names)}: {' '.join(names)}")
        click.echo("all of them: make test; more of them: make check ARGS='--budget 600'")
    return code


if __name__ == "__main__":
    program.run(command, "check")
