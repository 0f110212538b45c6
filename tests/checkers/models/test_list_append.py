"""List-append against its definition: every order of small histories tried by hand."""

from itertools import chain, combinations, permutations
from random import Random
from typing import Any

import pytest

from fencepost.checkers.models.workloads import workload_named
from fencepost.checkers.verdict import Decision
from fencepost.traces.importers import import_text
from fencepost.traces.trace import Trace
from tests.selfcheck.amounts import amount

HISTORIES = amount(500, 15_000)
KEYS = (1, 2)


class Txn:
    """A transaction: its steps, [append key value] or [r key values]."""

    def __init__(self, steps: list[list[Any]], outcome: str, begin: int, end: int, process: int) -> None:
        self.steps, self.outcome, self.begin, self.end, self.process = steps, outcome, begin, end, process


def edn(value: Any) -> str:
    if value is None:
        return "nil"
    return f"[{' '.join(map(edn, value))}]" if isinstance(value, list) else str(value)


def text_of(transactions: list[Txn]) -> str:
    """As Jepsen writes them."""
    rows = []
    for one in transactions:
        asked = [[f":{f}", key, value if f == "append" else None] for f, key, value in one.steps]
        told = [[f":{f}", key, value] for f, key, value in one.steps] if one.outcome == "ok" else asked
        kind = {"ok": ":ok", "unknown": ":info", "fail": ":fail"}[one.outcome]
        for time, type_, value in ((one.begin, ":invoke", asked), (one.end, kind, told)):
            row = f"{{:type {type_}, :f :txn, :value {edn(value)}, :process {one.process}, :time {time}}}"
            rows.append((time, type_ != ":invoke", row))
    return "\n".join(row for *_, row in sorted(rows)) + "\n"


def trace_of(transactions: list[Txn]) -> Trace:
    return import_text(text_of(transactions), where="h", format="elle-append")


def runs(order: tuple[Txn, ...]) -> bool:
    """Whether these explain what they read if they run one after another."""
    lists: dict[int, list[int]] = {}
    for one in order:
        for f, key, value in one.steps:
            if f == "append":
                lists.setdefault(key, []).append(value)
            elif one.outcome == "ok" and lists.get(key, []) != (value or []):
                return False
    return True


def by_hand(transactions: list[Txn], *, realtime: bool = False, sessions: bool = False) -> bool:
    """Whether some order of what happened, and of some of what may have happened, explains all reads."""
    sure = [one for one in transactions if one.outcome == "ok"]
    maybe = [one for one in transactions if one.outcome == "unknown"]
    more = chain.from_iterable(combinations(maybe, size) for size in range(len(maybe) + 1))
    return any(
        runs(order)
        for extra in more
        for order in permutations([*sure, *extra])
        if not any(
            then.outcome == "ok"
            and then.end < first.begin
            and (realtime or (sessions and first.process == then.process))
            for first, then in combinations(order, 2)
        )
    )


def made(random: Random) -> list[Txn]:
    """Small transactions; what they read is what a run gave, or something near it."""
    fresh = iter(range(1, 100))
    wanted = [
        [
            ["append", key, next(fresh)] if random.random() < 0.5 else ["r", key, None]
            for key in random.choices(KEYS, k=random.randint(1, 3))
        ]
        for _ in range(random.randint(2, 4))
    ]
    lists: dict[int, list[int]] = {}
    strange = random.choice((0, 0.1, 0.4))
    for steps in random.sample(wanted, len(wanted)):
        for step in steps:
            held = lists.setdefault(step[1], [])
            if step[0] == "append":
                held.append(step[2])
            else:
                step[2] = _wrong(random, held) if random.random() < strange else [*held]
    made, at = [], 0
    for number, steps in enumerate(wanted):
        at = random.randint(0, 20)
        outcome = random.choices(("ok", "unknown", "fail"), (8, 2, 1))[0]
        made.append(Txn(steps, outcome, at, at + random.randint(1, 9), number))
    return made


def _wrong(random: Random, held: list[int]) -> list[int]:
    """A beginning of a list, or its values in another order."""
    if random.random() < 0.6:
        return held[: random.randint(0, len(held))]
    return random.sample(held, len(held))


@pytest.mark.parametrize("order", [{}, {"sessions": True}, {"realtime": True}])
def test_the_verdict_is_that_of_trying_every_order(order: dict[str, bool]) -> None:
    """Rule: legal exactly if some order explains every read, with the order of time as asked."""
    random = Random(str(order))
    seen = {True: 0, False: 0}
    for _ in range(HISTORIES):
        transactions = made(random)
        legal = by_hand(transactions, **order)
        verdict = workload_named("list-append", order).judge(trace_of(transactions))
        proves = any(one.outcome == "ok" for one in transactions)
        fine = Decision.OK if proves else Decision.ASSUMPTION_BROKEN
        assert verdict.decision is (fine if legal else Decision.ILLEGAL), text_of(transactions)
        seen[legal] += 1
    assert min(seen.values()) > HISTORIES // 10


@pytest.mark.parametrize(
    ("lines", "anomaly"),
    [
        (["[:append 1 1]", "[:append 1 2]", "[:r 1 [1 2]]"], ""),
        (["[:append 1 1] [:r 1 [1]] [:append 1 2] [:r 1 [1 2]]"], ""),
        (["[:append 1 1] [:append 1 2]", "[:r 1 [1]]"], "intermediate_read"),
        (["[:append 1 1] [:r 1 nil]"], "own_write_missed"),
        (["[:r 1 [5]]"], "element_from_nowhere"),
        (["[:append 1 1]", "[:r 1 [1 1]]"], "element_repeated"),
        (["[:append 1 1]", "[:append 1 2]", "[:r 1 [1 2]]", "[:r 1 [2 1]]"], "not_serializable"),
        (["[:append 1 1] [:append 1 2]", "[:append 1 3]", "[:r 1 [1 3 2]]"], "not_serializable"),
        # two circles: write skew over two lists, and a lost update
        (["[:r 1 nil] [:append 2 1]", "[:r 2 nil] [:append 1 1]"], "not_serializable"),
        (["[:r 1 nil] [:append 1 1]", "[:r 1 nil] [:append 1 2]"], "not_serializable"),
    ],
)
def test_each_anomaly_has_its_name(lines: list[str], anomaly: str) -> None:
    rows = []
    for number, line in enumerate(lines):
        asked = " ".join(
            part if part.startswith("[:append") else f"{part.rsplit(' ', 1)[0].partition(' [')[0]} nil]"
            for part in _parts(line)
        )
        row = f":f :txn, :process {number}, "
        rows += [f"{{:type :invoke, {row}:time {number}, :value [{asked}]}}"]
        rows += [f"{{:type :ok, {row}:time {number + 100}, :value [{line}]}}"]
    trace = import_text(
        "\n".join(sorted(rows, key=lambda row: ":ok" in row)), where="h", format="elle-append"
    )
    verdict = workload_named("list-append", {}).judge(trace)
    assert [finding.anomaly for finding in verdict.findings][:1] == ([anomaly] if anomaly else []), verdict


def _parts(line: str) -> list[str]:
    """The micro-operations of a line."""
    parts, depth = [""], 0
    for letter in line:
        depth += (letter == "[") - (letter == "]")
        parts[-1] += letter
        if not depth and parts[-1].strip():
            parts.append("")
    return [part.strip() for part in parts if part.strip()]
