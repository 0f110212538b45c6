"""What a client library can do against a cluster, one check for each kind of cell of a table.

Owns the checks. Each writes through the library and reads the log with our own client (truth.py), or the
other way round. Must not know how a driver was built.
"""

from typing import Any

from fencepost.torture.abilities.bench import NUMBERS, RECORDS, Bench
from fencepost.torture.abilities.comparison import PARTITIONS, WrongError, compare_read
from fencepost.torture.truth import read_log, topics

PADDING = 1_000
"""Equal bytes at the end of a value: with so many every codec makes a batch of one record smaller."""


def check_acks(bench: Bench, acks: int) -> None:
    """Records produced with `acks` (0, 1 or -1) are in the log."""
    config: dict[str, Any] = {"acks": acks}
    if "idempotence" in bench.driver.ready.config:
        bench.produce(**config, idempotence=False)
    else:
        bench.produce(**config)


def check_codec(bench: Bench, codec: str) -> None:
    """The batches in the log are compressed with `codec`."""
    _, log = bench.produce(padding=PADDING, compression=codec, linger_ms=20)
    # a library may send a batch plain that would not shrink: on a crowded machine one small record goes alone
    seen = {
        entry.codec
        for entries in log.values()
        for entry in entries
        if entry.value is not None and len(entry.value) >= PADDING
    }
    if seen != {codec}:
        raise WrongError(f"expected batches compressed with {codec}, saw {', '.join(sorted(seen))}")


def check_idempotent(bench: Bench) -> None:
    """The batches of each partition carry one producer id, and sequences from 0 without a gap."""
    _, log = bench.produce(idempotence=True, acks=-1)
    for partition, entries in log.items():
        sequences = [entry.sequence for entry in entries]
        if sequences != list(range(len(sequences))) or len({entry.producer_id for entry in entries}) != 1:
            raise WrongError(
                f"expected one producer id and sequences from 0 in {partition}, saw {sequences[:5]}..."
            )


def check_consume(bench: Bench, *, exact: bool = False, nulls: bool = False) -> None:
    """A consumer reads the records of the log. exact: an empty key, value or header is not a null one. nulls:
    only records with null values of headers."""
    topic, log = bench.produce(nulls=nulls)
    consumer = bench.opened("consumer", offset_reset="earliest")
    where = [{"topic": topic, "partition": number, "offset": -2} for number in range(PARTITIONS)]
    bench.done("assign", consumer, partitions=where)
    seen: dict[tuple[int, int], dict[str, Any]] = {}
    bench.consume(consumer, RECORDS, seen)
    bench.done("close", consumer, timeout_ms=10_000)
    compare_read(log, seen, exact=exact)


def check_group(bench: Bench, assignor: str) -> None:
    """Two members share the partitions. When one leaves, the other continues from its commit. assignor: of
    the group."""
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


def check_commit(bench: Bench) -> None:
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
        raise WrongError(f"expected to continue at {[one['offset'] for one in where]}, saw {first}")


def check_topics(bench: Bench, step: str) -> None:
    """Create, describe, change and delete; a step of it is a cell."""
    admin = bench.opened("admin")
    name = f"made-{next(NUMBERS)}"
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
        bench.until("the config of creation", lambda: retention(bench, admin, name, "77777000"))
        bench.done("alter_configs", admin, topic=name, config={"retention.ms": "88888000"})
        bench.until("the changed config", lambda: retention(bench, admin, name, "88888000"))
    if step == "delete":
        read_log(bench.bootstrap_servers, name)
        said = bench.done("delete_topics", admin, topics=[name])["topics"]
        if [one["error"] for one in said] != [None]:
            raise WrongError(f"delete_topics: {said}")

        def gone() -> tuple[bool, Any]:
            # not by the driver: some libraries describe by a request that creates the topic again
            there = topics(bench.bootstrap_servers)
            return name not in there, sorted(there)

        bench.until("no topic of that name", gone)
    bench.done("close", admin, timeout_ms=10_000)


def retention(bench: Bench, admin: str, topic: str, wanted: str) -> tuple[bool, Any]:
    """Whether the client `admin` reads `wanted` as the topic's retention.ms, and what it reads."""
    seen = bench.done("describe_configs", admin, topic=topic)["config"].get("retention.ms")
    return seen == wanted, seen
