"""The rows of bench/checkers.py: which histories, how many, how long."""

from attrs import frozen
from checker_histories import history

from fencepost.traces.trace import Trace


@frozen(kw_only=True)
class Case:
    """One row: histories of one kind. group: what is summed up; batch: judged in one call; ready: from
    columns in memory, as the other tool judges operations in memory."""

    name: str
    group: str
    model: str
    count: int
    clients: int
    operations: int
    unknown: float
    batch: bool = False
    ready: bool = False

    @property
    def same(self) -> tuple[object, ...]:
        """Equal for cases with the same histories: the other tool, which knows no batches, judges them
        once."""
        return self.model, self.count, self.clients, self.operations, self.unknown

    def traces(self) -> list[Trace]:
        """The histories, the same in every process."""
        wrong = self.model != "log"
        return [
            history(
                self.model,
                seed,
                clients=self.clients,
                operations=self.operations,
                unknown=self.unknown,
                wrong=wrong and seed % 2 == 1,
            )
            for seed in range(self.count)
        ]


def cases(quick: bool) -> list[Case]:
    made = []
    for clients in (5, 10, 50):
        for unknown in (0.0, 0.01, 0.05):
            common = {"model": "log", "clients": clients, "unknown": unknown}
            name = f"log, {clients} clients, {unknown:.0%} unknown"
            for size in (200, 2_000) if quick else (200, 2_000, 20_000):
                group = f"(a) {clients} clients"
                made.append(Case(name=f"{name}, {size} ops", group=group, count=1, operations=size, **common))
            many = 50 if quick else 500
            if clients == 5:
                group = "(a) 5 clients, batch"
                words = f"{name}, {many} x 200 ops, batch"
                made.append(Case(name=words, group=group, count=many, operations=200, batch=True, **common))
                group = "(a) 5 clients, columns"
                words = f"{name}, {many} x 200 ops, columns"
                made.append(
                    Case(
                        name=words, group=group, count=many, operations=200, batch=True, ready=True, **common
                    )
                )
    many = 20 if quick else 100
    made.append(
        Case(
            name=f"cas-register, {many} histories",
            group="(b)",
            model="cas-register",
            count=many,
            clients=15,
            operations=80,
            unknown=0.1,
        )
    )
    for clients in (10, 50):
        for unknown in (0.0, 0.01, 0.05):
            many = 4 if quick else 20 if clients == 10 else 8
            name = f"key-value, {clients} clients, {unknown:.0%} unknown, {many} histories"
            made.append(
                Case(
                    name=name,
                    group="(c)",
                    model="key-value",
                    count=many,
                    clients=clients,
                    operations=1_000,
                    unknown=unknown,
                )
            )
    for unknown in (0.0, 0.01):
        name = f"register, unique values, 10 clients, {unknown:.0%} unknown"
        made.append(
            Case(
                name=name,
                group="registers",
                model="register",
                count=4,
                clients=10,
                operations=2_000,
                unknown=unknown,
            )
        )
    return made
