"""What is compared with what. Each comparison lives beside its tests and is a function of a seed and a number
of histories.

Owns: their names, and how one is found. Must not know processes or results of others.
"""

import sys
from importlib import util
from pathlib import Path
from typing import Any

from attrs import frozen

from tools.ledger import TOP


@frozen(kw_only=True)
class Counted:
    """What a stretch of seeds gave."""

    histories: int
    # Histories on which the two differ.
    wrong: int
    # Histories that are illegal, None where the comparison does not count them.
    illegal: int | None


@frozen(kw_only=True)
class Subject:
    """sources: what a result depends on, below the top; module: the test module, whose function `sweep` does
    the work; model: what it takes first, "" for nothing."""

    name: str
    says: str
    module: str
    sources: tuple[str, ...]
    model: str = ""

    def compare(self, seed: int, count: int) -> Counted:
        """So many histories from a seed on."""
        sweep = self.load().sweep
        return counted(
            sweep(self.model, range(seed, seed + count)) if self.model else sweep(seed, count), count
        )

    def load(self, top: Path = TOP) -> Any:
        """The test module, its neighbours importable as its conftest makes them."""
        path = top / self.module
        for folder in (str(top), str(path.parent)):
            if folder not in sys.path:
                sys.path.insert(0, folder)
        name = f"exact_{path.stem}"
        if name not in sys.modules:
            spec = util.spec_from_file_location(name, path)
            assert spec is not None and spec.loader is not None, f"no module at {path}"
            made = util.module_from_spec(spec)
            sys.modules[name] = made
            spec.loader.exec_module(made)
        return sys.modules[name]

    def files(self, top: Path = TOP) -> list[Path]:
        """Every source, in order: the code, the comparison, and what stands beside it except for other
        tests."""
        paths = [top / source for source in (*self.sources, self.module)]
        found = {file for path in paths for file in (path.rglob("*.py") if path.is_dir() else [path])}
        beside = (top / self.module).parent.glob("*.py")
        return sorted(found | {file for file in beside if not file.name.startswith("test_")})


def counted(answer: Any, histories: int) -> Counted:
    """What a `sweep` answers, in one form: mismatches (a number, or a list of them), alone or followed by how
    many histories were illegal. What comes after that is for the tests."""
    illegal = None
    if isinstance(answer, tuple):
        answer, illegal, *_ = answer
    assert isinstance(answer, int | list), f"mismatches as {type(answer).__name__}"
    return Counted(
        histories=histories, wrong=answer if isinstance(answer, int) else len(answer), illegal=illegal
    )


def _model(prefix: str, model: str, says: str, module: str) -> Subject:
    return Subject(
        name=f"{prefix}{model}",
        says=says.format(model),
        module=f"tests/checkers/linearizability/{module}.py",
        sources=("fencepost/checkers/linearizability", "fencepost/checkers/models"),
        model=model,
    )


def _engine(model: str) -> Subject:
    says = "the linearizability engine with the model {}, against every order"
    return _model("", model, says, "test_engine_differential")


def _decider(model: str) -> Subject:
    says = "the decider of unambiguous values for the model {}, against every order and against the engine"
    return _model("decider-", model, says, "test_deciders")


def _sweep(name: str, says: str, module: str, *sources: str) -> Subject:
    return Subject(name=name, says=says, module=module, sources=sources)


MODELS = (
    *("register", "cas-register", "key-value", "map", "append-only-list", "set"),
    *("queue", "unordered-queue", "at-least-once-queue"),
    *("mutex", "fenced-lock", "semaphore", "lease", "counter", "log"),
)
DECIDED = tuple(model for model in MODELS if model not in ("lease", "counter", "log"))
SUBJECTS: dict[str, Subject] = {
    subject.name: subject
    for subject in (
        *map(_engine, MODELS),
        *map(_decider, DECIDED),
        _sweep(
            "log-judge",
            "the linear log judge, against every log that could explain a history",
            "tests/checkers/log/test_log_differential.py",
            "fencepost/checkers/log",
            "fencepost/checkers/operation_columns.py",
        ),
        _sweep(
            "kafka",
            "the check of Jepsen's Kafka anomalies, against its definitions read literally",
            "tests/checkers/kafka/test_kafka_differential.py",
            "fencepost/checkers/kafka",
        ),
        _sweep(
            "transactions",
            "cycles among transactions, against all paths between all pairs",
            "tests/checkers/transactions/test_transactions_differential.py",
            "fencepost/checkers/transactions",
            "fencepost/checkers/kafka",
        ),
        _sweep(
            "exactly-once",
            "visible transactions and their outputs, against all rows with all rows",
            "tests/checkers/exactly_once/test_exactly_once.py",
            "fencepost/checkers/exactly_once",
        ),
        _sweep(
            "groups",
            "committed offsets of consumer groups, against an exhaustive search",
            "tests/checkers/groups/test_group_differential.py",
            "fencepost/checkers/groups",
        ),
        _sweep(
            "invariants",
            "the event invariants in one pass, against their definitions",
            "tests/checkers/test_invariants_differential.py",
            "fencepost/checkers/invariants",
        ),
    )
}
