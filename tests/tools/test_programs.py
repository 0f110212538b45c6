"""Every program of bench/ and tools/ imports what it needs and says what it does: a name that was moved shows
here."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
PROGRAMS = sorted(
    path
    for folder in ("bench", "tools")
    for path in (TOP / folder).rglob("*.py")
    if "__main__" in path.read_text(encoding="utf-8")
)
RUNNER = """
import contextlib, io, json, os, runpy, sys, traceback

BENCH = os.path.join(os.getcwd(), "bench", "")

def shown(path):
    sys.argv, path_before, modules = [path, "--help"], sys.path[:], set(sys.modules)
    sys.path.insert(0, path.rpartition("/")[0])
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            if path.startswith(BENCH):
                runpy.run_path(path, run_name="__main__")
            else:
                name = path.rpartition("/tools/")[2].removesuffix(".py").replace("/", ".")
                module = "tools." + name.removesuffix(".__main__")
                runpy.run_module(module, run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as ended:
        code = ended.code or 0
    except ModuleNotFoundError as error:
        code = f"missing {error.name}"
    except Exception:
        code = traceback.format_exc()
    sys.path[:] = path_before
    for name in set(sys.modules) - modules:  # programs have neighbours of the same name
        file = getattr(sys.modules[name], "__file__", None)
        if not file or file.startswith(BENCH):
            del sys.modules[name]
    return code, said.getvalue()

answers = {path: shown(path) for path in sys.argv[1:]}
json.dump(answers, sys.__stdout__)
"""
EXTRAS = (
    "atheris",
    "kio",
    "pyspark",
    "kazoo",
    "confluent_kafka",
    "aiokafka",
    "kafka",
    "plotly",
    "playwright",
)
"""What a program may need that is not installed everywhere."""


@pytest.fixture(scope="module")
def answers() -> dict[str, tuple[object, str]]:
    """By program: exit code or traceback, and what it said to --help. One process for all: most of what they
    import is shared."""
    done = subprocess.run(
        [sys.executable, "-c", RUNNER, *map(str, PROGRAMS)],
        cwd=TOP, capture_output=True, text=True, check=True, timeout=600,
    )  # fmt: skip
    return {path: (code, said) for path, (code, said) in json.loads(done.stdout).items()}


@pytest.mark.parametrize("path", PROGRAMS, ids=[str(path.relative_to(TOP)) for path in PROGRAMS])
def test_a_program_shows_its_help(path: Path, answers: dict[str, tuple[object, str]]) -> None:
    """It imports, does nothing, and says how it is used."""
    code, said = answers[str(path)]
    if str(code).startswith("missing ") and str(code).split()[1].partition(".")[0] in EXTRAS:
        pytest.skip(str(code))
    assert code == 0, code
    assert "usage" in said.lower()
