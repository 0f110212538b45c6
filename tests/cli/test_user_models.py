"""Models of the user's own, as the pages on models show them: what stands there runs, and says what it is
said to say."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fencepost.history import History, judged
from tests.cli.conftest import COMMAND

DOCS = Path(__file__).parents[2] / "docs"
TEXT = "".join((DOCS / folder / "models.md").read_text() for folder in ("reference", "how-to"))
BLOCKS = re.findall(r"```(python|clojure)\n(.*?)```", TEXT, flags=re.S)
BANK, SEMAPHORES, FENCED_STORE = (
    code for language, code in BLOCKS if language == "python" and "(Model):" in code
)
STALE = next(code for language, code in BLOCKS if language == "clojure" and ":acquire" in code)


def entries(process: int, function: str, asked: str, answered: str, kind: str = "ok") -> str:
    """An invocation and its completion, one after the other."""
    return (
        f"{{:process {process} :type :invoke :f :{function} :value {asked}}} "
        f"{{:process {process} :type :{kind} :f :{function} :value {answered}}}\n"
    )


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with both models of the page, in which the command runs."""
    (tmp_path / "bank.py").write_text(BANK)
    (tmp_path / "fenced_store.py").write_text(FENCED_STORE)
    (tmp_path / "semaphores.py").write_text(SEMAPHORES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    for name in ("bank", "fenced_store", "semaphores"):
        sys.modules.pop(name, None)
    yield tmp_path
    for name in ("bank", "fenced_store", "semaphores"):
        sys.modules.pop(name, None)


def test_the_page_shows_what_the_command_says(models: Path) -> None:
    """Rule: the output under the example is the output of the example, found in the folder where the command
    runs."""
    (models / "stale.edn").write_text(STALE)
    arguments = ["check", "stale.edn", "--model", "fenced_store:FencedStore"]
    done = subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, check=False, cwd=models, env=os.environ
    )
    assert (done.returncode, done.stderr) == (1, "")
    shown = TEXT.split("    $ fencepost " + " ".join(arguments) + "\n")[1].split("\n\n`init()`")[0]
    told = done.stdout.split("\nhistory ")[0].rstrip()
    assert [line.strip() for line in shown.split("\n")] == [line.strip() for line in told.split("\n")]


FENCED = [
    (STALE, "illegal"),
    (STALE.rsplit(":type :ok", 1)[0] + ':type :fail :f :put :value [1 "a"]}', "ok"),
    (STALE.rsplit(":type :ok", 1)[0] + ':type :info :f :put :value [1 "a"]}', "ok"),
    (entries(1, "acquire", "nil", "1") + entries(2, "acquire", "nil", "1"), "illegal"),
    (entries(1, "acquire", "nil", "nil", "info") + entries(2, "acquire", "nil", "1"), "ok"),
    (entries(1, "put", '[1 "a"]', '[1 "a"]') + entries(2, "get", "nil", '"b"'), "illegal"),
    (
        entries(1, "put", '[1 "a"]', '[1 "a"]')
        + entries(2, "put", '[1 "b"]', '[1 "b"]')
        + entries(2, "get", "nil", '"b"'),
        "ok",
    ),
]
BANKED = [
    (entries(0, "cas", "[0 1 4]", "[0 1 4]") + entries(0, "read", "nil", "[6 14]"), "ok"),
    (entries(0, "cas", "[0 1 4]", "[0 1 4]") + entries(0, "read", "nil", "[10 10]"), "illegal"),
    (entries(0, "cas", "[0 1 40]", "[0 1 40]"), "illegal"),
    (
        entries(0, "cas", "[0 1 4]", "[0 1 4]", "info")
        + entries(1, "read", "nil", "[10 10]")
        + entries(1, "read", "nil", "[6 14]"),
        "ok",
    ),
    (entries(0, "cas", "[0 1 40]", "[0 1 40]", "info") + entries(1, "read", "nil", "[10 10]"), "ok"),
]


@pytest.mark.parametrize(
    ("model", "history", "decision"),
    [*(("fenced_store:FencedStore", *case) for case in FENCED), *(("bank:Bank", *case) for case in BANKED)],
)
def test_the_worked_examples_judge(fencepost, models: Path, model: str, history: str, decision: str) -> None:
    """Rule: the models of the page convict what breaks their promise, and nothing else; unknown outcomes may
    go either way."""
    (models / "h.edn").write_text(history)
    told = fencepost("check h.edn --model", model, "--json")
    (row,) = told.json["verdicts"]
    assert row["decision"] == decision, row


