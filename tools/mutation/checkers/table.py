"""Which sources hold a checker's rules, and which tests answer for them. Must not know faults or
processes."""

from pathlib import Path

from attrs import frozen

from tools.ledger import TOP

KERNELS_S = 15.0
"""Where kernels do most of the work, tests take longer: uncompiled, with every line watched."""


@frozen(kw_only=True)
class Checker:
    """sources: files, or folders of them, below the top; tests: what is asked; slowest_s: a test that takes
    longer is left out, and named."""

    name: str
    sources: tuple[str, ...]
    tests: tuple[str, ...]
    slowest_s: float = 5.0

    def files(self, top: Path = TOP) -> list[str]:
        """Its sources that exist, as paths from the top, in order."""
        found: set[Path] = set()
        for source in self.sources:
            path = top / source
            found.update(path.rglob("*.py") if path.is_dir() else [path] if path.exists() else [])
        return sorted(str(path.relative_to(top)) for path in found)


CHECKERS: dict[str, Checker] = {
    checker.name: checker
    for checker in (
        Checker(
            name="log",
            sources=("fencepost/checkers/log",),
            tests=("tests/checkers/log",),
            slowest_s=KERNELS_S,
        ),
        Checker(
            name="invariants",
            sources=("fencepost/checkers/invariants",),
            tests=(
                "tests/checkers/test_invariants.py",
                "tests/checkers/test_invariants_*.py",
                "tests/checkers/test_storage_events.py",
            ),
        ),
        Checker(
            name="conformance",
            sources=("fencepost/checkers/conformance.py", "fencepost/model/refinement"),
            tests=(
                "tests/checkers/test_conformance*.py",
                "tests/checkers/test_storage_events.py",
                "tests/model/refinement/test_refinement_walks.py",
            ),
        ),
        Checker(
            name="linearizability",
            sources=("fencepost/checkers/linearizability", "fencepost/checkers/models"),
            tests=("tests/checkers/linearizability", "tests/checkers/models"),
            slowest_s=KERNELS_S,
        ),
        Checker(name="kafka", sources=("fencepost/checkers/kafka",), tests=("tests/checkers/kafka",)),
        Checker(
            name="transactions",
            sources=("fencepost/checkers/transactions",),
            tests=("tests/checkers/transactions",),
        ),
        Checker(
            name="application",
            sources=("fencepost/checkers/application",),
            tests=tuple(
                f"tests/application/test_{name}.py"
                for name in ("words", "twin", "recorded", "check_events", "reading", "sinks")
            ),
        ),
        Checker(
            name="exactly_once",
            sources=("fencepost/checkers/exactly_once",),
            tests=("tests/checkers/exactly_once",),
        ),
        Checker(name="groups", sources=("fencepost/checkers/groups",), tests=("tests/checkers/groups",)),
    )
}
