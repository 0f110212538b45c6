"""How far `fencepost watch` is behind a history that is written at a rate, and what an operation costs it.

A process writes JSON lines: producers append single records to the partitions of one trace under way, and
consumers read what was acknowledged, a few records at a time. Every --every seconds a file arrives, numbered,
with its low watermark. Processor time and memory are of all processes of the watch, until everything is
judged; the writer's are next to them. Lag means nothing where others use the machine; processor time nearly
does.
"""

import argparse
import json
import math
import subprocess
import tempfile
import time
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path
from threading import Thread
from typing import Any

from attrs import define

from bench.clusters import PROGRAM
from bench.costs import Cost, tree
from bench.harness import Case

TURNS = 1
SECOND = 1_000_000_000
READ_EVERY = 5
"""Appends to a partition, each acknowledged, before one poll reads them all: every sixth row."""
LOOK_S = 0.5
TRACE = '{"type":"trace","trace_id":1,"plan":"","seed":0,"software_version":"bench"}\n'
FIRST = TRACE.replace('"trace_id":1', '"trace_id":0,"digest":"' + "0" * 32 + '"')
"""A whole trace: until it is judged, Spark starts."""


def rows(partitions: int) -> Iterator[tuple[str, int]]:
    """(line, time) of one operation after another, without end. Times go up by a microsecond."""
    ends, op, now = [0] * partitions, 0, SECOND

    def line(process: int, function: str, partition: int, more: str, values: range, first: int) -> str:
        records = ",".join(
            f'{{"topic":"t","partition":{partition},"offset":{offset},"value":{value},"leader_epoch":1}}'
            for offset, value in enumerate(values, first)
        )
        return (
            f'{{"type":"operation","op_id":{op},"process":{process},"function":"{function}",'
            f'"invoke_time":{now},"outcome":"ok","completion_time":{now + 900},"topic":"t",'
            f'"partition":{partition},{more},"offset":{first},"leader_epoch":1,"records":[{records}]}}\n'
        )

    while True:
        for partition in range(partitions):
            first = ends[partition]
            for _ in range(READ_EVERY):
                yield (
                    line(partition, "append", partition, '"acks":-1', range(op, op + 1), ends[partition]),
                    now + 900,
                )
                ends[partition], op, now = ends[partition] + 1, op + 1, now + 1_000
            end = f'"end_offset":{ends[partition]}'
            yield (
                line(partitions + partition, "poll", partition, end, range(op - READ_EVERY, op), first),
                now + 900,
            )
            op, now = op + 1, now + 1_000


def files(asked: argparse.Namespace) -> int:
    """How many arrive."""
    return math.ceil(asked.seconds / asked.every)


def operations(asked: argparse.Namespace) -> int:
    """How many are written."""
    return int(asked.rate * asked.every) * files(asked)


def write_at(folder: Path, asked: argparse.Namespace, done: Any) -> None:
    """The writer's process: files arrive whole, at the rate if it can. done: shared; operations, seconds of
    processor time, seconds."""
    source, start, cpu = rows(asked.partitions), time.monotonic(), time.process_time()
    for number in range(1, files(asked) + 1):
        lines = [next(source) for _ in range(int(asked.rate * asked.every))]
        mark = {"type": "event", "time": lines[-1][1], "name": "mark", "offset": number}
        last = json.dumps(mark | {"cause": "low_watermark"}) + "\n"
        hidden = folder / f".{number:06}.jsonl"
        hidden.write_text("".join([TRACE, *(line for line, _ in lines), last]))
        hidden.rename(folder / f"{number:06}.jsonl")
        done[:] = done[0] + len(lines), time.process_time() - cpu, time.monotonic() - start
        time.sleep(max(0.0, start + number * asked.every - time.monotonic()))


