"""Twelve consumers of the zoo, judged by their events alone, over kill -9 at random moments.

Owns the table of what each promises and what its mistake is called, and the run. Must not know pytest, nor
the rules of the judge (fencepost/checkers/application).

A moment is drawn in lines of the service's file, so that it is in the middle of its work however slow the
machine is, and in milliseconds after them, so that it is also where no line is written.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from attrs import define, field, frozen

from fencepost.application.event_columns import read_events
from fencepost.application.tap import Tap
from fencepost.checkers.application.application_judge import Claims, Ordered, Promise, judge_events
from fencepost.checkers.verdict import Decision
from fencepost.kafka.services import Service as Process
from fencepost.traces.errors import PlanError
from tests.services import other_languages
from tests.services.promises import Result
from tests.services.running import MOST_ROUNDS, MOST_STARTS, ROUND_MS, ServiceRun, zoo_cluster
from tests.services.zoo import BY_NAME, REFUSED, Order, Service, more_orders

LOSS = ("record_never_processed", "committed_before_processed")
TWICE = ("processed_twice", "twice_in_sink")
PYTHON = "python"
LANGUAGES = (PYTHON, *other_languages.LANGUAGES)
KILLS = 3
ORDERS = 60
"""Of a run."""
LOOK_S = 0.001
STARTS_S = 120.0
"""Longest wait for the first line of a process: a crowded machine."""
IDLE_S, LONGEST_S = 0.4, 10.0
"""How long a service at work writes nothing before it gets another order, and before it is killed anyway."""
REBALANCES = 3
PREFIX = b"invoice for "


@frozen(kw_only=True)
class Consumer:
    """What a consumer of the zoo promises, and what is to be found where it makes its mistake."""

    # Of its service.
    name: str
    claims: Claims
    # Anomalies, of which one at least is found.
    shows: tuple[str, ...]
    # A fault of requests that its mistake needs besides being killed, and that the correct form bears.
    fault: str = ""
    # Whether its group joins again at random moments, too.
    rebalances: bool = False
    # Whether its results are given to the judge, as rows of a sink.
    sink: bool = False

    @property
    def service(self) -> Service:
        """Of the zoo."""
        return BY_NAME[self.name]


AT_LEAST = Claims()
ANY_ORDER = Claims(ordered=Ordered.NONE)
EXACTLY = Claims(promise=Promise.EXACTLY_ONCE)
ONE_ROW = Claims(promise=Promise.EXACTLY_ONCE, allowed=frozenset({"processed_twice"}))
"""What is done again leaves no second row."""
SLOW_RESULT = "delay Produce on invoices by 20ms"
# what a killed process has sent is carried out all the same: only its answers are late
LATE_RESULT = "delay answer to Produce on invoices by 20ms"
LATE_END = "delay answer to EndTxn by 20ms"
BUSY_COMMIT = "answer COORDINATOR_LOAD_IN_PROGRESS to OffsetCommit of group billing, 1 in 2"

CONSUMERS = (
    Consumer(name="commit_before_work", claims=AT_LEAST, shows=LOSS),
    Consumer(name="auto_commit_threads", claims=ANY_ORDER, shows=LOSS, fault=SLOW_RESULT),
    Consumer(name="swallowed_exception", claims=AT_LEAST, shows=LOSS, fault=REFUSED),
    Consumer(name="latest_at_first_start", claims=AT_LEAST, shows=("record_skipped_at_start",)),
    Consumer(name="buffer_at_revocation", claims=AT_LEAST, shows=LOSS, rebalances=True),
    Consumer(name="order_lost_in_pool", claims=AT_LEAST, shows=("processed_out_of_order",)),
    Consumer(name="position_kept", claims=AT_LEAST, shows=LOSS, rebalances=True),
    Consumer(name="offsets_in_database", claims=EXACTLY, shows=TWICE, sink=True),
    Consumer(name="dedupe_in_memory", claims=ONE_ROW, shows=TWICE, sink=True, fault=BUSY_COMMIT),
    Consumer(name="offset_of_the_record", claims=EXACTLY, shows=TWICE, sink=True),
    Consumer(name="no_transaction", claims=EXACTLY, shows=TWICE, sink=True, fault=LATE_RESULT),
    Consumer(name="offsets_outside_transaction", claims=EXACTLY, shows=TWICE, sink=True, fault=LATE_END),
)
CONSUMER_OF: Mapping[str, Consumer] = {each.name: each for each in CONSUMERS}


@define(eq=False, kw_only=True)
class EventsRun(ServiceRun):
    """A service that writes its events; so does the shop that sends its orders."""

    consumer: Consumer
    # Of its program: one of LANGUAGES.
    language: str = PYTHON
    # What was done to it, in words.
    strikes: list[str] = field(factory=list, init=False)
    _taps: list[Tap] = field(factory=list, init=False)

    @property
    def events(self) -> Path:
        """The service's file."""
        return self.folder / "service.events"

    def _tap(self, name: str) -> Tap:
        tap = Tap(self.folder / name, ids=False)
        self._taps.append(tap)
        return tap

    def _producer(self, **options: str) -> Any:
        return self._tap("shop.events").producer(super()._producer(**options))

    def results(self) -> list[Result]:
        """What it has written so far."""
        if self.language != PYTHON and self.service.in_database:
            return other_languages.stored(self.folder)
        return super().results()

    def _start(self) -> AbstractContextManager[Process]:
        if self.language != PYTHON:
            command = other_languages.command(self.service.name, self.language)
            return self.kafka.service(command, self._environment())
        return super()._start()

    def _environment(self) -> dict[str, str]:
        own = {"SERVICE_EVENTS": str(self.events), "SERVICE_MISTAKE": str(self.mistake).lower()}
        return super()._environment() | own

    def work_killed(self, seed: int, kills: int) -> None:
        """Let it do all its work, and kill it in between.

        Args:
            seed: of the moments.
            kills: how often.
        """
        random, orders = Random(seed), islice(more_orders(100), ORDERS)
        if self.consumer.fault:
            self.kafka.request_fault(self.consumer.fault)
        for _ in range(kills):
            with self._start() as process:
                self._moment(random, orders, process, STARTS_S)
                process.kill()
                self.strikes.append(f"killed after {self._lines()} lines")
        self._rest(random, orders)
        self._rows()

    def _moment(
        self, random: Random, orders: Iterator[Order], process: Process, first_s: float = LONGEST_S
    ) -> None:
        """Wait for a moment of a process at work. It gets orders, and more when it writes nothing. first_s:
        how long its next line may take."""
        begin = self._lines()
        until, later_ms = begin + random.randrange(3, 24), random.randrange(0, 25)
        self._send(islice(orders, random.randrange(6, 14)))
        heard = sent = time.monotonic()
        lines = begin
        while lines < until and process.poll() is None:
            now, before, lines = time.monotonic(), lines, self._lines()
            if lines > before:
                heard = sent = now
            elif now > heard + (LONGEST_S if lines > begin else first_s):
                break
            elif lines > begin and now > sent + IDLE_S:
                self._send(islice(orders, 1))
                sent = now
            time.sleep(LOOK_S)
        time.sleep(later_ms / 1_000)

    def _rest(self, random: Random, orders: Iterator[Order]) -> None:
        """Let it do what is left. One that has dropped an order is not done before it gets another one."""
        more, rounds = more_orders(1_000), 0
        for _ in range(MOST_STARTS):
            with self._start() as process:
                for _ in range(REBALANCES if self.consumer.rebalances else 0):
                    self._moment(random, orders, process)
                    with suppress(PlanError):  # it has ended, and nobody is in its group
                        self.kafka.rebalance(self.group)
                    self.strikes.append(f"rebalanced after {self._lines()} lines")
                self._send(orders)
                while rounds < MOST_ROUNDS and process.poll() is None:
                    self._until_at_most(lambda: self.done() or process.poll() is not None, ROUND_MS)
                    if self.done():
                        return
                    self._send(islice(more, 1))
                    rounds += 1

    def _lines(self) -> int:
        return self.events.read_bytes().count(b"\n") if self.events.exists() else 0

    def _rows(self) -> None:
        """Write what its store holds, and what the shop's producer still has to say."""
        if self.consumer.sink:
            tap = self._tap("store.events")
            for _, value in self.results():
                order = (value or b"").removeprefix(PREFIX)
                tap.write("sink", "store", value=tap.contents(None, order, None)["value"])
        for tap in self._taps:
            tap.close()


