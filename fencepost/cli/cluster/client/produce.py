"""`fencepost cluster produce`: sends lines of standard input as records to a running cluster."""

import asyncio
import secrets
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import rich_click as click
from attrs import define, evolve, field, frozen

from fencepost.cli.cluster.client.client_options import (
    REQUEST_TIMEOUT_MS,
    Bootstrap,
    Target,
    bootstrap_options,
    cluster_directory,
    partition_option,
    record_option,
    target,
)
from fencepost.console.options import Named, default_option, json_option
from fencepost.console.output import Output
from fencepost.report.commands import consume_recorded
from fencepost.traces.errors import ExitCode, FencepostError
from fencepost.traces.operations import Operation, Outcome

if TYPE_CHECKING:
    from fencepost.cli.cluster.client.history import RecordedRun
    from fencepost.impl.client.producer.producer import Producer
    from fencepost.impl.core.core_interface import Effect, Input, Produce

MOST_UNDECIDED = 10_000
"""Appends in flight before the next line is read (Kafka's buffer.memory bounds bytes instead)."""
CHUNK_BYTES = 65_536
LINES_AHEAD = 1_000
"""Lines read before they are sent."""
NUMBERS_OF_A_RUN = 1 << 24
"""Value ids of a run count from a random multiple of this number, so that no two runs share any."""
SHOWN_FAILURES = 5
ACKS = {"all": -1, "1": 1, "0": 0}


@frozen(kw_only=True)
class Options:
    """The command line."""

    # Text between key and value in a line; None: lines have no key.
    key_separator: str | None
    # Name of the partitioner.
    partitioner: str
    # The partition of all records; None: the partitioner chooses.
    partition: int | None
    # 0, 1 or -1 for all.
    acks: int
    # Number the batches, so that a retry writes nothing twice. Needs acks -1.
    idempotent: bool
    # How long a batch waits for more records.
    linger_ms: int
    # Largest batch.
    batch_bytes: int
    # Name of the codec.
    compression: str
    # Time from the send until an undecided append fails.
    delivery_timeout_ms: int


@click.command("produce", short_help="Send lines of standard input as records.")
@click.argument("topic")
@cluster_directory
@bootstrap_options
@click.option("--key-separator", metavar="TEXT", help="The part of a line before this text is the key.")
@default_option(
    "--partitioner",
    type=Named(["key_hash", "sticky", "round_robin", "random"]),
    default="key_hash",
    help="How to choose the partition. key_hash: as Kafka's clients; records without a key as sticky.",
)
@partition_option
@default_option("--acks", type=Named(list(ACKS)), default="all")
@click.option(
    "--idempotent/--no-idempotent",
    default=None,
    help="Number the batches, so that a retry writes nothing twice. [default: with --acks all]",
)
@default_option("--linger-ms", type=click.IntRange(0, 60_000), default=5)
@default_option("--batch-bytes", type=click.IntRange(1, 10_000_000), default=16_384)
@default_option("--compression", type=Named(["none", "gzip", "snappy", "lz4", "zstd"]), default="none")
@default_option("--delivery-timeout-ms", type=click.IntRange(10, 1_000_000), default=120_000)
@record_option
@json_option
def command(
    topic: str,
    directory: Path,
    bootstrap: Bootstrap,
    acks: str,
    idempotent: bool | None,
    record: Path | None,
    output: Output,
    **asked: Any,
) -> ExitCode:
    """Send each line of standard input to TOPIC of a running `fencepost cluster`, or of any Kafka with
    --bootstrap, and wait until every append has an outcome.

    Exit code 0 means that the cluster acknowledged all of them, 3 that it did not: some failed, or their
    outcome is unknown.

    \b
    Examples
      seq 1000 | fencepost cluster produce orders
      seq 1000 | fencepost cluster produce orders --bootstrap 127.0.0.1:9092
      echo alice:5 | fencepost cluster produce orders --key-separator : --record out/orders.jsonl
      fencepost cluster produce orders --acks 1 --no-idempotent --partitioner round_robin < lines.txt
    """
    if idempotent and acks != "all":
        raise click.UsageError(f"--idempotent needs --acks all: expected all, saw {acks}")
    idempotent = acks == "all" if idempotent is None else idempotent
    options = Options(acks=ACKS[acks], idempotent=idempotent, **asked)
    from fencepost.cli.cluster.client.history import RecordedRun, check_record

    if record is not None:
        check_record(record)
    where = target(directory, topic, bootstrap)
    where.chosen(options.partition)
    run = _Run(where, options)
    if record is not None:
        run.recorded = RecordedRun.begin(record, may_duplicate=not options.idempotent)
    try:
        asyncio.run(run.work(sys.stdin.buffer))
    finally:
        if run.recorded is not None:
            run.recorded.end(run.operations(), duplicates=run.may_duplicate)
    return _tell(output, run, record, bootstrap.options(directory))


