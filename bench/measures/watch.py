"""How far `fencepost watch` is behind a history that is written at a given rate, over time.

    python -m bench.watch_lag --rate 50000 --seconds 120

A process writes JSON lines at the rate: producers append single records to the partitions of one trace
under way, and consumers read what was acknowledged, a few records at a time. Every `--every` seconds a
file arrives, numbered, with its low watermark. `fencepost watch` runs in processes of its own. Once a
second a line tells: written, judged, the lag that watch reports, how many operations it is behind. At
last: processor seconds per million operations (all of watch's processes, and the writer's apart), and the
most memory of its Python processes and of the JVM. Lag means nothing where others use the machine;
processor seconds nearly do.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from bench.process_tree import PAGE, TICKS

SECOND = 1_000_000_000
READ_EVERY = 5
"""Appends to a partition, each acknowledged, before one poll reads them all: every sixth row."""
TRACE = '{"type":"trace","trace_id":1,"plan":"","seed":0,"software_version":"bench"}\n'


def rows(partitions: int) -> Iterator[tuple[str, int]]:
    """(line, time) of one operation after another, without end. Times go up by a microsecond."""
    ends, op, now = [0] * partitions, 0, SECOND
    while True:
        for partition in range(partitions):
            first = ends[partition]
            for _ in range(READ_EVERY):
                offset = ends[partition]
                ends[partition] = offset + 1
                record = (
                    f'{{"topic":"t","partition":{partition},"offset":{offset},"value":{op},"leader_epoch":1}}'
                )
                yield (
                    f'{{"type":"operation","op_id":{op},"process":{partition},"function":"append",'
                    f'"invoke_time":{now},"outcome":"ok","completion_time":{now + 900},"topic":"t",'
                    f'"partition":{partition},"acks":-1,"offset":{offset},"leader_epoch":1,'
                    f'"records":[{record}]}}\n',
                    now + 900,
                )
                op, now = op + 1, now + 1_000
            records = ",".join(
                f'{{"topic":"t","partition":{partition},"offset":{offset},'
                f'"value":{op - READ_EVERY + offset - first},"leader_epoch":1}}'
                for offset in range(first, ends[partition])
            )
            yield (
                f'{{"type":"operation","op_id":{op},"process":{partitions + partition},"function":"poll",'
                f'"invoke_time":{now},"outcome":"ok","completion_time":{now + 900},"topic":"t",'
                f'"partition":{partition},"offset":{first},"end_offset":{ends[partition]},'
                f'"leader_epoch":1,"records":[{records}]}}\n',
                now + 900,
            )
            op, now = op + 1, now + 1_000


def write_file(folder: Path, number: int, source: Iterator[tuple[str, int]], count: int) -> int:
    """One file arrives whole; answers its bytes."""
    lines, last = [TRACE], 0
    for _ in range(count):
        line, last = next(source)
        lines.append(line)
    lines.append(
        f'{{"type":"event","time":{last},"name":"mark","offset":{number},"cause":"low_watermark"}}\n'
    )
    hidden = folder / f".{number:06}.jsonl"
    data = "".join(lines)
    hidden.write_text(data)
    hidden.rename(folder / f"{number:06}.jsonl")
    return len(data)


def write_at(folder: Path, rate: int, seconds: float, every: float, partitions: int) -> None:
    """The writer's process: files at the rate; each state on a line of standard output."""
    source, start, number, written = rows(partitions), time.monotonic(), 0, 0
    while time.monotonic() - start < seconds:
        number += 1
        count = int(rate * every)
        write_file(folder, number, source, count)
        written += count
        print(json.dumps({"written": written, "processor": time.process_time()}), flush=True)
        time.sleep(max(0.0, start + number * every - time.monotonic()))


@frozen(kw_only=True)
class Used:
    """Of a process and all below it. python, jvm: processor seconds, those of ended children with them;
    python_bytes, jvm_bytes: resident."""

    python: float
    jvm: float
    python_bytes: int
    jvm_bytes: int


