"""A hundred thousand records of each client under the swarm's broker faults: what was acknowledged is in the log.

    python -m tools.clients_chaos [NAME[@VERSION] ...] [--records 100000] [--seed 1] [--plain] [--json FILE]

Each client appends to an embedded cluster of three brokers (acks=all, min.insync.replicas=2, idempotent where it
can), while `kafka.chaos` draws crashes, pauses, power losses, lost links and expired sessions within the fault
budget, for a minute. Then all faults end, and our own client reads the log. Exit code 1 if a record that was
acknowledged is missing or elsewhere, or if a record of an idempotent producer is there twice. Without idempotence
duplicates are counted only. A library that this machine cannot build is skipped by name.
"""

import argparse
import json
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from attrs import asdict, frozen

import fencepost.kafka
from fencepost.console.output import Output
from fencepost.torture.building import build, missing
from fencepost.torture.driver import Command, Driver
from fencepost.torture.libraries import Wanted, libraries, wanted
from fencepost.torture.protocol import DriverError, encoded
from fencepost.torture.truth import Log, read_log
from fencepost.traces.errors import FencepostError

TOPIC, PARTITIONS = "t", 3
UNDER_WAY = 1_000
"""Appends without an answer: enough for batches, and few enough for clients that time a record from its call."""
ROUND_MS = 6_000
"""Of one chaos. The next one follows at once, until all records are sent."""
SENDING_S = 60.0
"""How long faults go on, and over which the records are spread: a hundred thousand take some clients two seconds,
less than a fault. A slower client sends the rest to a cluster that has healed."""
MOST_S = 240.0
"""Longest time of sending. What was not sent by then is not sent."""
ANSWER_S = 180.0
"""Longest wait for the last answers after the heal: Java's delivery.timeout.ms is 120 s."""
MOST_SHOWN = 5


@frozen(kw_only=True)
class Chaos:
    """What became of the records of one client."""

    client: str
    idempotent: bool
    sent: int
    acknowledged: int
    failed: int
    """Answered with an error: perhaps in the log."""
    silent: int
    """Without an answer ANSWER_S after the heal."""
    unacknowledged_in_log: int
    faults: int
    """Drawn; some of them found the fault budget used up."""
    seconds: float
    lost: tuple[str, ...]
    """Acknowledged and not in the log, the first few."""
    lost_count: int
    moved: int
    """Acknowledged at another offset than that of the record in the log."""
    duplicates: int
    """Records that are in the log more than once."""
    reordered: int
    """Records of a partition that follow one that was sent later."""
    leader_epochs: int
    """Different ones in the log, over all partitions: how often a leader changed under the records."""
    errors: dict[str, int]

    @property
    def wrong(self) -> bool:
        """Whether a promise was broken."""
        return bool(self.lost_count or self.moved or self.silent or (self.idempotent and self.duplicates))


def run(library: Wanted, records: int, seed: int, *, plain: bool = False) -> Chaos:
    """Append under faults, heal, read. plain: without idempotence. Raises FencepostError if the driver or the cluster is of no use."""
    start = time.monotonic()
    with (
        fencepost.kafka.cluster(process=True, most_events=250_000) as kafka,
        Driver.start(build(library)) as driver,
    ):
        kafka.create_topic(TOPIC, partitions=PARTITIONS, config={"min.insync.replicas": "2"})
        idempotent = driver.ready.idempotence and not plain
        config: dict[str, Any] = {"bootstrap": kafka.bootstrap_servers, "acks": -1}
        if driver.ready.idempotence:
            config["idempotence"] = idempotent
        driver.call("open", "p", role="producer", config=config)
        over, drawn = threading.Event(), [0]

        def break_it() -> None:
            number = seed * 1_000
            while not over.is_set() and time.monotonic() - start < SENDING_S:
                drawn[0] += kafka.chaos(number, ROUND_MS, topic=TOPIC)
                number += 1
                over.wait(ROUND_MS / 1_000)
            kafka.heal()

        breaking = threading.Thread(target=break_it, daemon=True)
        breaking.start()
        commands: list[Command] = []
        began = time.monotonic()
        try:
            while len(commands) < records and time.monotonic() - began < MOST_S:
                due = (time.monotonic() - began) / SENDING_S * records
                if driver.under_way >= UNDER_WAY or len(commands) > due:
                    time.sleep(0.002)
                    continue
                number = len(commands)
                commands.append(
                    driver.send(
                        "append",
                        "p",
                        topic=TOPIC,
                        partition=number % PARTITIONS,
                        key=None,
                        value=encoded(b"%d" % number),
                        headers=[],
                    )
                )
        finally:
            over.set()
            breaking.join()
            kafka.heal()
        kafka.wait_until_healthy()
        driver.wait(commands, ANSWER_S)
        driver.ask("close", "p", timeout_ms=10_000)
        log = read_log(kafka.bootstrap_servers, TOPIC)
    return judged(str(library), idempotent, commands, log, drawn[0], time.monotonic() - start)


