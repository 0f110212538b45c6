"""A command line run in this process, and a small real campaign that several tests read."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from fencepost.cli import run

COMMAND = [sys.executable, "-c", "from fencepost.cli import main; main()"]
"""The program in a process of its own."""


class Told(NamedTuple):
    """What a command said: exit code, standard output, standard error."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict:
        assert self.out.count("\n") == 1, self.out
        return msgspec.json.decode(self.out)

    @property
    def sentence(self) -> str:
        """The first line of standard error, once it is certain that nothing there is a traceback."""
        assert "Traceback" not in self.err, self.err
        return self.err.split("\n")[0]


Fencepost = Callable[..., Told]


@pytest.fixture
def fencepost(capsys: pytest.CaptureFixture[str]) -> Fencepost:
    def call(command: str = "", *arguments: object) -> Told:
        """The names of the command as one text, and its arguments."""
        capsys.readouterr()
        code = run([*command.split(), *map(str, arguments)])
        return Told(int(code), *capsys.readouterr())

    return call


@pytest.fixture(scope="session")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign of ten runs with KAFKA-6082 planted; some have findings (the hunt needs three seeds)."""
    folder = tmp_path_factory.mktemp("campaign") / "planted"
    assert run(f"campaign --seeds 0:10 --jobs 1 --bug KAFKA-6082 --out {folder} --json".split()) == 1
    return folder
