"""What a client library can do against a cluster, one check for each cell of a table.

Owns the checks. Each writes through the library and reads the log with our own client (truth.py), or the other
way round, and compares: key, value, headers, time, order, codec, the producer's id. Must not know how a driver
was built.
"""

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import define, frozen

from fencepost.kafka import KafkaCluster
from fencepost.torture.building import Built
from fencepost.torture.driver import Command, Driver
from fencepost.torture.protocol import DriverError, decoded, encoded
from fencepost.torture.truth import Entry, read_log, topics

RECORDS = 60
"""Of a check, over its partitions: enough for several batches."""
PARTITIONS = 3
SOON_S = 30.0
"""Longest wait of a check for what takes a fraction of a second on an idle machine."""
LOOK_S = 0.05
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
_NUMBERS = itertools.count()
"""For names that nobody used before."""

Wanted = tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]
"""Key, value and headers of a record."""


class WrongError(Exception):
    """A check that failed, with what was expected and seen."""


@define(eq=False, kw_only=True)
class Bench:
    """A driver, and the cluster that it is tried on."""

    driver: Driver
    bootstrap_servers: str
    create_topic: Callable[[str], None]
    """Makes a topic of PARTITIONS partitions that clients find."""

    def topic(self) -> str:
        """A fresh one."""
        name = f"topic-{next(_NUMBERS)}"
        self.create_topic(name)
        return name

    def opened(self, role: str, **config: Any) -> str:
        """A fresh client. Raises WrongError."""
        name = f"{role}-{next(_NUMBERS)}"
        self.done("open", name, role=role, config={"bootstrap": self.bootstrap_servers, **config})
        return name

    def done(self, command: str, client: str, **fields: Any) -> dict[str, Any]:
        """What a command answers. Raises WrongError if the library failed."""
        asked = self.driver.ask(command, client, SOON_S * 2, **fields)
        if not asked.ok:
            raise WrongError(f"{command}: {asked.error}")
        assert asked.answer is not None
        return asked.answer

    def until(self, expected: str, look: Callable[[], tuple[bool, Any]]) -> None:
        """Wait until it is so. Raises WrongError."""
        deadline = time.monotonic() + SOON_S
        while True:
            reached, seen = look()
            if reached:
                return
            if time.monotonic() > deadline:
                raise WrongError(f"expected {expected}, saw {seen}")
            time.sleep(LOOK_S)

    # ---- records

    def append(
        self, producer: str, topic: str, count: int = RECORDS, *, nulls: bool = False
    ) -> list[Command]:
        """Many records in flight at once, over all partitions; waits for their answers. nulls: with null
        values of headers."""
        commands = [
            self.driver.send(
                "append",
                producer,
                topic=topic,
                partition=number % PARTITIONS,
                key=encoded(record[0]),
                value=encoded(record[1]),
                headers=[[name, encoded(value)] for name, value in record[2]],
                timestamp_ms=FIRST_MS + number,
            )
            for number, record in enumerate(records(count, nulls=nulls))
        ]
        if not self.driver.wait(commands, SOON_S * 2):
            open_ = sum(command.answer is None for command in commands)
            raise WrongError(f"append: {open_} of {count} records have no answer")
        return commands

    def produce(self, *, nulls: bool = False, **config: Any) -> tuple[str, Mapping[int, tuple[Entry, ...]]]:
        """Produce with these settings and compare with the log; answers the topic and its log."""
        topic = self.topic()
        producer = self.opened("producer", **config)
        commands = self.append(producer, topic, nulls=nulls)
        failed = [command for command in commands if not command.ok]
        if failed:
            raise WrongError(
                f"append: {len(failed)} of {len(commands)} failed, the first with {failed[0].error}"
            )
        self.done("close", producer, timeout_ms=10_000)
        # with acks=0 and 1 records are not below the high watermark yet
        self.until(f"{RECORDS} records", lambda: _count(read_log(self.bootstrap_servers, topic)))
        log = read_log(self.bootstrap_servers, topic)
        compare(log, commands, acknowledged=config.get("acks") != 0)
        return topic, log

    def consume(self, client: str, count: int, into: "dict[tuple[int, int], dict[str, Any]]") -> None:
        """Poll until so many more records came."""
        wanted = len(into) + count
        deadline = time.monotonic() + SOON_S
        while len(into) < wanted:
            if time.monotonic() > deadline:
                raise WrongError(f"expected {wanted} records, saw {len(into)} within {SOON_S:g} s")
            for record in self.done("poll", client, timeout_ms=500, max_records=200)["records"]:
                into[record["partition"], record["offset"]] = record