@define(eq=False)
class _Run:
    """One run of the command."""

    # The topic and its cluster.
    where: Target
    options: Options
    # Appends in flight with the time of their send, by op id; at most MOST_UNDECIDED.
    undecided: "dict[int, tuple[Produce, int]]" = field(factory=dict)
    # Rows of completed appends.
    done: list[Operation] = field(factory=list)
    # The error for a line that could not be sent; None: every line could.
    refused: FencepostError | None = None
    # The file that is written ahead; None: nothing is recorded.
    recorded: "RecordedRun | None" = None
    # Value id of the first line.
    first_value: int = field(factory=lambda: secrets.randbits(38) * NUMBERS_OF_A_RUN)
    _producer: "Producer | None" = None

    @property
    def may_duplicate(self) -> bool:
        """Whether a retry after an unknown outcome may have written a record twice."""
        return not self.options.idempotent and any(one.attempts > 1 for one in self.done)

    async def work(self, stream: BinaryIO) -> None:
        """Send all lines of the stream, and wait until every append has an outcome."""
        from fencepost.impl.core.core_interface import StopRequested
        from fencepost.impl.runtime.client import running

        producer = self._producer = self._make()
        core = producer if self.recorded is None else _WrittenAhead(producer, self, self.recorded)
        async with running(core, self.where.connect, self._completed) as client:
            clock, number = client.driver.clock, 0
            async for line in _lines(stream):
                append = self._append(number, line)
                if append is None:
                    break
                self.undecided[number] = (append, clock.now())
                client.driver.accept(append)
                number += 1
                await client.until(lambda: len(self.undecided) < MOST_UNDECIDED)
            client.driver.accept(StopRequested())
            await client.until(lambda: not self.undecided)
        if self.refused is not None:
            raise self.refused

    def _make(self) -> "Producer":
        from fencepost.impl.client.leader_metadata import ClientMetadata
        from fencepost.impl.client.partitioners import make_partitioner
        from fencepost.impl.client.producer.producer import make_producer
        from fencepost.traces.plan import ClientOptions, ProducerOptions

        options = self.options
        client = ClientOptions(
            request_timeout_ms=min(REQUEST_TIMEOUT_MS, options.delivery_timeout_ms),
            delivery_timeout_ms=options.delivery_timeout_ms,
            retry_unknown=True,
            producer=ProducerOptions(
                pipelined=True,
                idempotent=options.idempotent,
                linger_ms=options.linger_ms,
                batch_bytes=options.batch_bytes,
                compression=options.compression,
            ),
        )
        partitioner = make_partitioner(options.partitioner, secrets.randbits(31))
        return make_producer(0, client, ClientMetadata(self.where.brokers), partitioner)

    def _append(self, number: int, line: bytes) -> "Produce | None":
        from fencepost.impl.core.core_interface import Produce

        key, value, separator = None, line, self.options.key_separator
        if separator is not None:
            key, found, value = line.partition(separator.encode())
            if not found:
                self.refused = FencepostError(
                    expected=f"a key, {separator!r} and a value",
                    seen=line[:60].decode(errors="replace"),
                    where=f"line {number + 1}",
                    hint="the lines before it were sent",
                )
                return None
        return Produce(
            op_id=number,
            topic=self.where.topic,
            partition=-1 if self.options.partition is None else self.options.partition,
            key=key,
            values=(value,),
            value_ids=(self.first_value + number,),
            acks=self.options.acks,
        )

    def _completed(self, operation: Operation) -> None:
        self.done.append(self.stamped(operation))
        del self.undecided[operation.op_id]

    def stamped(self, operation: Operation) -> Operation:
        """The row of an append in flight, with its times."""
        assert self._producer is not None
        known = operation.completion_time is not None
        return evolve(
            operation,
            invoke_time=self.undecided[operation.op_id][1],
            completion_time=self._producer.now if known else None,
        )

    def operations(self) -> list[Operation]:
        """All rows, also those of appends in flight: an interrupted run does not know their outcome."""
        from fencepost.impl.client.producer.pipelined import undecided

        rows = undecided(self._producer) if self._producer is not None else []
        return self.done + [
            evolve(row, invoke_time=self.undecided[row.op_id][1], completion_time=None)
            for row in rows
            if row.op_id in self.undecided
        ]


