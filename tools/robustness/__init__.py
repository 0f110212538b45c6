"""`python -m tools.robustness [WORD...]` (`make measure NAME=robustness`): kills commands, fills a disk,
damages stores, asks brokers of others, and looks at what is left.

Owns the cases and their table. Must not know how a command works: each case runs `fencepost` as a user does.
A case fails if there is a traceback, if something is lost or doubled, or if something is left behind. The
ledger is out/robustness/COMMIT.jsonl, so that a run goes on where it stopped.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import rich_click as click

from fencepost.console.output import Output
from fencepost.traces.errors import ExitCode
from tools.ledger import TOP, Ledger
from tools.page import Place
from tools.program import FAILED, OK, SKIPPED, Done, run_cases
from tools.robustness.foreign_brokers import BROKERS, BrokenError, LacksError, conformance_of, ran

MARK = "<!-- measured: robustness -->"
SEEDS = 30
KILLS_S = (0.5, 1.5, 3.0, 6.0)
"""When a command is killed: while it loads, early, in the middle, late or after its end."""
LONGEST_S = 900
DISK_KB = 512
"""A tmpfs of this size: a page of a trace is larger, a store's first file is not."""
LOCAL = ("--master", "local[1]")
BEFORE = "what was there before"
Case = Callable[[Path], str]
"""A case in a folder of its own: what was seen, in words. Raises BrokenError, LacksError."""


def needs_java() -> None:
    """Raises LacksError."""
    if shutil.which("java") is None:
        raise LacksError("no java on the path")


def store_in(folder: Path) -> Path:
    """A small campaign's folder."""
    ran("campaign", "--seeds", f"0:{SEEDS}", "--out", folder / "store")
    return folder / "store"


# ---- kills


def kills(
    folder: Path,
    *words: object,
    seconds: tuple[float, ...] = KILLS_S,
    resumes: Path | None = None,
    after: Callable[[], object] = lambda: None,
) -> str:
    """Kill a command again and again. resumes: where this is, the command goes on with it. after: looks at
    what a kill left. Raises BrokenError for processes that go on."""
    for each in seconds:
        again = ("--resume",) if resumes is not None and resumes.exists() else ()
        command = [sys.executable, "-m", "fencepost", *map(str, words), *again]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                process.wait(each)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
        nothing_runs(folder)
        after()
    return f"{len(seconds)} kills"


def nothing_runs(folder: Path) -> None:
    """Wait until no process has this folder in its environment or command line. Raises BrokenError."""
    deadline = time.monotonic() + LONGEST_S
    while left := list(_naming(folder)):
        if time.monotonic() > deadline:
            raise BrokenError(f"processes that still run: {left}")
        time.sleep(0.1)


def _naming(folder: Path) -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            try:
                said = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            except OSError:
                continue
            if str(folder).encode() in said:
                yield int(entry.name)


def only(folder: Path, *names: str) -> None:
    """Raises BrokenError for what else is in a folder."""
    if left := sorted({path.name for path in folder.iterdir()} - {*names}) if folder.exists() else []:
        raise BrokenError(f"left behind: {', '.join(left)}")


def kill_campaign(folder: Path) -> str:
    """A campaign that is killed several times has every seed once."""
    words = ("campaign", "--seeds", f"0:{SEEDS}", "--out", folder / "out")
    said = kills(folder, *words, resumes=folder / "out")
    ran(*words, "--resume")
    lines = (folder / "out" / "verdicts.jsonl").read_text().splitlines()
    seeds = sorted(json.loads(line)["seed"] for line in lines)
    if seeds != list(range(SEEDS)):
        raise BrokenError(f"{SEEDS} seeds became {len(seeds)}, of them {len(set(seeds))} different ones")
    return f"{said}, each of {SEEDS} seeds once"


