"""What judges said of seeded histories, kept as short digests, so that any change of an answer is seen: who
is convicted of what, where and by which numbers, and the relations that the rules are read off.

Answers are kept after the judges had agreed with their naive references (docs/explanation/exactness.md).
Words are left out, numbers in them are not. After a change that is meant, keep anew: python -m
tests.checkers.kept
"""

import re
import sys
from collections.abc import Callable, Iterable
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from typing import Any

import attrs
import msgspec
import numpy as np

from fencepost.checkers.verdict import Verdict
from fencepost.traces.operations import Operation
from fencepost.traces.trace import Trace

FOLDER = Path(__file__).parent / "golden"
SUBJECTS = {
    "log": "test_log_kept",
    "kafka": "test_kafka_kept",
    "groups": "test_groups_kept",
    "linearizability": "test_linearizability_kept",
}
"""Folder and test module; each has SEEDS and said(seed)."""


def words_of(verdict: Verdict) -> tuple[Any, ...]:
    """What a verdict says, without its words."""
    found = [
        (
            f.anomaly,
            f.topic,
            f.partition,
            f.offset,
            f.operations,
            re.findall(r"-?\d+", f"{f.expected} {f.seen}"),
        )
        for f in verdict.findings
    ]
    return verdict.decision.value, bool(verdict.reason), found


def plain(value: Any) -> Any:
    """Relations as JSON: arrays and tuples as lists, attrs classes and dictionaries as lists of pairs,
    operations and traces by their ids."""
    if isinstance(value, Operation):
        return value.op_id
    if isinstance(value, Trace):
        return value.trace_id
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if attrs.has(type(value)):
        return [(f.name, plain(getattr(value, f.name))) for f in attrs.fields(type(value))]
    if isinstance(value, dict):
        return [(plain(key), plain(item)) for key, item in value.items()]
    if isinstance(value, set | frozenset):
        return sorted(map(plain, value))
    return [plain(item) for item in value] if isinstance(value, tuple | list) else value


def digest(said: Any) -> str:
    """Of an answer, ten hexadecimal digits."""
    return blake2b(msgspec.json.encode(said), digest_size=5).hexdigest()


def kept(name: str) -> list[str]:
    """The digests of a subject, by seed."""
    return msgspec.json.decode((FOLDER / f"kept_{name}.json").read_bytes(), type=list[str])


def differences(name: str, said: Callable[[int], Any], seeds: Iterable[int]) -> list[tuple[int, Any]]:
    """(seed, what is said now) where that is not what was kept."""
    known, found = kept(name), []
    for seed in seeds:
        now = said(seed)
        if digest(now) != known[seed]:
            found.append((seed, now))
    return found


def main() -> None:
    """Keep the answers of all subjects as they are now."""
    for name, module in SUBJECTS.items():
        sys.path.insert(0, str(Path(__file__).parent / name))
        test = import_module(module)
        lines = ",\n".join(f'"{digest(test.said(seed))}"' for seed in range(test.SEEDS))
        (FOLDER / f"kept_{name}.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
