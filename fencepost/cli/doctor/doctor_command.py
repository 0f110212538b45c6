"""`fencepost doctor`: asks a live cluster for a while, and says what is wrong.

Owns the options, and how findings, notes and what was not judged are printed. Must not know any rule: those
are rows of the check of liveness, so that `check` says the same of what --record keeps.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click
from attrs import define, field

from fencepost import __version__
from fencepost.cli.cluster.client.client_options import addresses
from fencepost.console.options import FILE, FOLDER, NumberRange, default_option, json_option
from fencepost.console.output import Output
from fencepost.traces.errors import ExitCode

if TYPE_CHECKING:
    from fencepost.asked.live import Watched
    from fencepost.checkers.liveness.live import Shown

MOST_LISTED = 20
"""Findings of one kind that are printed; --json has all."""


@click.command("doctor")
@click.option(
    "--bootstrap", metavar="HOST:PORT,...", callback=addresses, required=True, help="Bootstrap servers."
)
@click.option(
    "--command-config",
    type=FILE,
    metavar="FILE",
    help="How to log in, as Kafka's own tools take it: security.protocol, sasl.mechanism (PLAIN, "
    "SCRAM-SHA-256, SCRAM-SHA-512), sasl.jaas.config, ssl.truststore.location with type PEM.",
)
@default_option(
    "--seconds",
    type=NumberRange(1, 86_400),
    default=10.0,
    help="How long to ask. A state that a healthy cluster has for a while is a finding once it lasted for "
    "its bound: 70 s span nearly all bounds.",
)
@click.option("--watch", "endless", is_flag=True, help="Go on until Ctrl-C, and say findings as they come.")
@click.option(
    "--topic",
    "topics",
    multiple=True,
    metavar="PATTERN",
    help="Ask about these topics only: `orders*`. May be repeated. Under a replication throttle name "
    "all that are copied: one moves after the other.",
)
@default_option(
    "--requests-per-second",
    "per_second",
    type=NumberRange(0.1, 10_000),
    default=20.0,
    help="Ask no more than that, one question at a time.",
)
@click.option(
    "--record",
    type=FOLDER,
    metavar="DIR",
    help="Keep the answers as a trace, for `fencepost check` and `show`. With --watch the last ten minutes.",
)
@json_option
def command(
    bootstrap: tuple[tuple[str, int], ...],
    command_config: Path | None,
    seconds: float,
    endless: bool,
    topics: tuple[str, ...],
    per_second: float,
    record: Path | None,
    output: Output,
) -> ExitCode:
    """Ask a live Kafka cluster what is wrong with it. Nothing is changed, created or moved.

    Brokers, partitions, transactions, groups and reassignments are asked about by Kafka's protocol. A finding
    says what was expected and seen, by whom, since when, and the command of Kafka's own tools. A note may be
    meant to be so. What could not be judged is said. Exit code 0: nothing, or notes only; 1: findings; 2: no
    broker answers, or wrong usage; 3: nothing could be judged. docs/how-to/doctor.md goes from symptoms to
    answers.

    \b
    Examples
      fencepost doctor --bootstrap broker-1:9092,broker-2:9092
      # long enough for all but rebalances; keep what was answered
      fencepost doctor --bootstrap broker-1:9092 --seconds 70 --record out/day
      # with the login of Kafka's own tools
      fencepost doctor --bootstrap broker-1:9093 --command-config client.properties
    """
    from fencepost.asked.live import Watch, Watched, watch
    from fencepost.cli.doctor.command_config import access_of

    order = Watch(
        bootstrap=bootstrap,
        access=access_of(command_config),
        seconds=None if endless else seconds,
        per_second=per_second,
        topics=topics,
    )
    watched = Watched()
    report = Report(watched, ",".join(f"{host}:{port}" for host, port in bootstrap), output, topics)
    with output.progress("asking") as bar:

        def after_round() -> None:
            bar.to(watched.rounds, f"{watched.questions} questions")
            if endless:
                report.say_new()

        try:
            watch(order, watched, after_round)
        except KeyboardInterrupt:
            if not endless:
                raise
    if record is not None:
        _keep(record, watched, output)
    return report.end(per_second)


@define(eq=False)
class Report:
    """What is said of a cluster."""

    watched: "Watched"
    bootstrap: str
    output: Output
    # Patterns of topics; none: all.
    topics: tuple[str, ...] = ()
    # Findings that were printed already: name and subject.
    printed: set[Any] = field(factory=set)

    def say_new(self) -> "list[Shown]":
        """Print the findings that were not printed yet; returns all that there are now."""
        found = [one for one in self._shown() if one.is_due and not one.row.note]
        fresh = [one for one in found if (one.row.name, one.last.subject) not in self.printed]
        for name in dict.fromkeys(one.row.name for one in fresh):
            of = [one for one in fresh if one.row.name == name]
            for one in of[:MOST_LISTED]:
                self._say("finding", one)
            if len(of) > MOST_LISTED:
                self.output.say(f"  and {len(of) - MOST_LISTED} more of {name}")
        self.printed |= {(one.row.name, one.last.subject) for one in fresh}
        return found

    def end(self, per_second: float) -> ExitCode:
        """Print what is left, and return the exit code. per_second: the bound."""
        from fencepost.asked.live import BYTES_PER_SECOND
        from fencepost.checkers.liveness.live import not_judged

        events = tuple(self.watched.events)
        found = self.say_new()
        shown = self._shown()
        notes = [one for one in shown if one.row.note and one.is_due]
        begun = [one for one in shown if not one.row.note and not one.is_due and self._goes_on(one)]
        for one in notes[:MOST_LISTED]:
            self._say("note", one)
        if len(notes) > MOST_LISTED:
            self.output.say(f"  and {len(notes) - MOST_LISTED} more notes; --json has them all")
        for one in begun[:MOST_LISTED]:
            self._say(f"so far (a finding after {one.row.bound_s} s)", one)
        lines = [*sorted(self.watched.unasked), *not_judged(events)]
        if self.topics and not self.watched.topics:
            lines.insert(0, f"no topic is like {', '.join(self.topics)}")
        for line in lines:
            self.output.say(f"not judged: {line}")
        self.output.say(
            f"{self._summary(len(found), len(notes))}; {per_second:g} questions and "
            f"{BYTES_PER_SECOND // 1024} KiB of answers a second at most"
        )
        seen = self.watched
        code = (
            ExitCode.FINDINGS if found else ExitCode.NOTHING_FOUND if self._judged() else ExitCode.UNDECIDED
        )
        return self.output.end(
            code,
            {
                "findings": [self._row(one) for one in found],
                "notes": [self._row(one) for one in notes],
                "so_far": [self._row(one) for one in begun],
                "not_judged": lines,
                "brokers": seen.brokers,
                "topics": seen.topics,
                "groups": seen.groups,
                "transactional_ids": seen.transactional_ids,
                "rounds": seen.rounds,
                "questions": seen.questions,
                "bytes": seen.bytes,
                "bytes_per_second_at_most": BYTES_PER_SECOND,
            },
        )

    def _shown(self) -> "tuple[Shown, ...]":
        from fencepost.checkers.liveness.live import shown_by

        return shown_by(tuple(self.watched.events))

    def _goes_on(self, one: "Shown") -> bool:
        """Whether more than one answer showed it, the last one in the last two rounds."""
        rounds = [event for event in self.watched.events if event.cause == "brokers"]
        recent = rounds[-2 * len(self.watched.brokers) :]
        return one.count > 1 and bool(recent) and one.last.end >= recent[0].time

    def _judged(self) -> bool:
        """Whether any broker said anything of a partition, or there is none in the whole cluster."""
        answered = {event.cause for event in self.watched.events if '"error"' not in (event.detail or "")}
        if not self.watched.topics:
            return "brokers" in answered and not self.topics
        return "partition" in answered

    def _summary(self, found: int, notes: int) -> str:
        seen = self.watched
        counted = (
            (len(seen.brokers), "brokers"),
            (len(seen.topics), "topics"),
            (len(seen.groups), "groups"),
            (len(seen.transactional_ids), "transactional ids"),
        )
        return (
            f"{found} findings, {notes} notes; {', '.join(f'{count} {what}' for count, what in counted)}; "
            f"{seen.rounds} rounds, {seen.questions} questions, {seen.bytes // 1024} KiB"
        )

    def _row(self, one: "Shown") -> dict[str, Any]:
        from fencepost.checkers.liveness.live import BOOTSTRAP

        last = one.last
        return {
            "name": one.row.name,
            "topic": last.topic,
            "partition": last.partition,
            "offset": last.offset,
            "expected": last.expected,
            "seen": last.seen,
            "by": self.watched.events[last.event].node,
            "since": datetime.fromtimestamp(one.first.begin / 1e9, UTC).isoformat(timespec="seconds"),
            "lasted_s": round(one.lasted / 1e9, 1),
            "answers": one.count,
            "command": last.command.replace(BOOTSTRAP, self.bootstrap),
        }

    def _say(self, kind: str, one: "Shown") -> None:
        row = self._row(one)
        place = row["topic"] or ""
        if row["topic"] and row["partition"] >= 0:
            place = f"{place}-{row['partition']}"
        self.output.say(f"{kind}: {row['name']} {place}".rstrip())
        self.output.say(f"  expected {row['expected']}", f"  saw {row['seen']}")
        self.output.say(f"  since {row['since']}, {row['answers']} answers, the last of broker {row['by']}")
        if row["command"]:
            self.output.say(f"  {row['command']}")


def _keep(folder: Path, watched: "Watched", output: Output) -> None:
    """Add what was answered to a folder of traces."""
    from fencepost.report.commands import check_traces
    from fencepost.traces.sealing import seal
    from fencepost.traces.store import TraceStore
    from fencepost.traces.trace import Trace

    store = TraceStore.create(folder)
    number = max(store.trace_ids(), default=-1) + 1
    trace = Trace(
        trace_id=number,
        plan="",
        seed=0,
        target="kafka",
        software_version=__version__,
        profile="doctor",
        events=tuple(watched.events),
    )
    with store.writer("doctor") as writer:
        writer.append(trace)
    seal(store)
    output.note(f"kept as trace {number}: {check_traces(folder)}")
