"""`python -m tools.check` (`make check`): the tests of the folders that changed since the branch left main.

Owns which tests answer for which file. What belongs to no folder of tests is answered for by
tests/test_architecture.py, which always runs. Arguments go to pytest.
"""

import subprocess
import sys
from collections.abc import Iterable

import rich_click as click

from fencepost.traces.errors import EnvironmentError_
from tools import program
from tools.ledger import TOP

ALWAYS = "tests/test_architecture.py"
OF_TOP = {"drivers": "torture"}
"""The folder of tests for a folder at the top that has another name."""
BRANCHES = ("main", "origin/main")


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


@click.command("check", context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(arguments: tuple[str, ...]) -> int:
    """Run the tests of what changed."""
    line = [sys.executable, "-m", "pytest", "-q", *arguments, *tests_of(changed())]
    return subprocess.call(line, cwd=TOP)


if __name__ == "__main__":
    program.run(command, "check")