def _used(root: int) -> Used:
    found: dict[int, tuple[int, bool, int, int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name, rest = (folder / "stat").read_text().rsplit(")", 1)
            told = rest.split()
            resident = int((folder / "statm").read_text().split()[1]) * PAGE
        except (OSError, ValueError, IndexError):
            continue
        found[int(folder.name)] = (int(told[1]), "java" in name, sum(map(int, told[11:15])), resident)

    def below(process: int) -> bool:
        while process in found and process != root:
            process = found[process][0]
        return process == root

    mine = [one for process, one in found.items() if below(process)]
    return Used(
        python=sum(ticks for _, java, ticks, _ in mine if not java) / TICKS,
        jvm=sum(ticks for _, java, ticks, _ in mine if java) / TICKS,
        python_bytes=sum(resident for _, java, _, resident in mine if not java),
        jvm_bytes=sum(resident for _, java, _, resident in mine if java),
    )


def main() -> None:
    """Write, watch, tell."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rate", type=int, default=50_000, help="operations a second")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--every", type=float, default=1.0, help="seconds between files")
    parser.add_argument("--partitions", type=int, default=8)
    parser.add_argument("--horizon", type=int, default=10_000)
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.write is not None:
        write_at(asked.write, asked.rate, asked.seconds, asked.every, asked.partitions)
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # what was started is ended
    with tempfile.TemporaryDirectory() as temporary:
        folder, out = Path(temporary) / "in", Path(temporary) / "out"
        folder.mkdir()
        _measure(asked, folder, out)


def _measure(asked: argparse.Namespace, folder: Path, out: Path) -> None:
    (folder / "warm.jsonl").write_text(
        TRACE.replace('"trace_id":1', '"trace_id":0,"digest":"' + "0" * 32 + '"') + next(rows(1))[0]
    )  # until it is judged, Spark starts
    command = [
        sys.executable,
        "-c",
        "from fencepost.cli import main; main()",
        "watch",
        str(folder),
        "--out",
        str(out),
    ]
    watch = subprocess.Popen(
        [*command, "--json", "--horizon", str(asked.horizon)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    started = [watch]
    try:
        seen = {"operations": 0, "judged": 0, "lag_s": 0.0, "batches": 0, "findings": 0}
        wrote = {"written": 0, "processor": 0.0}
        threading.Thread(target=_hear, args=(watch, seen), daemon=True).start()
        while not seen["operations"]:
            time.sleep(0.2)
        seen["lag_s"] = 0.0  # of the first file: Spark's start
        writer = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "bench.watch_lag",
                "--write",
                str(folder),
                "--rate",
                str(asked.rate),
                "--seconds",
                str(asked.seconds),
                "--every",
                str(asked.every),
                "--partitions",
                str(asked.partitions),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(writer)
        threading.Thread(target=_hear, args=(writer, wrote), daemon=True).start()
        before, start, most, worst = _used(watch.pid), time.monotonic(), [0, 0], 0.0
        print("   s    written     judged     behind   lag s  python s   JVM s  python MB  JVM MB   load")
        while writer.poll() is None or seen["operations"] - 1 < wrote["written"]:
            time.sleep(1)
            now = _used(watch.pid)
            most = [max(most[0], now.python_bytes), max(most[1], now.jvm_bytes)]
            worst = max(worst, seen["lag_s"])
            print(
                f"{time.monotonic() - start:4.0f} {wrote['written']:10,} {seen['operations'] - 1:10,}"
                f" {wrote['written'] - seen['operations'] + 1:10,} {seen['lag_s']:7.1f}"
                f" {now.python - before.python:9.1f} {now.jvm - before.jvm:7.1f} {now.python_bytes >> 20:10,}"
                f" {now.jvm_bytes >> 20:7,} {os.getloadavg()[0]:6.1f}",
                flush=True,
            )
            if time.monotonic() - start > 10 * asked.seconds + 60 or watch.poll() is not None:
                break
        now, done = _used(watch.pid), max(1, seen["operations"] - 1)
        python, jvm = ((used / done * 1e6) for used in (now.python - before.python, now.jvm - before.jvm))
        writing = wrote["processor"] / max(1, wrote["written"]) * 1e6
        print(
            f"{done:,} operations in {seen['batches']} micro-batches; the most lag {worst:.1f} s; processor "
            f"seconds"
            f" per million operations: watch {python + jvm:.1f} (Python {python:.1f}, JVM {jvm:.1f}), writer"
            f" {writing:.1f}; the most memory: Python {most[0] >> 20:,} MB, JVM {most[1] >> 20:,} MB;"
            f" findings {seen['findings']}"
        )
    finally:
        for process in started:
            process.terminate()
            process.wait()


def _hear(process: "subprocess.Popen[str]", into: dict[str, float]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        told = json.loads(line)
        into.update({name: told[name] for name in into if name in told})


if __name__ == "__main__":
    main()