def _count(log: Mapping[int, Sequence[Entry]]) -> tuple[bool, int]:
    count = sum(len(entries) for entries in log.values())
    return count >= RECORDS, count


FIRST_MS = 1_700_000_000_000
"""Of the records' times."""


def records(count: int, *, nulls: bool) -> list[Wanted]:
    """Records with every shape: null and empty keys and values, empty headers (and null ones), several headers
    of one name, bytes that are no text."""
    shapes: list[Wanted] = [
        (b"key", b"value", (("name", b"one"), ("name", b"two"))),
        (None, b"without a key", ()),
        (b"tombstone", None, (("empty", b""), ("null", None if nulls else b"-"))),
        (b"", b"", ()),
        (b"\xff\xfe\x00", bytes(range(256)), (("bytes", b"\x00\xff"),)),
    ]
    made = []
    for number in range(count):
        key, value, headers = shapes[number // PARTITIONS % len(shapes)]
        made.append((key, value if not value else value + b" %d" % number, headers))
    return made


def compare(log: Mapping[int, Sequence[Entry]], commands: Sequence[Command], *, acknowledged: bool) -> None:
    """Hold a log against what was appended to it. Raises WrongError."""
    for partition in range(PARTITIONS):
        sent = [command for command in commands if command.fields["partition"] == partition]
        held: Sequence[Entry] = log.get(partition, ())
        if len(held) != len(sent):
            raise WrongError(
                f"expected {len(sent)} records in partition {partition}, saw {len(held)} in the log"
            )
        if acknowledged:  # where each went was said; the order of sends is judged by torture
            sent.sort(key=lambda command: int((command.answer or {}).get("offset", -1)))
        else:
            sent.sort(key=lambda command: int(command.fields["timestamp_ms"]))
            held = sorted(held, key=lambda entry: entry.timestamp_ms)
        for command, entry in zip(sent, held, strict=True):
            headers = tuple((name, decoded(value)) for name, value in command.fields["headers"])
            for what, expected, seen in (
                ("key", decoded(command.fields["key"]), entry.key),
                ("value", decoded(command.fields["value"]), entry.value),
                ("headers", headers, entry.headers),
                ("time", command.fields["timestamp_ms"], entry.timestamp_ms),
            ):
                if expected != seen:
                    raise WrongError(
                        f"{what} at {partition}/{entry.offset}: expected {expected!r:.60}, saw {seen!r:.60}"
                    )
            offset = (command.answer or {}).get("offset")
            if acknowledged and offset != entry.offset:
                raise WrongError(
                    f"acknowledged at offset {offset}, in the log of {partition} at {entry.offset}"
                )


def compare_read(
    log: Mapping[int, Sequence[Entry]],
    seen: Mapping[tuple[int, int], Mapping[str, Any]],
    *,
    exact: bool = False,
) -> None:
    """Hold what a consumer handed out against the log. exact: an empty key, value or header is not a null one.
    Raises WrongError."""

    def same(one: Any, other: Any) -> bool:
        return bool(one == other) if exact else (one or None) == (other or None)

    for partition, entries in log.items():
        for entry in entries:
            record = seen.get((partition, entry.offset))
            if record is None:
                raise WrongError(f"the record at {partition}/{entry.offset} was not handed out")
            headers = tuple((name, decoded(value)) for name, value in record["headers"])
            names = len(headers) == len(entry.headers) and all(
                one[0] == other[0] and same(one[1], other[1])
                for one, other in zip(headers, entry.headers, strict=True)
            )
            if names:
                headers = entry.headers
            for what, expected, read in (
                ("key", entry.key, decoded(record["key"])),
                ("value", entry.value, decoded(record["value"])),
                ("headers", entry.headers, headers),
                ("time", entry.timestamp_ms, record["timestamp_ms"]),
            ):
                if not same(expected, read):
                    raise WrongError(
                        f"{what} at {partition}/{entry.offset}: expected {expected!r:.60}, saw {read!r:.60}"
                    )


# ---- the checks


def _acks(bench: Bench, acks: int) -> None:
    config: dict[str, Any] = {"acks": acks}
    if "idempotence" in bench.driver.ready.config:
        bench.produce(**config, idempotence=False)
    else:
        bench.produce(**config)


def _codec(bench: Bench, codec: str) -> None:
    _, log = bench.produce(compression=codec, linger_ms=20)
    seen = {entry.codec for entries in log.values() for entry in entries}
    if seen != {codec}:
        raise WrongError(f"expected batches compressed with {codec}, saw {', '.join(sorted(seen))}")


def _idempotent(bench: Bench) -> None:
    _, log = bench.produce(idempotence=True, acks=-1)
    for partition, entries in log.items():
        sequences = [entry.sequence for entry in entries]
        if sequences != list(range(len(sequences))) or len({entry.producer_id for entry in entries}) != 1:
            raise WrongError(
                f"expected one producer id and sequences from 0 in {partition}, saw {sequences[:5]}..."
            )


def _consume(bench: Bench, *, exact: bool = False) -> None:
    topic, log = bench.produce(nulls=exact)
    consumer = bench.opened("consumer", offset_reset="earliest")
    where = [{"topic": topic, "partition": number, "offset": -2} for number in range(PARTITIONS)]
    bench.done("assign", consumer, partitions=where)
    seen: dict[tuple[int, int], dict[str, Any]] = {}
    bench.consume(consumer, RECORDS, seen)
    bench.done("close", consumer, timeout_ms=10_000)
    compare_read(log, seen, exact=exact)


def _group(bench: Bench, assignor: str) -> None:
    """Two members share the partitions; when one leaves, the other goes on where it committed."""
    topic, log = bench.produce()
    group = f"group-{topic}-{assignor}"
    config = {"group": group, "assignor": assignor, "offset_reset": "earliest", "auto_commit": False}
    config |= {"session_timeout_ms": 10_000, "heartbeat_interval_ms": 500}
    seen: dict[tuple[int, int], dict[str, Any]] = {}
    first = bench.opened("consumer", **config)
    bench.done("subscribe", first, topics=[topic])
    bench.consume(first, RECORDS, seen)
    compare_read(log, seen)
    bench.done("commit", first, mode="sync", offsets=None)
    second = bench.opened("consumer", **config)
    bench.done("subscribe", second, topics=[topic])
    producer = bench.opened("producer")

    shares: dict[str, set[int]] = {first: set(), second: set()}

    def both_read() -> tuple[bool, Any]:
        bench.append(producer, topic, PARTITIONS)
        for client in (first, second):
            for record in bench.done("poll", client, timeout_ms=200, max_records=200)["records"]:
                shares[client].add(record["partition"])
        return bool(shares[second]), shares

    bench.until("two members that share the partitions", both_read)
    bench.done("close", second, timeout_ms=10_000)
    bench.done("close", first, timeout_ms=10_000)


def _commit(bench: Bench) -> None:
    topic, _ = bench.produce()
    config = {"group": f"group-{topic}", "offset_reset": "earliest", "auto_commit": False}
    consumer = bench.opened("consumer", **config)
    bench.done("subscribe", consumer, topics=[topic])
    bench.consume(consumer, RECORDS, {})
    where = [{"topic": topic, "partition": number, "offset": 3 + number} for number in range(PARTITIONS)]
    bench.done("commit", consumer, mode="sync", offsets=where)
    bench.done("close", consumer, timeout_ms=10_000)
    again = bench.opened("consumer", **config)
    bench.done("subscribe", again, topics=[topic])
    seen: dict[tuple[int, int], dict[str, Any]] = {}
    bench.consume(again, RECORDS - sum(3 + number for number in range(PARTITIONS)), seen)
    bench.done("close", again, timeout_ms=10_000)
    first = [
        min((offset for one, offset in seen if one == number), default=-1) for number in range(PARTITIONS)
    ]
    if first != [3 + number for number in range(PARTITIONS)]:
        raise WrongError(f"expected to go on at {[one['offset'] for one in where]}, saw {first}")


def _topics(bench: Bench, step: str) -> None:
    """Create, describe, change and delete; a step of it is a cell."""
    admin = bench.opened("admin")
    name = f"made-{next(_NUMBERS)}"
    asked = {"name": name, "partitions": 2, "replication_factor": 1, "config": {"retention.ms": "77777000"}}
    said = bench.done("create_topics", admin, topics=[asked])["topics"]
    if [one["error"] for one in said] != [None]:
        raise WrongError(f"create_topics: {said}")
    if step == "create":
        bench.until(
            "two partitions of the new topic",
            lambda: (lambda log: (len(log) == 2, len(log)))(read_log(bench.bootstrap_servers, name)),
        )
    if step == "describe":

        def described() -> tuple[bool, Any]:
            (row,) = bench.done("describe_topics", admin, topics=[name])["topics"]
            shown = [
                (one["partition"], one["leader"] in one["replicas"], len(one["isr"]))
                for one in row["partitions"]
            ]
            return sorted(shown) == [(0, True, 1), (1, True, 1)], row

        bench.until("two partitions with one replica each", described)
    if step == "configs":
        bench.until("the config of creation", lambda: _retention(bench, admin, name, "77777000"))
        bench.done("alter_configs", admin, topic=name, config={"retention.ms": "88888000"})
        bench.until("the changed config", lambda: _retention(bench, admin, name, "88888000"))
    if step == "delete":
        read_log(bench.bootstrap_servers, name)
        said = bench.done("delete_topics", admin, topics=[name])["topics"]
        if [one["error"] for one in said] != [None]:
            raise WrongError(f"delete_topics: {said}")

        def gone() -> tuple[bool, Any]:
            # not by the driver: some libraries describe by a request that creates the topic anew
            there = topics(bench.bootstrap_servers)
            return name not in there, sorted(there)

        bench.until("no topic of that name", gone)
    bench.done("close", admin, timeout_ms=10_000)


def _retention(bench: Bench, admin: str, topic: str, wanted: str) -> tuple[bool, Any]:
    seen = bench.done("describe_configs", admin, topic=topic)["config"].get("retention.ms")
    return seen == wanted, seen


@frozen(kw_only=True)
class Ability:
    """One cell of a row."""

    name: str
    """The column."""
    check: Callable[[Bench], None]
    """Raises WrongError, or DriverError."""
    needs: Callable[[Driver], bool]
    """Whether the library says that it has it."""


def _has(command: str) -> Callable[[Driver], bool]:
    return lambda driver: command in driver.ready.commands


ABILITIES: tuple[Ability, ...] = (
    *(
        Ability(
            name=f"acks={'all' if acks == -1 else acks}",
            check=lambda bench, acks=acks: _acks(bench, acks),  # type: ignore[misc]
            needs=lambda driver, acks=acks: acks in driver.ready.acks,  # type: ignore[misc]
        )
        for acks in (0, 1, -1)
    ),
    *(
        Ability(
            name=codec,
            check=lambda bench, codec=codec: _codec(bench, codec),  # type: ignore[misc]
            needs=lambda driver, codec=codec: codec in driver.ready.codecs,  # type: ignore[misc]
        )
        for codec in CODECS[1:]
    ),
    Ability(name="idempotent", check=_idempotent, needs=lambda driver: driver.ready.idempotence),
    Ability(name="consume", check=_consume, needs=_has("assign")),
    Ability(name="null is not empty", check=lambda bench: _consume(bench, exact=True), needs=_has("assign")),
    *(
        Ability(
            name=assignor,
            check=lambda bench, assignor=assignor: _group(bench, assignor),  # type: ignore[misc]
            needs=lambda driver, assignor=assignor: assignor in driver.ready.assignors,  # type: ignore[misc]
        )
        for assignor in ASSIGNORS
    ),
    Ability(name="commit", check=_commit, needs=_has("commit")),
    *(
        Ability(
            name=name,
            check=lambda bench, step=step: _topics(bench, step),  # type: ignore[misc]
            needs=_has(command),
        )
        for name, step, command in (
            ("create topics", "create", "create_topics"),
            ("describe topics", "describe", "describe_topics"),
            ("change configs", "configs", "alter_configs"),
            ("delete topics", "delete", "delete_topics"),
        )
    ),
)
"""Every column, in order."""


@frozen(kw_only=True)
class Cell:
    """What came of one check."""

    ability: str
    outcome: str
    """ok, failed, or absent: the library has nothing of the kind."""
    why: str = ""


def try_out(bench: Bench, ability: Ability) -> Cell:
    """One cell."""
    if not ability.needs(bench.driver):
        return Cell(ability=ability.name, outcome="absent")
    try:
        ability.check(bench)
    except WrongError as error:
        return Cell(ability=ability.name, outcome="failed", why=str(error))
    except DriverError as error:
        return Cell(ability=ability.name, outcome="failed", why=str(error))
    return Cell(ability=ability.name, outcome="ok")


def try_all(
    built: Built,
    kafka: KafkaCluster,
    abilities: Sequence[Ability] = ABILITIES,
    progress: Callable[[Cell], None] = lambda cell: None,
) -> tuple[str, list[Cell]]:
    """The version that the driver says it has, and its cells. A driver that ended is started again. Raises
    DriverError if it does not start."""
    cells = []
    driver = Driver.start(built)
    version = driver.ready.version

    def create_topic(name: str) -> None:
        kafka.create_topic(name, partitions=PARTITIONS)

    try:
        for ability in abilities:
            if driver.failure:
                driver.kill()
                driver = Driver.start(built)
            bench = Bench(driver=driver, bootstrap_servers=kafka.bootstrap_servers, create_topic=create_topic)
            cells.append(try_out(bench, ability))
            progress(cells[-1])
    finally:
        driver.end()
    return version, cells