@define
class Watch:
    """A `fencepost watch` that runs, and what it says."""

    process: "subprocess.Popen[str]"
    operations: int = 0
    waiting: int = 0
    rounds: int = 0
    findings: int = 0
    lag_s: float = 0.0

    def hear(self) -> None:
        """Until it ends."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            said = json.loads(line)
            for name in ("operations", "waiting", "rounds", "findings", "lag_s"):
                setattr(self, name, said.get(name, getattr(self, name)))

    def look(self) -> None:
        """Wait a moment. Raises SystemExit if the watch has ended."""
        time.sleep(LOOK_S)
        if self.process.poll() is not None:
            raise SystemExit(f"fencepost watch ended with code {self.process.returncode}")


def followed(watch: Watch, folder: Path, asked: argparse.Namespace) -> tuple[Cost, Cost]:
    """Write, until everything is judged. Returns the costs of the watch and of the writer."""
    spawn = get_context("spawn")
    done = spawn.Array("d", 3)
    writer = spawn.Process(target=write_at, args=(folder, asked, done), daemon=True)
    while not watch.operations:
        watch.look()
    watch.lag_s, began = 0.0, time.perf_counter()
    used = {process: one.cpu_s for process, one in tree(watch.process.pid).items()}
    before, lags, most = sum(used.values()), [0.0], {"Python MiB": 0.0, "JVM MiB": 0.0}
    writer.start()
    try:
        while writer.is_alive() or watch.operations - 1 < done[0] or watch.waiting:
            watch.look()
            seen = tree(watch.process.pid)
            used.update((process, one.cpu_s) for process, one in seen.items())  # some end meanwhile
            for name, java in (("Python MiB", False), ("JVM MiB", True)):
                most[name] = max(most[name], sum(one.mib for one in seen.values() if one.java == java))
            lags.append(watch.lag_s)
            if time.perf_counter() - began > 10 * asked.seconds + 60:
                raise SystemExit(f"{watch.operations - 1:,} of {done[0]:,.0f} operations were judged")
    finally:
        writer.terminate()
        writer.join()
    wall_s, half = time.perf_counter() - began, len(lags) // 2
    assert watch.findings == 0, f"a history without a flaw has {watch.findings} findings"
    assert done[0] == operations(asked), f"{done[0]:.0f} of {operations(asked)} operations were written"
    halves = {"most lag s, first half": max(lags[: half + 1]), "second half": max(lags[half:])}
    more = {"rounds": watch.rounds, **most, **halves}
    cost = Cost(wall_s=wall_s, cpu_s=sum(used.values()) - before, mib=sum(most.values()), more=more)
    return cost, Cost(wall_s=done[2], cpu_s=done[1])


def watched(asked: argparse.Namespace) -> tuple[Cost, Cost]:
    """One turn."""
    with tempfile.TemporaryDirectory(prefix="fencepost-bench-") as temporary:
        folder = Path(temporary) / "in"
        folder.mkdir()
        (folder / "warm.jsonl").write_text(FIRST + next(rows(1))[0])
        words = ["watch", str(folder), "--out", f"{temporary}/out", "--json"]
        with subprocess.Popen(
            [*PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            watch = Watch(process)
            Thread(target=watch.hear, daemon=True).start()
            try:
                return followed(watch, folder, asked)
            finally:
                process.terminate()


def arguments(parser: argparse.ArgumentParser) -> None:
    """Of this measure."""
    parser.add_argument("--rate", type=int, default=10_000, help="operations a second [quick: 500]")
    parser.add_argument("--seconds", type=float, default=60, help="[quick: 2]")
    parser.add_argument("--every", type=float, default=1.0, help="seconds between files")
    parser.add_argument("--partitions", type=int, default=8)


def measure(asked: argparse.Namespace) -> Iterator[Case]:
    """One case."""
    if asked.quick:
        asked.rate, asked.seconds = 500, 2.0
    costs: list[Cost] = []

    def watch() -> Cost:
        first, second = watched(asked)
        costs.append(second)
        return first

    yield Case(
        name=f"{asked.rate:,} a second for {asked.seconds:g} s",
        sides={"watch": watch, "writer": lambda: costs.pop()},
        per=operations(asked),
        unit="operation",
        warm=False,
    )