@frozen(kw_only=True)
class Outcome:
    """Of a run of a consumer."""

    # The judge's sentences that count: of a mistake, those that show it; of a correct form, all.
    broken: tuple[str, ...]
    # What was done to it.
    strikes: tuple[str, ...]
    events: int


def judged(
    consumer: Consumer, seed: int, folder: Path, *, mistake: bool, kills: int = KILLS, language: str = PYTHON
) -> Outcome:
    """Run a consumer, and judge its events alone.

    Args:
        consumer: of CONSUMERS.
        seed: of the cluster and of the moments.
        folder: for its files.
        mistake: whether it makes its mistake.
        kills: how often it is killed.
        language: of its program.
    """
    with zoo_cluster(seed) as kafka:
        run = EventsRun(
            kafka=kafka,
            service=consumer.service,
            consumer=consumer,
            mistake=mistake,
            folder=folder,
            language=language,
        )
        run.prepare()
        run.work_killed(seed, kills)
    events = read_events(sorted(folder.glob("*.events")))
    verdict = judge_events(events, consumer.claims).verdict
    broken = [
        f"{found.anomaly}: {found.seen}"
        for found in verdict.findings
        if not mistake or found.anomaly in consumer.shows
    ]
    if not broken and verdict.decision is Decision.UNKNOWN:
        broken = [] if mistake else [f"unknown: {verdict.reason} ({'; '.join(events.left_out[:3])})"]
    return Outcome(broken=tuple(broken), strikes=tuple(run.strikes), events=len(events))
