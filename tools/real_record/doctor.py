"""`python -m tools.real_record.doctor [WORD...]` (`make measure NAME=doctor`): what operators complain about,
provoked on Apache Kafka, and what `fencepost doctor` says of it within 30 seconds.

Owns the scenarios, each with the name that must be said, and runs without any trouble, of which no finding is
expected, at Apache Kafka and at brokers of others. Must not know a rule of doctor's. What was finished is
kept: the next call goes on from there.
"""

import json
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import wait
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import rich_click as click
from attrs import define, evolve, field, frozen
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic  # type: ignore[attr-defined]

from fencepost.console.output import Output
from fencepost.systems.apache_kafka.administration import Administration, TopicOptions
from fencepost.systems.apache_kafka.cluster import ApacheKafka
from fencepost.systems.apache_kafka.jars import RECOMMENDED, SEPARATE, Release
from fencepost.traces.errors import ExitCode
from tools import program
from tools.ledger import Ledger
from tools.page import Place
from tools.program import FAILED, OK, SKIPPED, Done, run_cases
from tools.robustness.foreign_brokers import BROKERS, LacksError

MARK = "<!-- measured: doctor -->"
SECONDS = 30
"""How long doctor asks: each scenario must have a name within it."""
ROLLING_SECONDS = 75
"""For a rolling restart of three brokers, and some seconds before and after it."""
PATIENCE_S = 120.0
QUIET = {"log_level": 0}
SET = AlterConfigOpType.SET
SETTINGS = {"group.initial.rebalance.delay.ms": "0", "transaction.state.log.min.isr": "2"}


@frozen(kw_only=True)
class Scenario:
    """What is provoked, and what doctor must call it."""

    provoke: Callable[["Stage"], AbstractContextManager[None]]
    # The name of a finding or of a note; empty: there must be no finding.
    name: str = ""
    # A finding that would be wrong.
    never: str = ""
    seconds: int = SECONDS


@define(eq=False)
class Brokers:
    """Brokers, and what clients of a scenario need to know."""

    # Addresses.
    bootstrap: str
    # Of the scenario; topics and groups have it in their names.
    number: int = 0

    def client(self, **more: str | int | bool) -> dict[str, str | int | float | bool]:
        """Settings of a client. more: with underscores in place of points."""
        named = {name.replace("_", "."): value for name, value in more.items()}
        return {"bootstrap.servers": self.bootstrap, **QUIET, **named}


@define(eq=False, kw_only=True)
class Stage(Brokers):
    """A cluster of Apache Kafka, and what is done to it."""

    cluster: ApacheKafka

    @property
    def operator(self) -> Administration:
        """Who changes the cluster."""
        return Administration(self.bootstrap)

    def topic(self, *assignment: tuple[int, ...], **settings: str) -> str:
        """A new topic with these replicas by partition. Returns its name."""
        name = f"topic-{self.number}"
        said = {key.replace("_", "."): value for key, value in settings.items()}
        self.operator.create_topic(TopicOptions(name=name, assignment=assignment, settings=said))
        self.operator.wait_for(lambda: (name, 0) in self.operator.partitions(), f"{name} to be there")
        return name

    def fill(self, topic: str, records: int, size: int = 100) -> None:
        """Append so many records of so many bytes to partition 0."""
        producer = Producer(self.client(linger_ms=20, queue_buffering_max_messages=records + 1))
        for _ in range(records):
            producer.produce(topic, bytes(size), partition=0)
        producer.flush(PATIENCE_S)

    def throttle(self, topic: str, rate: int) -> None:
        """Bytes a second of all copies of a topic between brokers."""
        sides = ("leader.replication.throttled", "follower.replication.throttled")
        self._alter("topic", topic, {f"{side}.replicas": "*" for side in sides})
        for broker in self.cluster.brokers:
            self._alter("broker", str(broker), {f"{side}.rate": str(rate) for side in sides})

    def _alter(self, kind: str, name: str, values: Mapping[str, str]) -> None:
        entries = [ConfigEntry(*each, incremental_operation=SET) for each in values.items()]
        client = AdminClient({**self.client()})  # it must live until the answer
        resource = ConfigResource(kind, name, incremental_configs=entries)
        client.incremental_alter_configs([resource])[resource].result(PATIENCE_S)


# ---- what is provoked