def judged(
    client: str, idempotent: bool, commands: list[Command], log: Log, faults: int, seconds: float
) -> Chaos:
    """Hold what the client was answered against the log. The value of record n is n."""
    held = {number: [int(entry.value or b"-1") for entry in entries] for number, entries in log.items()}
    places = {
        (number, entry.offset): int(entry.value or b"-1")
        for number, entries in log.items()
        for entry in entries
    }
    there = Counter(value for values in held.values() for value in values)
    acknowledged = [number for number, command in enumerate(commands) if command.ok]
    lost = [number for number in acknowledged if not there[number]]
    moved = 0
    for number in acknowledged:
        answer = commands[number].answer or {}
        place = (answer["partition"], answer["offset"])
        moved += bool(there[number]) and answer["offset"] >= 0 and places.get(place) != number
    reordered = 0
    for values in held.values():
        greatest = -1
        for value in dict.fromkeys(values):
            reordered += value < greatest
            greatest = max(greatest, value)
    errors = Counter(
        command.error.partition(":")[0] for command in commands if command.answer and not command.ok
    )
    return Chaos(
        client=client,
        idempotent=idempotent,
        sent=len(commands),
        acknowledged=len(acknowledged),
        failed=sum(errors.values()),
        silent=sum(command.answer is None for command in commands),
        unacknowledged_in_log=len(set(there) - set(acknowledged)),
        faults=faults,
        seconds=round(seconds, 1),
        lost=tuple(_evidence(n, commands[n], log) for n in lost[:MOST_SHOWN]),
        lost_count=len(lost),
        moved=moved,
        duplicates=sum(count > 1 for count in there.values()),
        reordered=reordered,
        leader_epochs=sum(len({entry.leader_epoch for entry in entries}) for entries in log.values()),
        errors=dict(errors),
    )


def _evidence(number: int, command: Command, log: Log) -> str:
    """What is in the log where a lost record should be."""
    answer = command.answer or {}
    partition, offset = answer["partition"], answer["offset"]
    for entry in log.get(partition, ()):
        if entry.offset == offset:
            there = f"record {(entry.value or b'').decode()} of producer {entry.producer_id}, epoch {entry.producer_epoch}"
            return f"record {number} was acknowledged at {partition}/{offset}; there is {there}, sequence {entry.sequence}"
    return f"record {number} was acknowledged at {partition}/{offset}; there is nothing"


def main() -> int:
    """Try every client, or those that are named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("clients", nargs="*", help="NAME[@VERSION]; all by default")
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plain", action="store_true", help="without idempotence")
    parser.add_argument("--json", type=Path, help="write every result here")
    options = parser.parse_args()
    output, results = Output(), []
    for name in options.clients or libraries():
        try:
            library = wanted(name)
            lacks = missing(library)
            if lacks:
                output.say(f"skipped: {name}: {lacks}")
                continue
            result = run(library, options.records, options.seed, plain=options.plain)
        except (FencepostError, DriverError) as error:
            output.say(f"{name}: {error}")
            continue
        results.append(result)
        output.say(f"{'WRONG' if result.wrong else 'ok   '} {asdict(result)}")
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(one) for one in results], indent=1))
    return int(any(result.wrong for result in results))


if __name__ == "__main__":
    sys.exit(main())
