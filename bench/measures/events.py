"""The judge of an application's own lines against decoding the same lines as JSON, which is the least that
any reader does.

A run has one producer and four consumers of eight partitions: a fifth of the lines each are sent,
acknowledged, received, processed and committed, with keys and values. Nothing is wrong with it.
"""

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

import msgspec

from bench.harness import Case, wanted
from fencepost.application.event_columns import read_events
from fencepost.checkers.application.application_judge import judge_events
from fencepost.checkers.verdict import Decision

PARTITIONS, CONSUMERS = 8, 4


def written(folder: Path, records: int) -> list[Path]:
    """The files of a run."""
    hashes = Random(1)
    lines: dict[str, list[str]] = {"shop": []}

    def add(event: str, process: str, rest: str) -> None:
        mine = lines.setdefault(process, [])
        mine.append(f'{{"event":"{event}","process":"{process}","n":{len(mine)}{rest}}}\n')

    for number in range(records):
        key, value = (f"{hashes.getrandbits(64):016x}" for _ in range(2))
        partition, offset = number % PARTITIONS, number // PARTITIONS
        at = f',"topic":"orders","partition":{partition},"offset":'
        add("sent", "shop", f',"id":{number},"topic":"orders","key":"{key}","value":"{value}"')
        add("acknowledged", "shop", f',"id":{number}{at}{offset}')
        consumer = f"billing-{partition % CONSUMERS}"
        add("received", consumer, f',"group":"billing"{at}{offset},"key":"{key}","value":"{value}"')
        add("processed", consumer, f"{at}{offset}")
        add("committed", consumer, f"{at}{offset + 1}")
    for process, text in lines.items():
        (folder / f"{process}.events").write_text("".join(text))
    return sorted(folder.glob("*.events"))


def judge(files: list[Path]) -> None:
    """Read and judge the run, which is right."""
    verdict = judge_events(read_events(files)).verdict
    assert verdict.decision is Decision.OK, verdict


def decode(files: list[Path]) -> None:
    """Decode each line."""
    decoder = msgspec.json.Decoder()
    for path in files:
        with path.open("rb") as file:
            for line in file:
                decoder.decode(line)


def measure(asked: argparse.Namespace) -> Iterator[Case]:
    """By the number of events."""
    for events in (2_000,) if asked.quick else (1_000_000, 10_000_000):
        name = f"{events:,} events"
        if not wanted(asked, name):
            continue
        with tempfile.TemporaryDirectory(prefix="fencepost-bench-events-") as folder:
            files = written(Path(folder), events // 5)
            sides = {"judge": lambda files=files: judge(files), "decoding": lambda files=files: decode(files)}
            yield Case(name=name, sides=sides, per=events, unit="event")