@contextmanager
def open_transaction(stage: Stage) -> Iterator[None]:
    """A producer is killed with an open transaction, and its time-out is long."""
    topic = stage.topic((1, 2, 3))
    settings = json.dumps(stage.client(transactional_id=f"x-{stage.number}", transaction_timeout_ms=900_000))
    child = subprocess.Popen([sys.executable, "-c", KILLED, settings, topic], stdout=subprocess.PIPE)
    with child:
        assert child.stdout is not None
        said = child.stdout.readline()
        child.send_signal(signal.SIGKILL)
    assert said.strip() == b"open", "the transaction was open when its producer was killed"
    stage.fill(topic, 100)
    yield


KILLED = """
import json, sys, time
from confluent_kafka import Producer
producer = Producer(json.loads(sys.argv[1]))
producer.init_transactions(120)
producer.begin_transaction()
producer.produce(sys.argv[2], b"1", partition=0)
producer.flush(120)
print("open", flush=True)
time.sleep(600)
"""


@contextmanager
def throttled_reassignment(stage: Stage) -> Iterator[None]:
    """A replica is added, and a throttle makes its copy take minutes."""
    topic = stage.topic((1,))
    stage.fill(topic, 30_000, 1_000)
    stage.throttle(topic, 200_000)
    stage.operator.reassign(topic, 0, (1, 2))
    yield
    stage.throttle(topic, 1_000_000_000)


@contextmanager
def stopped_follower(stage: Stage) -> Iterator[None]:
    """A follower's process is stopped; its kernel still accepts connections."""
    stage.topic((1, 2, 3), min_insync_replicas="2")
    stage.cluster.pause(3)
    yield
    stage.cluster.resume(3)


@contextmanager
def flapping_member(stage: Stage) -> Iterator[None]:
    """Two members stay, a third one joins and leaves again and again."""
    topic = stage.topic((1, 2, 3), (2, 3, 1), (3, 1, 2))
    stage.fill(topic, 1_000)
    with in_threads(
        *(partial(member, stage, topic, name, 1e9) for name in ("one", "two")),
        partial(member, stage, topic, "flapping", 2),
    ):
        yield


@contextmanager
def cut_from_controllers(stage: Stage) -> Iterator[None]:
    """A broker and the controllers do not reach each other; clients reach both."""
    stage.topic((1, 2, 3), (2, 3, 1), (3, 1, 2))
    assert stage.cluster.network is not None, "its links can be cut"
    stage.cluster.network.cut_controllers("cut", 3)
    yield
    stage.cluster.network.heal("cut")


@contextmanager
def min_isr_above_living(stage: Stage) -> Iterator[None]:
    """min.insync.replicas is three, and two replicas live."""
    stage.topic((1, 2, 3), min_insync_replicas="3")
    stage.cluster.kill(3)
    yield
    stage.cluster.restart(3)


# ---- what clients do meanwhile


def member(stage: Brokers, topic: str, name: str, lives_s: float, over: threading.Event) -> None:
    """A member of the scenario's group that reads, leaves after so many seconds, and joins anew."""
    settings = stage.client(group_id=f"group-{stage.number}", client_id=name, auto_offset_reset="earliest")
    while not over.is_set():
        with closing(Consumer(settings)) as consumer:
            consumer.subscribe([topic])
            end = time.monotonic() + lives_s
            while not over.is_set() and time.monotonic() < end:
                consumer.poll(0.1)
        over.wait(1)


def appender(stage: Brokers, topic: str, over: threading.Event) -> None:
    """A hundred records a second."""
    producer = Producer(stage.client(enable_idempotence=True))
    while not over.wait(0.1):
        for _ in range(10):
            producer.produce(topic, bytes(100))
        producer.poll(0)
    producer.flush(PATIENCE_S)


def transactor(stage: Stage, topic: str, over: threading.Event) -> None:
    """A transaction after the other; every third is aborted. One that fails ends the producer, as it must."""
    number = 0
    while not over.is_set():
        producer = Producer(stage.client(transactional_id=f"load-{stage.number}"))
        try:
            producer.init_transactions(PATIENCE_S)
            while not over.wait(0.2):
                number += 1
                producer.begin_transaction()
                producer.produce(topic, bytes(100))
                (producer.commit_transaction if number % 3 else producer.abort_transaction)(PATIENCE_S)
        except KafkaException:
            over.wait(0.5)