def kill_convert(folder: Path) -> str:
    """What a killed `mine convert` has written is whole or not there."""
    store, out = store_in(folder), folder / "killed.jsonl"
    ran("mine", "convert", store, "--out", folder / "whole.jsonl")

    def whole_or_not_there() -> None:
        if out.exists() and out.read_bytes() != (folder / "whole.jsonl").read_bytes():
            raise BrokenError("half a file is there")
        out.unlink(missing_ok=True)

    return (
        f"{kills(folder, 'mine', 'convert', store, '--out', out, after=whole_or_not_there)}, whole or nothing"
    )


def kill_mine(folder: Path) -> str:
    """A mining that is killed goes on, counts every trace once, and the temporary folder is swept."""
    needs_java()
    mined = folder / "mined"
    words = ("mine", store_in(folder), "--out", mined, *LOCAL)
    said = kills(folder, *words, seconds=(6.0, 12.0, 20.0), resumes=mined)
    if not (mined / "summary.json").exists():  # else the last kill came after its end
        ran(*words, *(("--resume",) if mined.exists() else ()))
    counted = sum(json.loads((mined / "summary.json").read_text())["traces"].values())
    if counted != SEEDS:
        raise BrokenError(f"{SEEDS} traces became {counted}")
    ours = ("fencepost-", "blockmgr-", "spark-")
    if left := [path.name for path in (folder / "tmp").iterdir() if path.name.startswith(ours)]:
        raise BrokenError(f"left in the temporary folder: {', '.join(left)}")
    return f"{said}, each of {SEEDS} traces once, nothing left"


def kill_cluster(folder: Path) -> str:
    """The processes of a killed `cluster up` end."""
    needs_java()
    kills(folder, "cluster", "up", "--brokers", "2", "--directory", folder / "cluster", seconds=(20.0,))
    return "no process left"


def kill_torture(folder: Path) -> str:
    """The processes of a killed `torture` end, and the next call goes on."""
    words = ("torture", "confluent-kafka", "--seeds", "0:4", "--replays", "0", "--out", folder / "out")
    said = kills(folder, *words, seconds=(2.0, 6.0, 12.0), resumes=folder / "out")
    code = ran(*words, *(("--resume",) if (folder / "out").exists() else ())).returncode
    return f"{said}, no process left, and the next call ends with {code}"


def kill_shrink(folder: Path) -> str:
    """Neither workers nor half a plan stay of a killed `shrink`, and the next one ends."""
    out = folder / "small.json"
    words = ("shrink", "--seed", "20", "--bug", "KIP-101", "--out", out, "--jobs", "2")
    said = kills(folder, *words, after=lambda: _plan(folder, out))
    ran(*words, codes=(1,))
    return f"{said}, no worker and no half plan left, and the next call ends"


def _plan(folder: Path, path: Path) -> None:
    only(folder, path.name, "tmp")
    if path.exists():
        json.loads(path.read_text())


def kill_package(folder: Path) -> str:
    """An archive of a killed `mine package` is whole or not there, and the next call writes it."""
    out = folder / "spark"
    words = ("mine", "package", out, "--no-libraries")
    said = kills(folder, *words, after=lambda: _read_whole(out / "environment.tar.gz"))
    ran(*words, codes=(0,))
    only(out, "environment.tar.gz", "entry.py")
    if not _read_whole(out / "environment.tar.gz"):
        raise BrokenError("there is no archive after the last call")
    return f"{said}, the archive whole or not there each time, and the next call writes it"


def _read_whole(archive: Path) -> bool:
    if not archive.exists():
        return False
    with tarfile.open(archive) as tar:
        for member in tar:
            if (file := tar.extractfile(member)) is not None:
                while file.read(1 << 20):
                    pass
    return True


def kill_audit(folder: Path) -> str:
    """An audit only reads: killed, it leaves the files as they were, and the next one ends."""
    files = folder / "files"
    subprocess.run([sys.executable, "-c", WRITTEN, str(files)], capture_output=True, check=False)
    before = {path: path.read_bytes() for path in sorted(files.rglob("*")) if path.is_file()}
    words = ("log", "audit", *(f"{path.name}={path}" for path in sorted(files.iterdir())))
    said = kills(folder, *words, after=lambda: only(folder / "tmp"))
    code = ran(*words).returncode
    if not before or before != {path: path.read_bytes() for path in files.rglob("*") if path.is_file()}:
        raise BrokenError("the audit has changed what it read")
    return f"{said}, {len(before)} files as they were, and the next call ends with {code}"


