"""`python -m tools.services [NAME...] [--seeds 0:10] [--correct 20]`: at which seed chaos finds each mistake
of the zoo of services, and that it finds nothing in the correct forms. With --events, twelve consumers are
killed at random moments in the place of chaos, and judged by the events that they wrote alone.

    python -m tools.services unread_report swallowed_exception --seeds 0:3 --correct 2
    python -m tools.services --events --seeds 0:5 --correct 5
    python -m tools.services --events --language java

Owns the order of seeds, the rows and the table. Must not know what a service does (tests/services). The
ledger is ledger.jsonl, events.jsonl or events-LANGUAGE.jsonl in out/services, so that a run goes on where it
stopped; the table is written next to it. The exit code is 1 if a mistake was not found within its seeds, or
something was found in a correct form.
"""

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import rich_click as click
from attrs import define, field, frozen

from fencepost.console.output import Output
from fencepost.traces.errors import EnvironmentError_, ExitCode, PlanError
from tests.services.by_events import CONSUMER_OF, CONSUMERS, LANGUAGES, PYTHON, judged
from tests.services.other_languages import is_written
from tests.services.running import ServiceRun, zoo_cluster
from tests.services.zoo import BY_NAME, Service
from tools import program
from tools.ledger import TOP, Ledger, digest
from tools.program import FAILED, OK, Done, run_cases

OUT = Path("out/services")
SEEDS, CORRECT = "0:10", 20
"""Of each mistake, and how many of each correct form."""
MISTAKE, RIGHT = "mistake", "correct"
SOURCES = ("fencepost/kafka", "fencepost/proxy/faults", "tests/services")
OF_EVENTS = ("fencepost/application", "fencepost/checkers/application", "tests/services")
"""What an outcome depends on: rows of other sources are not counted."""


@frozen(kw_only=True)
class Row:
    """A service under chaos of one seed."""

    service: str
    # MISTAKE or RIGHT.
    form: str
    seed: int
    # What was broken of its promise; empty: nothing.
    broken: tuple[str, ...]
    # In words, in their order.
    strikes: tuple[str, ...]
    # Of what was seen, by kind.
    moments: dict[str, int] = field(factory=dict)
    # Wall time, seconds.
    took_s: float


def one_seed(service: Service, form: str, seed: int) -> Row:
    """Run a service under chaos.

    Args:
        service: of the zoo.
        form: MISTAKE or RIGHT.
        seed: of the cluster and of the chaos.
    """
    with tempfile.TemporaryDirectory() as folder, zoo_cluster(seed) as kafka:
        begun = time.monotonic()
        run = ServiceRun(kafka=kafka, service=service, mistake=form == MISTAKE, folder=Path(folder))
        run.prepare()
        try:
            run.work_in_chaos(seed)
            broken = run.broken()
        except AssertionError as error:  # it was never done
            broken = [str(error).splitlines()[0]]
            if not kafka.reached()["moments"]:
                raise EnvironmentError_(
                    expected="a service that asks Kafka for something", seen=broken[0], where=service.name
                ) from None
        reached, took_s = kafka.reached(), round(time.monotonic() - begun, 1)
    return Row(
        service=service.name,
        form=form,
        seed=seed,
        broken=tuple(broken),
        strikes=tuple(reached["strikes"]),
        moments=reached["moments"],
        took_s=took_s,
    )


def one_by_events(service: Service, form: str, seed: int, language: str = PYTHON) -> Row:
    """Kill a consumer at moments of a seed, and judge its events.

    Args:
        service: of CONSUMERS.
        form: MISTAKE or RIGHT.
        seed: of the cluster and of the moments.
        language: of its program.
    """
    with tempfile.TemporaryDirectory() as folder:
        begun = time.monotonic()
        found = judged(
            CONSUMER_OF[service.name], seed, Path(folder), mistake=form == MISTAKE, language=language
        )
        return Row(
            service=service.name,
            form=form,
            seed=seed,
            broken=found.broken,
            strikes=found.strikes,
            took_s=round(time.monotonic() - begun, 1),
        )


