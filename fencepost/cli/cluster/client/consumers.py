"""The two consumers of `fencepost cluster consume`: one reads by itself, one is a member of a group.

Owns when they end, and how a record becomes a line. Must not know the command line. A printed record counts
as processed: a member commits it afterwards, never before.
"""

import asyncio
import contextlib
import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from attrs import define, evolve, field

from fencepost.cli.cluster.client.client_options import REQUEST_TIMEOUT_MS, Target
from fencepost.traces.errors import FencepostError
from fencepost.traces.operations import Operation

if TYPE_CHECKING:
    from fencepost.impl.client.consumer.consumer import Consumer
    from fencepost.impl.client.consumer.fetch import ConsumedRecord
    from fencepost.impl.client.reader import Reader, ReadRecord
    from fencepost.impl.messages.broker_api import TopicPartition
    from fencepost.impl.runtime.client import RunningClient
    from fencepost.traces.kafka_names.outcomes import ErrorCode

POLL_S = 0.1
"""Seconds between checks of an idle consumer whether its time-out has passed."""
FAREWELL_S = 3.0
"""Longest time for the last commit and the leave. If they fail, the group notices the missing member by its
session time-out."""
FOREIGN = 1 << 62
"""Value ids from here on belong to records that no workload wrote (impl/log/values.py); -1 is none."""


@define
class Lines:
    """Standard output."""

    # How many records may be printed, None for any number.
    most: int | None
    key_separator: str | None
    as_json: bool
    # So far.
    printed: int = 0
    # The reader of the output has left.
    closed: bool = False

    @property
    def full(self) -> bool:
        """Whether no more may be printed."""
        return self.closed or (self.most is not None and self.printed >= self.most)

    def room(self, count: int) -> int:
        """How many of `count` records may still be printed."""
        return count if self.most is None else min(count, self.most - self.printed)

    def print(self, records: Iterable["ReadRecord"]) -> None:
        """Print a line for each record."""
        lines = [self._line(record) for record in records]
        self.printed += len(lines)
        try:
            sys.stdout.write("".join(f"{line}\n" for line in lines))
            sys.stdout.flush()
        except BrokenPipeError:  # `| head` closes the pipe: not an error
            self.closed = True
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    def _line(self, record: "ReadRecord") -> str:
        key, value = _text(record.key), _text(record.value)
        if self.as_json:
            shown: dict[str, Any] = {
                "topic": record.partition.topic,
                "partition": record.partition.partition,
                "offset": record.offset,
                "timestamp_ms": record.timestamp_ms,
                "key": key,
                "value": value,
            }
            return msgspec.json.encode(shown).decode()
        before = "" if self.key_separator is None else f"{'' if key is None else key}{self.key_separator}"
        return before + ("" if value is None else value)


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "backslashreplace")


def nameable(rows: Sequence[Operation]) -> tuple[list[Operation], int]:
    """The rows without records that have no value id, and how many such records there are. Records that were
    fetched and not printed count as read."""
    kept, without = [], 0
    for row in rows:
        known = tuple(record for record in row.records if 0 <= record.value < FOREIGN)
        without += len(row.records) - len(known)
        kept.append(evolve(row, records=known))
    return kept, without


# ---- by itself


@define(eq=False)
class Alone:
    """Reads partitions without a group."""

    # The topic and its cluster.
    where: Target
    # Ascending.
    partitions: tuple[int, ...]
    # Standard output.
    lines: Lines
    # Begin at the log's start, not at its end.
    from_beginning: bool
    # End when nothing came for so long; None: never.
    timeout_ms: int | None
    # Rows of the trace, one per completed poll.
    rows: list[Operation] = field(factory=list)

    async def work(self) -> None:
        """Print until `lines` is full or nothing came for too long."""
        from fencepost.impl.runtime.client import running

        reader, loop = self._make(), asyncio.get_running_loop()
        heard = loop.time()
        async with running(reader, self.where.connect, self.rows.append) as client:
            while not self.lines.full:
                try:
                    async with asyncio.timeout(POLL_S):
                        await client.until(lambda: bool(reader.delivered))
                except TimeoutError:
                    if self.timeout_ms is not None and loop.time() - heard > self.timeout_ms / 1000:
                        return
                    continue
                heard = loop.time()
                room = self.lines.room(len(reader.delivered))
                self.lines.print([reader.delivered.popleft() for _ in range(room)])

    def _make(self) -> "Reader":
        from fencepost.impl.client.leader_metadata import ClientMetadata
        from fencepost.impl.client.reader import make_reader
        from fencepost.impl.messages.broker_api import TopicPartition
        from fencepost.traces.plan import ClientOptions

        return make_reader(
            ClientOptions(request_timeout_ms=REQUEST_TIMEOUT_MS, fetch_wait_max_ms=500),
            ClientMetadata(self.where.brokers),
            tuple(TopicPartition(self.where.topic, number) for number in self.partitions),
            from_beginning=self.from_beginning,
        )


# ---- in a group