@contextmanager
def in_threads(*works: Callable[[threading.Event], None]) -> Iterator[None]:
    """Each work goes on until the end of the block."""
    over = threading.Event()
    threads = [threading.Thread(target=work, args=(over,)) for work in works]
    for each in threads:
        each.start()
    try:
        yield
    finally:
        over.set()
        for each in threads:
            each.join()


@contextmanager
def load(stage: Stage, *more: Callable[[threading.Event], None], lives_s: float = 1e9) -> Iterator[None]:
    """Producers, and a group of two whose members are replaced after lives_s."""
    topic = stage.topic((1, 2, 3), (2, 3, 1), (3, 1, 2), min_insync_replicas="2")
    readers = [partial(member, stage, topic, name, lives_s) for name in ("one", "two")]
    with in_threads(partial(appender, stage, topic), partial(transactor, stage, topic), *readers, *more):
        time.sleep(3)
        yield


def rolling_restart(stage: Stage, over: threading.Event) -> None:
    """Each broker is stopped by SIGTERM, started, and waited for."""
    for broker in stage.cluster.brokers:
        if over.wait(3):
            return
        stage.cluster.stop(broker)
        while stage.cluster.runs(broker):
            time.sleep(0.1)
        stage.cluster.restart(broker)
        stage.cluster.wait_until_healthy()


@contextmanager
def restarts(stage: Stage) -> Iterator[None]:
    """A rolling restart under load, while members are replaced."""
    with load(stage, partial(rolling_restart, stage), lives_s=ROLLING_SECONDS / 2):
        yield


HELD = "an open transaction holds the last stable offset"
SCENARIOS = {
    "a producer killed in a transaction": Scenario(
        provoke=open_transaction, name=HELD, never="hanging_transaction"
    ),
    "a throttled reassignment": Scenario(provoke=throttled_reassignment, name="a reassignment is under way"),
    "a stopped follower": Scenario(provoke=stopped_follower, name="a broker is away"),
    "a member that flaps": Scenario(provoke=flapping_member, name="members come and go"),
    "a broker cut from the controllers": Scenario(provoke=cut_from_controllers, name="metadata_disagrees"),
    "min.insync.replicas above what lives": Scenario(provoke=min_isr_above_living, name="below_min_isr"),
    "load": Scenario(provoke=load),
    "a rolling restart under load": Scenario(provoke=restarts, seconds=ROLLING_SECONDS),
}
HEALTHY = 5
"""Runs of each scenario without a trouble."""


# ---- what doctor says


def asked(bootstrap: str, seconds: int) -> dict[str, Any]:
    """What doctor says after so many seconds."""
    words = ("doctor", "--bootstrap", bootstrap, "--seconds", str(seconds), "--json")
    done = subprocess.run(
        [sys.executable, "-m", "fencepost", *words], capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 1):
        raise AssertionError(f"doctor ended with {done.returncode}: {done.stderr[-3000:]}")
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def outcome(name: str, scenario: Scenario, said: dict[str, Any]) -> Done:
    """Whether it is what was to be said."""
    found = [one["name"] for one in said["findings"]]
    names = [(kind, one) for kind in ("findings", "notes") for one in said[kind]]
    called = next(((kind[:-1], one) for kind, one in names if one["name"] == scenario.name), None)
    also = ", ".join(dict.fromkeys(each for each in found if each != scenario.name))
    if not scenario.name or scenario.never in found:
        why = f"finding: {also}" if found else f"nothing in {said['questions']} questions"
        return Done(case=name, outcome=FAILED if found else OK, why=why)
    if called is None:
        return Done(case=name, outcome=FAILED, why=f"not named; findings: {also or 'none'}")
    kind, one = called
    more = f"; also found: {also}" if also else ""
    return Done(case=name, why=f"{kind} `{one['name']}`: {one['seen']}{more}")