@define(eq=False)
class _WrittenAhead:
    """The producer, with its appends recorded before they are sent, and their outcomes recorded before they
    are reported."""

    producer: "Producer"
    run: _Run
    recorded: "RecordedRun"
    # Correlation ids of the requests that were recorded.
    sent: set[int] = field(factory=set)

    def step(self, input: "Input", now: int) -> "list[Effect]":
        """The producer's step. The effects are returned after the write to the file."""
        from fencepost.impl.client.producer.completion import completions
        from fencepost.impl.core.core_interface import Complete

        effects = self.producer.step(input, now)
        requests = self.producer.requests
        new = [batch for number, batch in requests.items() if number not in self.sent]
        self.sent = set(requests)
        done = [effect for effect in effects if isinstance(effect, Complete)]
        begun = [
            row
            for batch in new
            if batch.attempts == 1
            for row in completions(self.producer.process, batch, Outcome.UNKNOWN, None)
        ]
        self.recorded.write([self.run.stamped(row.operation) for row in (*begun, *done)])
        return effects


async def _lines(stream: BinaryIO) -> AsyncIterator[bytes]:
    """The lines of a stream as they come, without their ends. A thread reads them, because the event loop
    must not wait for a terminal."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[bytes | None] = asyncio.Queue()
    room = threading.Semaphore(LINES_AHEAD)

    def read() -> None:
        for line in _split(stream):
            room.acquire()
            try:
                loop.call_soon_threadsafe(queue.put_nowait, line)
            except RuntimeError:
                return  # the command has ended
        loop.call_soon_threadsafe(queue.put_nowait, None)

    threading.Thread(target=read, name="standard input", daemon=True).start()
    while (line := await queue.get()) is not None:
        room.release()
        yield line.removesuffix(b"\n").removesuffix(b"\r")


def _split(stream: BinaryIO) -> Iterator[bytes]:
    """The lines of a stream, read below its buffer: a read that waits in the buffer holds the buffer's lock,
    and then the interpreter could not end."""
    raw, rest = getattr(stream, "raw", stream), b""
    while chunk := raw.read(CHUNK_BYTES):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
    if rest:
        yield rest


def _tell(output: Output, run: _Run, record: Path | None, cluster: Mapping[str, str]) -> ExitCode:
    outcomes = Counter(one.outcome.value for one in run.done)
    partitions = Counter(one.partition for one in run.done if one.outcome is Outcome.OK)
    ok, failed, unknown = (outcomes[outcome.value] for outcome in (Outcome.OK, Outcome.FAIL, Outcome.UNKNOWN))
    good = "acknowledged" if run.options.acks else "sent, as nobody acknowledges them"
    output.say(f"{len(run.done):,} lines: {ok:,} {good}, {failed:,} failed, {unknown:,} unknown")
    spread = {str(number): count for number, count in sorted(partitions.items(), key=str)}
    if spread:
        output.say(", ".join(f"partition {number}: {count:,}" for number, count in spread.items()))
    for one in [one for one in run.done if one.outcome is not Outcome.OK][:SHOWN_FAILURES]:
        output.note(f"line {one.op_id + 1}: {one.outcome.value}, {one.error}, after {one.attempts} attempts")
    if record is not None:
        read = consume_recorded(run.where.topic, record, cluster)
        output.note(f"recorded in {record}; before it can be judged, read the topic into it: {read}")
    return output.end(
        ExitCode.NOTHING_FOUND if ok == len(run.done) else ExitCode.UNDECIDED,
        {
            "topic": run.where.topic,
            "lines": len(run.done),
            "ok": ok,
            "fail": failed,
            "unknown": unknown,
            "partitions": spread,
            "record": None if record is None else str(record),
        },
    )
