"""Suites of tests run by pytest in a process of their own, as a user's are, but forked from one that has
loaded pytest and what our fixtures import late (suite_process.py); and what else is run like that."""

import json
import os
import sys
import time
from importlib.metadata import entry_points
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from fencepost.processes import forking

INSTALLED = any(point.value == "fencepost.pytest_plugin" for point in entry_points(group="pytest11"))
LOADED = () if INSTALLED else ("-p", "fencepost.pytest_plugin")
"""How pytest loads the plugin where it does not find it."""
LOADED_BEFORE = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"
"""True of our package, and of no account: it has no assertions that pytest should explain."""


def run_suite(pytester: pytest.Pytester, *options: str) -> pytest.RunResult:
    """As pytester.runpytest_subprocess."""
    arguments = [f"--basetemp={pytester.path / 'runpytest'}", "-W", LOADED_BEFORE, *options]
    began = time.perf_counter()
    code, *said = run_forked("tests.suite_process", arguments, pytester.path)
    for text in said:
        sys.stdout.write(text)  # a test that fails shows them
    return pytest.RunResult(code, *(text.splitlines() for text in said), time.perf_counter() - began)


def run_forked(module: str, arguments: list[str], folder: Path) -> tuple[int, str, str]:
    """Run a process of ours (suite_process.py, cli/program_process.py) in a folder; answers its exit code,
    output and errors."""
    environment = dict(os.environ)
    home = str(Path(__file__).parents[1])
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (home, environment.get("PYTHONPATH"))))
    with TemporaryDirectory() as said:
        process = forking.start((*forking.BEGIN, module), environment)
        assert process.stdin is not None and process.stdout is not None
        order = {"arguments": arguments, "folder": str(folder), "said": said}
        process.stdin.write(json.dumps(order).encode() + b"\n")
        process.stdin.close()
        code = process.wait()
        process.stdout.close()
        return code, (Path(said) / "1").read_text("utf-8"), (Path(said) / "2").read_text("utf-8")


def begin() -> list[str]:
    """In such a process: go to the folder, write output and errors to files; answers the arguments."""
    order = json.loads(sys.stdin.readline())
    os.chdir(order["folder"])
    sys.path[0] = order["folder"]
    for number in (1, 2):
        with (Path(order["said"]) / str(number)).open("wb") as file:
            os.dup2(file.fileno(), number)
    arguments: list[str] = order["arguments"]
    return arguments