@define(eq=False)
class Tour:
    """Scenarios on one cluster for each version."""

    folder: Path
    ledger: Ledger[Done]
    _version: str = ""
    _cluster: ApacheKafka | None = None
    _open: ExitStack = field(factory=ExitStack)

    def _lacks(self, case: str) -> bool:
        """Whether it is to be run: one that failed is run again."""
        return case not in self.ledger.rows or self.ledger.rows[case].outcome == FAILED

    def one(self, version: str, number: int, case: str, scenario: Scenario) -> Done:
        """From the ledger, or of a new run."""
        if self._lacks(case):
            cluster = self._at(version)
            stage = Stage(bootstrap=cluster.bootstrap_servers(), number=number, cluster=cluster)
            stage.cluster.wait_until_healthy()
            with scenario.provoke(stage):
                said = asked(stage.bootstrap, scenario.seconds)
            self.ledger.add(outcome(case, scenario, said))
        found: Done = self.ledger.rows[case]
        return found

    def foreign(self, case: str, command: Callable[[Path], list[str]]) -> Done:
        """A broker of others with a producer and a group: no finding, and what it does not answer is said."""
        if self._lacks(case):
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                serve = command(self.folder.absolute())
            except LacksError as lacks:
                return Done(case=case, outcome=SKIPPED, why=str(lacks))
            with subprocess.Popen(serve, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as broker:
                assert broker.stdout is not None
                stage = Brokers(bootstrap=broker.stdout.readline().strip())
                client = AdminClient({**stage.client()})
                wait(
                    client.create_topics([NewTopic("t", 2, 1)]).values(), SECONDS
                )  # or the first append does
                works = (partial(appender, stage, "t"), partial(member, stage, "t", "one", 1e9))
                with in_threads(*works):
                    said = asked(stage.bootstrap, SECONDS)
                broker.kill()
            done = outcome(case, Scenario(provoke=load), said)
            silent = [line for line in said["not_judged"] if "needs" not in line]
            self.ledger.add(evolve(done, why=f"{done.why}; not judged: {'; '.join(silent) or 'nothing'}"))
        found: Done = self.ledger.rows[case]
        return found

    def _at(self, version: str) -> ApacheKafka:
        if self._cluster is None or self._version != version:
            self.close()
            cluster = ApacheKafka(
                directory=self.folder / f"{version}-{time.time_ns()}",
                release=Release(version=version, controllers=SEPARATE),
                separate=1,
                proxied=True,
                settings=SETTINGS,
            )
            self._cluster, self._version = self._open.enter_context(cluster), version
        return self._cluster

    def close(self) -> None:
        """End the cluster."""
        self._open.close()
        self._cluster = None


def cases_of(tour: Tour, healthy: int) -> dict[str, Callable[[], Done]]:
    """All cases by name. healthy: how often those without a trouble."""
    found: dict[str, Callable[[], Done]] = {}
    for version in RECOMMENDED:
        for name, scenario in SCENARIOS.items():
            for turn in range(1 if scenario.name else healthy):
                case = f"{version}: {name}" + ("" if scenario.name else f", {turn + 1}")
                found[case] = partial(tour.one, version, len(found), case, scenario)
    for name in ("kfake", "librdkafka's mock"):
        found[name] = partial(tour.foreign, name, BROKERS[name].command)
    return found


@click.command("doctor", help=__doc__)
@click.argument("words", nargs=-1)
@click.option("--out", type=click.Path(path_type=Path), default=Path("out/doctor"), help="kept outcomes")
@click.option("--healthy", default=HEALTHY, help="runs of each scenario without a trouble, of each version")
@click.option("--docs", type=click.Path(path_type=Path), help="put the table between this page's marks")
def command(words: tuple[str, ...], out: Path, healthy: int, docs: Path | None) -> ExitCode:
    """Provoke all scenarios, or those that are named."""
    ledger = Ledger.open(out / "ledger.jsonl", Done, key=lambda done: done.case, of="doctor's scenarios")
    tour = Tour(out, ledger)
    cases = cases_of(tour, healthy)
    try:
        code = run_cases(cases, words, Output())
    finally:
        tour.close()
    if docs is not None:
        rows = [ledger.rows[case] for case in cases if case in ledger.rows]
        Place(page=docs, mark=MARK).write_table(lines_of(rows))
    return code


CELL = 200
"""Characters of a cell."""


def lines_of(rows: Iterable[Done]) -> list[str]:
    """The table: what was done several times is one row, with all that was said."""
    said: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        short = textwrap.shorten(row.why.replace("|", "/"), CELL, placeholder=" ...")
        said.setdefault((re.sub(r", \d+$", "", row.case), row.outcome), []).append(short)
    lines = ["| case | what doctor said |", "|---|---|"]
    for (case, outcome), texts in said.items():
        times = f", {len(texts)} times" if len(texts) > 1 else ""
        mark = "" if outcome == OK else f"**{outcome}**: "
        lines.append(f"| {case}{times} | {mark}{'; '.join(dict.fromkeys(texts))} |")
    return lines


if __name__ == "__main__":
    program.run(command, "real_record.doctor")