@define
class Hunt:
    """The seeds of every form."""

    ledger: Ledger[Row]
    seeds: range
    correct: int
    one: Callable[[Service, str, int], Row]

    def row(self, service: Service, form: str, seed: int) -> Row:
        """From the ledger, or of a new run."""
        key = (service.name, form, seed)
        if key not in self.ledger.rows:
            self.ledger.add(self.one(service, form, seed))
        found: Row = self.ledger.rows[key]
        return found

    def mistake(self, service: Service) -> Done:
        """Seeds until one finds it."""
        for tried, seed in enumerate(self.seeds, 1):
            row = self.row(service, MISTAKE, seed)
            if row.broken:
                why = f"found at seed {seed}, the {tried}. one: {row.broken[0]}"
                return Done(case=service.name, why=why)
        return Done(case=service.name, outcome=FAILED, why=f"not found in {len(self.seeds)} seeds")

    def right(self, service: Service) -> Done:
        """Every seed, of which none finds anything."""
        name = f"{service.name}, {RIGHT}"
        for seed in range(self.seeds.start, self.seeds.start + self.correct):
            row = self.row(service, RIGHT, seed)
            if row.broken:
                return Done(case=name, outcome=FAILED, why=f"seed {seed}: {row.broken[0]}")
        return Done(case=name, outcome=OK, why=f"nothing in {self.correct} seeds")

    def table(self) -> str:
        """What the ledger says of each mistake and each correct form."""
        lines = ["| mistake | found at seed | seeds tried | strikes of that seed |", "|---|---|---|---|"]
        rows = sorted(self.ledger.rows.values(), key=lambda row: row.seed)
        for name in BY_NAME:
            tried = [row for row in rows if (row.service, row.form) == (name, MISTAKE)]
            found = next((row for row in tried if row.broken), None)
            if tried:
                seed, met = ("not", "") if found is None else (str(found.seed), "; ".join(found.strikes))
                lines.append(f"| {name} | {seed} | {len(tried)} | {met} |")
        lines += ["", "| correct form | seeds | with a finding |", "|---|---|---|"]
        for name in BY_NAME:
            tried = [row for row in rows if (row.service, row.form) == (name, RIGHT)]
            if tried:
                lines.append(f"| {name} | {len(tried)} | {sum(bool(row.broken) for row in tried)} |")
        return "\n".join(lines) + "\n"


def seeds_of(text: str) -> range:
    """A:B as a range. Raises PlanError."""
    begin, _, end = text.partition(":")
    if not (begin.isdigit() and end.isdigit() and int(begin) < int(end)):
        raise PlanError(expected="seeds such as 0:10", seen=repr(text), where="--seeds")
    return range(int(begin), int(end))


def sources(folders: tuple[str, ...]) -> str:
    """The digest of what outcomes depend on. folders: of the program's."""
    found = (path for folder in folders for path in (TOP / folder).rglob("*"))
    return digest(path for path in found if path.suffix in (".py", ".java", ".go", ".js", ".toml"))


@click.command("services")
@click.argument("names", nargs=-1)
@click.option("--seeds", default=SEEDS, show_default=True, metavar="A:B", help="Of each mistake.")
@click.option("--correct", default=CORRECT, show_default=True, help="Seeds of each correct form, from A on.")
@click.option("--events", is_flag=True, help="Twelve consumers, killed, and judged by their events alone.")
@click.option(
    "--language", type=click.Choice(LANGUAGES), default=PYTHON, help="With --events: of their programs."
)
@click.option("--out", type=click.Path(path_type=Path), default=OUT, show_default=True, help="The folder.")
def command(
    names: tuple[str, ...], seeds: str, correct: int, events: bool, language: str, out: Path
) -> ExitCode:
    """Hunt the mistakes of NAMES, or of all services, under chaos at applications."""
    name = "ledger" if not events else "events" if language == PYTHON else f"events-{language}"
    ledger = Ledger.open(
        out / f"{name}.jsonl",
        Row,
        key=lambda row: (row.service, row.form, row.seed),
        of="consumers by their events" if events else "services under chaos",
        asked={"sources": sources(OF_EVENTS if events else SOURCES)},
    )
    one = partial(one_by_events, language=language) if events else one_seed
    hunt = Hunt(ledger=ledger, seeds=seeds_of(seeds), correct=correct, one=one)
    cases: dict[str, Callable[[], Done]] = {}
    services = list(BY_NAME.values())
    if events:
        there = [each.service for each in CONSUMERS]
        services = [each for each in there if language == PYTHON or is_written(each.name, language)]
    for service in services:
        cases[service.name] = partial(hunt.mistake, service)
        if correct:
            cases[f"{service.name}, {RIGHT}"] = partial(hunt.right, service)
    chosen = [
        name
        for word in names or [each.name for each in services]
        for name in (word, f"{word}, {RIGHT}")
        if name in cases or name == word
    ]
    output = Output()
    code = run_cases(cases, chosen, output)
    (out / (f"{name}.md" if events else "table.md")).write_text(hunt.table(), encoding="utf-8")
    output.say(hunt.table())
    return code


if __name__ == "__main__":
    program.run(command, "services")
