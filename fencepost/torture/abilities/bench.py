"""A driver on a cluster, as the checks of abilities use it.

Owns what is sent, waited for and compared. Must not know which abilities there are (checks.py).
"""

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import define

from fencepost.torture.abilities.comparison import (
    FIRST_MS,
    PARTITIONS,
    LackingError,
    WrongError,
    compare,
    records,
)
from fencepost.torture.driver_process import Command, Driver
from fencepost.torture.protocol import encoded
from fencepost.torture.truth import Entry, read_log

RECORDS = 60
"""Records of one check, spread over its partitions: enough for several batches in each."""
SOON_S = 30.0
"""Longest wait of a check for what takes a fraction of a second on an idle machine."""
LOOK_S = 0.05
NUMBERS = itertools.count()
"""Numbers for unused names."""


@define(eq=False, kw_only=True)
class Bench:
    """A driver, and the cluster that it is tried on."""

    driver: Driver
    bootstrap_servers: str
    # Makes a topic of PARTITIONS partitions that clients find.
    create_topic: Callable[[str], None]

    def topic(self) -> str:
        """A fresh one."""
        name = f"topic-{next(NUMBERS)}"
        self.create_topic(name)
        return name

    def opened(self, role: str, **config: Any) -> str:
        """Open a fresh client.

        Args:
            role: "producer" or "consumer".
            config: of the client.

        Returns:
            Its name.

        Raises:
            WrongError: if the library failed.
        """
        name = f"{role}-{next(NUMBERS)}"
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
        """Wait until `look` returns (True, ...). expected: the condition in words; look: whether it holds,
        and what was seen. Raises WrongError."""
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
        self, producer: str, topic: str, count: int = RECORDS, *, nulls: bool = False, padding: int = 0
    ) -> list[Command]:
        """Many records in flight at once, over all partitions; waits for their answers. nulls: with null
        values of headers. padding: equal bytes at the end of each value that is neither null nor empty."""
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
            for number, record in enumerate(records(count, nulls=nulls, padding=padding))
        ]
        if not self.driver.wait(commands, SOON_S * 2):
            open_ = sum(command.answer is None for command in commands)
            raise WrongError(f"append: {open_} of {count} records have no answer")
        return commands

    def produce(
        self, *, nulls: bool = False, padding: int = 0, **config: Any
    ) -> tuple[str, Mapping[int, tuple[Entry, ...]]]:
        """Produce with these settings and compare with the log. nulls: with null headers; padding:
        bytes added to each value; config: settings. Returns the topic and its log. Raises LackingError for a
        library that refuses null headers, WrongError for what else fails."""
        topic = self.topic()
        producer = self.opened("producer", **config)
        commands = self.append(producer, topic, nulls=nulls, padding=padding)
        failed = [command for command in commands if not command.ok]
        if failed and all(_refuses_null_header(command) for command in failed):
            raise LackingError(f"append with a null header: {failed[0].error}")
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
        """Poll until `count` more records came. client: the consumer; into: gets them, by partition and
        offset."""
        wanted = len(into) + count
        deadline = time.monotonic() + SOON_S
        while len(into) < wanted:
            if time.monotonic() > deadline:
                raise WrongError(f"expected {wanted} records, saw {len(into)} within {SOON_S:g} s")
            for record in self.done("poll", client, timeout_ms=500, max_records=200)["records"]:
                into[record["partition"], record["offset"]] = record


def _refuses_null_header(command: Command) -> bool:
    """Whether the library itself, and no broker, refused a record with a null value of a header."""
    error = (command.answer or {}).get("error") or {}
    return error.get("code") is None and any(value is None for _, value in command.fields["headers"])


def _count(log: Mapping[int, Sequence[Entry]]) -> tuple[bool, int]:
    count = sum(len(entries) for entries in log.values())
    return count >= RECORDS, count