WRITTEN = """
import sys
from pathlib import Path
import fencepost.kafka
from kafka import KafkaProducer
Path(sys.argv[1]).mkdir()
with fencepost.kafka.cluster(brokers=3, directory=sys.argv[1]) as cluster:
    cluster.create_topic("t", partitions=3)
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers)
    for number in range(5_000):
        producer.send("t", b"%d" % number)
    producer.close()
"""
"""The directories of three brokers."""


# ---- files under watch


def watched(folder: Path) -> str:
    """Half a file is not judged, the whole one once, and one that takes its place is judged or named."""
    needs_java()
    file = folder / "incoming" / "a.jsonl"
    file.parent.mkdir()
    for name, seeds in (("first", "0:3"), ("second", "3:6")):
        ran("campaign", "--seeds", seeds, "--out", folder / f"{name}-store")
        ran("mine", "convert", folder / f"{name}-store", "--out", folder / f"{name}.jsonl")
    whole, other = ((folder / f"{name}.jsonl").read_bytes() for name in ("first", "second"))
    codes = {}
    for what, data in (("half", whole[: len(whole) // 2]), ("whole", whole), ("replaced", other)):
        (folder / "draft").write_bytes(data)
        (folder / "draft").replace(file)
        words = ("watch", file.parent, "--once", "--out", folder / "watched", "--json")
        done = ran(*words, codes=(0, 1, 2, 3))
        if '"type":"finding"' in done.stdout.replace(" ", ""):
            raise BrokenError("a healthy run is convicted")
        codes[what] = done.returncode
    if codes["whole"] != 0:
        raise BrokenError(f"the whole file is not judged: exit code {codes['whole']}")
    return "; ".join(f"{what}: exit code {code}" for what, code in codes.items())


# ---- a full disk


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A disk of DISK_KB. Raises LacksError where this user may not mount one."""
    disk = folder / "disk"
    disk.mkdir()
    if os.geteuid() or shutil.which("mount") is None:
        raise LacksError("a small tmpfs needs root")
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_KB}k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        raise LacksError("a tmpfs cannot be mounted here")
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=False)


def full_disk(folder: Path, words: tuple[str, ...]) -> str:
    """On a full disk a file that was there stays, no draft does, and the sentence names file and reason."""
    store = store_in(folder)
    with small_disk(folder) as disk:
        page = disk / "page"
        page.write_text(BEFORE)
        (disk / "filler").write_bytes(bytes((DISK_KB - 8) * 1024))
        said = ran(*(word.format(store=store, page=page, folder=folder) for word in words), codes=(2,)).stderr
        if "No space left" not in said or "page" not in said:
            raise BrokenError(f"file or reason is not said: {said.strip()[-200:]}")
        if page.read_text() != BEFORE:
            raise BrokenError("the old file is gone")
        only(disk, "page", "filler")
    return "the old file stays, and one sentence says why"


# ---- damaged stores


def _cut(store: Path) -> None:
    part = next((store / "operations").glob("part-*"))
    part.write_bytes(part.read_bytes()[:-100])


def _flip(store: Path) -> None:
    part = next((store / "events").glob("part-*"))
    data = bytearray(part.read_bytes())
    for place in range(len(data) // 4, len(data) // 2, 97):
        data[place] ^= 0xFF
    part.write_bytes(data)


def _lose(store: Path) -> None:
    for part in (store / "traces").glob("part-*"):
        part.unlink()


def damaged(folder: Path, damage: Callable[[Path], None], words: tuple[str, ...]) -> str:
    """A damaged store costs what is damaged, and the command names it."""
    if words[0] == "mine":
        needs_java()
    store = store_in(folder)
    damage(store)
    done = ran(*(word.format(store=store, out=folder / "out") for word in words), codes=(0, 1, 2, 3))
    if "part-" not in done.stderr + done.stdout:
        raise BrokenError("the damaged part is not named")
    return f"exit code {done.returncode}, and the part is named"


DAMAGES = {"a cut part": _cut, "flipped bytes": _flip, "a lost file of runs": _lose}
READERS = {"check": ("check", "{store}"), "mine": ("mine", "{store}", "--out", "{out}", *LOCAL)}
WRITERS = {
    "show --html": ("show", "{store}", "--trace", "0", "--html", "{page}"),
    "campaign --html": ("campaign", "--seeds", "0:2", "--out", "{folder}/new", "--html", "{page}"),
    "shrink": ("shrink", "--seed", "20", "--bug", "KIP-101", "--out", "{page}"),
}
CASES: dict[str, Case] = {
    "campaign under kill": kill_campaign,
    "mine convert under kill": kill_convert,
    "mine under kill": kill_mine,
    "cluster up under kill": kill_cluster,
    "torture under kill": kill_torture,
    "shrink under kill": kill_shrink,
    "mine package under kill": kill_package,
    "log audit under kill": kill_audit,
    "watch of files half written and replaced": watched,
    **{f"{name} on a full disk": partial(full_disk, words=words) for name, words in WRITERS.items()},
    **{
        f"{name} of {what}": partial(damaged, damage=damage, words=words)
        for name, words in READERS.items()
        for what, damage in DAMAGES.items()
    },
    **{f"conformance of {name}": partial(conformance_of, broker=each) for name, each in BROKERS.items()},
}


def tried(name: str, case: Case) -> Done:
    """One case in a folder of its own, with a temporary folder in it."""
    before = os.environ.get("TMPDIR")
    with tempfile.TemporaryDirectory(prefix="fencepost-robust-", ignore_cleanup_errors=True) as folder:
        (Path(folder) / "tmp").mkdir()
        os.environ["TMPDIR"] = str(Path(folder) / "tmp")
        try:
            return Done(case=name, why=case(Path(folder)))
        except LacksError as lacks:
            return Done(case=name, outcome=SKIPPED, why=str(lacks))
        except BrokenError as broken:
            return Done(case=name, outcome=FAILED, why=str(broken))
        finally:
            os.environ.pop("TMPDIR") if before is None else os.environ.update(TMPDIR=before)


def lines_of(rows: list[Done]) -> list[str]:
    """What the page says: how many cases, and each."""
    counts = Counter(row.outcome for row in rows)
    number = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
    marks = {row.case: "" if row.outcome == OK else f"**{row.outcome}**: " for row in rows}
    table = [f"| {row.case} | {marks[row.case]}{row.why.replace('|', '/')} |" for row in rows]
    return [f"{len(rows)} cases: {number}.", "", "| case | what was seen |", "|---|---|", *table]


@click.command("robustness", help=__doc__)
@click.argument("words", nargs=-1)
@click.option("--docs", type=click.Path(path_type=Path), help="put the table between this page's marks")
def command(words: tuple[str, ...], docs: Path | None) -> ExitCode:
    """Try all cases, or those that are named."""
    asked = ["git", "rev-parse", "--short=8", "HEAD"]
    commit = subprocess.run(asked, cwd=TOP, capture_output=True, text=True, check=True).stdout.strip()
    path = TOP / "out" / "robustness" / f"{commit}.jsonl"
    ledger = Ledger.open(path, Done, key=lambda row: row.case, of="robustness")
    fine = {name: row for name, row in ledger.rows.items() if row.outcome != FAILED}
    cases = {
        name: (lambda name=name: fine[name]) if name in fine else partial(tried, name, case)
        for name, case in CASES.items()
    }
    code = run_cases(cases, words, Output(), keep=ledger.add)
    if docs is not None:
        rows = [ledger.rows[name] for name in CASES if name in ledger.rows]
        Place(page=docs, mark=MARK).write_table(lines_of(rows))
    return code