@pytest.mark.parametrize(
    ("permits", "decision"), [(None, "illegal"), (1, "illegal"), (2, "illegal"), (3, "ok")]
)
def test_the_semaphore_of_the_page_has_as_many_permits_as_it_is_given(
    fencepost, models: Path, permits, decision
) -> None:
    """Rule: three holders are too many for a semaphore of two, not for one of three; from the command line
    and in Python."""
    (models / "h.edn").write_text("".join(entries(client, "acquire", "nil", "nil") for client in range(3)))
    given = [] if permits is None else ["--parameter", f"n={permits}"]
    told = fencepost("check h.edn --model semaphores:Semaphore", *given, "--json")
    assert told.json["verdicts"][0]["decision"] == decision
    sys.path.insert(0, "")
    from semaphores import Semaphore

    history = History()
    for client in range(3):
        with history.operation("acquire", process=client):
            pass
    model = Semaphore() if permits is None else Semaphore(permits)
    assert judged(history.trace(), model).decision.value == decision


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--parameter", "n"], "expected --parameter as NAME=JSON, saw 'n'"),
        (["--parameter", "n=x"], "expected --parameter n as JSON (a text in quotes), saw 'x'"),
        (["--parameter", "n=1", "--parameter", "n=2"], "expected the parameter n once, saw it twice"),
        (["--parameter", "m=1"], "--model semaphores:Semaphore: expected its parameters (n), saw "),
        (["--initial", "1"], "--model semaphores:Semaphore: expected its parameters (n), saw "),
    ],
)
def test_parameters_that_do_not_fit_are_told(fencepost, models: Path, options: list[str], says: str) -> None:
    """Rule: a parameter that cannot be read, or that the model does not have, is one sentence."""
    (models / "h.edn").write_text(entries(0, "acquire", "nil", "nil"))
    told = fencepost("check h.edn --model semaphores:Semaphore", *options)
    assert told.code == 2 and says in told.sentence, told


def test_mistakes_of_a_model_are_told(fencepost, models: Path) -> None:
    """Rule: a model that is missing, no model, or raises is one sentence and exit code 2."""
    (models / "h.edn").write_text(entries(0, "read", "nil", "nil"))
    (models / "bad_model.py").write_text(
        "from fencepost.checkers.models import Model\n"
        "class Raises(Model):\n    functions = frozenset({'read'})\n    def step(self, state, call):\n      "
        "  return 1 / 0\n"
    )
    (models / "broken_model.py").write_text("class Broken(:\n")
    for model, says in (
        ("broken_model:Broken", "expected a model that can be made, saw SyntaxError"),
        ("no_such_module:X", "expected a module that can be imported"),
        ("bank:Nothing", "expected a class derived from"),
        ("bank:Call", "expected a class derived from"),
        ("bad_model:Raises", "ZeroDivisionError"),
    ):
        told = fencepost("check h.edn --model", model)
        assert told.code == 2 and says in told.sentence, told
    sys.modules.pop("bad_model", None)


WRONG = """
from fencepost.checkers.models import IMPOSSIBLE, Model


class Fine(Model):
    functions = {"read", "write"}

    def init(self):
        return 0

    def step(self, state, call):
        return IMPOSSIBLE


class Init(Fine):
    def init(self):
        return {}[1]


class InitExits(Fine):
    def init(self):
        raise SystemExit(0)


class StepExits(Fine):
    def step(self, state, call):
        raise SystemExit(0)


class Yields(Fine):
    def step(self, state, call):
        yield state


class Async(Fine):
    async def step(self, state, call):
        return state


class Equal(Fine):
    def equal(self, one, other):
        raise ValueError("equal")

    def init(self):
        return []


class Describe(Fine):
    def describe(self, call):
        raise ValueError("describe")


class Part(Fine):
    def partition(self, call):
        raise ValueError("part")


class AsCall(Fine):
    def call(self, operation):
        raise ValueError("call")


class Observes(Fine):
    def observes(self, call):
        raise ValueError("observes")


class Nothing(Fine):
    def call(self, operation):
        return None
"""


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("Init", "expected an answer of `init`, saw KeyError: 1"),
        ("InitExits", "expected an answer of `init`, saw SystemExit: 0"),
        ("StepExits", "saw SystemExit: 0"),
        ("Yields", "without `yield` and `async`, saw generator"),
        ("Async", "without `yield` and `async`, saw coroutine"),
        ("Equal", "expected an answer of `equal`, saw ValueError"),
        ("Describe", "expected an answer of `describe`, saw ValueError"),
        ("Part", "expected an answer of `partition`, saw ValueError"),
        ("AsCall", "expected an answer of `call`, saw ValueError"),
        ("Observes", "expected an answer of `observes`, saw ValueError"),
    ],
)
def test_whatever_a_model_raises_is_its_own_mistake(fencepost, models: Path, model: str, says: str) -> None:
    """Rule: no function of a model, and no value that it returns, can end the judge with a traceback or with
    exit code 0."""
    (models / "h.edn").write_text(entries(0, "write", "1", "1") + entries(1, "read", "nil", "2"))
    (models / "wrong_models.py").write_text(WRONG)
    told = fencepost("check h.edn --model", f"wrong_models:{model}")
    sys.modules.pop("wrong_models", None)
    assert told.code == 2 and f"the model {model}" in told.sentence and says in told.sentence, told


def test_a_model_that_looks_at_nothing_proves_nothing(fencepost, models: Path) -> None:
    """Rule: an ok needs operations that the model looked at."""
    (models / "h.edn").write_text(entries(0, "write", "1", "1") + entries(1, "read", "nil", "2"))
    (models / "wrong_models.py").write_text(WRONG)
    told = fencepost("check h.edn --model wrong_models:Nothing")
    sys.modules.pop("wrong_models", None)
    assert told.code == 3 and "looked at none of the 2 recorded operations" in " ".join(told.out.split())


def test_a_module_that_ends_the_program_is_no_success(fencepost, models: Path) -> None:
    """Rule: sys.exit(0) in a caller's module is a mistake with exit code 2."""
    (models / "h.edn").write_text(entries(0, "read", "nil", "nil"))
    (models / "exiting_model.py").write_text("import sys\nsys.exit(0)\n")
    told = fencepost("check h.edn --model exiting_model:X")
    assert told.code == 2 and "saw SystemExit: 0" in told.sentence