@define(eq=False)
class Member:
    """Reads what its group assigns."""

    # The topic and its cluster.
    where: Target
    # The group's id.
    group: str
    # Standard output.
    lines: Lines
    # Where nothing is committed: begin at the log's start, not at its end.
    from_beginning: bool
    # End when nothing came for so long; None: never.
    timeout_ms: int | None
    # When to commit: the value of --commit.
    commit: str
    # Completed rows of the trace.
    rows: list[Operation] = field(factory=list)
    # Rows that are not complete, by op id.
    open: dict[int, Operation] = field(factory=dict)
    # When the last record came, in seconds on the loop's clock.
    heard: float = 0.0
    # Whether the last commit and the leave are in progress.
    closing: bool = False
    # Why the group refuses this member; None: it does not.
    refused: FencepostError | None = None

    async def work(self) -> None:
        """Print until `lines` is full or nothing came for too long; then commit and leave."""
        from fencepost.impl.runtime.client import running

        loop, consumer = asyncio.get_running_loop(), self._make()
        self.heard = loop.time()
        now = _clock()
        async with running(
            consumer,
            self.where.connect,
            lambda row: self._ended(row, now()),
            lambda row: self._begun(row, now()),
        ) as client:
            try:
                while not self.closing:
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(POLL_S):
                            await client.until(lambda: self.closing)
                    if self.timeout_ms is not None and loop.time() - self.heard > self.timeout_ms / 1000:
                        break
            finally:
                await self._leave(client, consumer)
        self.rows += self.open.values()
        if self.refused is not None:
            raise self.refused

    async def _leave(self, client: "RunningClient", consumer: "Consumer") -> None:
        if not self.closing:
            self.closing = True
            client.driver.accept(lambda now: consumer.use(self._close, now))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FAREWELL_S):
                while consumer.desk.waiting and not client.halted:
                    await asyncio.sleep(POLL_S / 10)

    def _make(self) -> "Consumer":
        from fencepost.impl.client.consumer.consumer import Consumer
        from fencepost.impl.client.consumer.requests import ConsumerIdentity
        from fencepost.impl.client.leader_metadata import ClientMetadata
        from fencepost.traces.plan import ConsumerOptions

        options = ConsumerOptions(
            commit=self.commit,
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            auto_offset_reset="earliest" if self.from_beginning else "latest",
        )
        identity = ConsumerIdentity(process=0, group=self.group, topics=(self.where.topic,))
        return Consumer(identity, options, ClientMetadata(self.where.brokers), self)

    # ---- rows

    def _begun(self, row: Operation, now: int) -> None:
        self.open[row.op_id] = evolve(row, invoke_time=now)

    def _ended(self, row: Operation, now: int) -> None:
        begun = self.open.pop(row.op_id)
        known = row.completion_time is not None
        self.rows.append(evolve(row, invoke_time=begun.invoke_time, completion_time=now if known else None))

    # ---- callbacks of the consumer: print, commit, poll

    def started(self, consumer: "Consumer") -> None:
        """The consumer has started: poll."""
        consumer.poll()

    def polled(self, consumer: "Consumer", records: "list[ConsumedRecord]") -> None:
        """Print the records of a poll, and poll again or end. Records that were not printed are left to the
        next member. consumer: the one that polled; records: in the order of each partition."""
        if self.closing:
            return
        if records:
            self.heard = asyncio.get_running_loop().time()
        room = self.lines.room(len(records))
        self.lines.print(_as_read(each) for each in records[:room])
        for each in reversed(records[room:]):
            consumer.seek(each.partition, each.record.offset)
        if self.lines.full:
            self.closing = True
            self._close(consumer)
        elif self.commit == "sync" and records:
            consumer.commit_sync()
        else:
            consumer.poll()

    def committed(self, consumer: "Consumer", error: "ErrorCode") -> None:
        """A commit of this consumer has ended, with `error` or ErrorCode.NONE: continue, or end."""
        if self.closing:
            consumer.close()
        else:
            consumer.poll()

    def _close(self, consumer: "Consumer") -> None:
        if self.commit == "sync" and not consumer.dead:
            consumer.commit_sync()
        else:
            consumer.close()

    def woken(self, consumer: "Consumer") -> None:
        """Never called: this application does not sleep."""

    def assigned(self, consumer: "Consumer", partitions: "tuple[TopicPartition, ...]") -> None:
        """The consumer got these partitions. Nothing to prepare."""

    def revoked(self, consumer: "Consumer", partitions: "tuple[TopicPartition, ...]") -> None:
        """The consumer lost these partitions. Nothing to do: what was printed stays printed."""

    def failed(self, consumer: "Consumer", error: "ErrorCode") -> None:
        """The group refuses this consumer with `error`."""
        self.closing = True
        self.refused = FencepostError(
            expected="a group that takes this member", seen=error.value, where=f"group {self.group}"
        )


def _as_read(consumed: "ConsumedRecord") -> "ReadRecord":
    from fencepost.impl.client.reader import ReadRecord

    record = consumed.record
    return ReadRecord(
        partition=consumed.partition,
        offset=record.offset,
        timestamp_ms=record.timestamp_ms,
        key=record.key,
        value=record.value,
    )


def _clock() -> Any:
    from fencepost.impl.runtime.core_driver import HostClock

    return HostClock().now
