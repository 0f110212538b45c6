"""`python -m tools.robustness [WORD...]` (`make measure NAME=robustness`): kills commands, fills a disk,
damages stores, asks brokers of others, and looks at what is left.

Owns the cases and their table. Must not know how a command works: each case runs `fencepost` as a user does.
A case fails if there is a traceback, if something is lost or doubled, or if something is left behind.
"""

import importlib.util
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
from tools import program
from tools.page import Place
from tools.program import FAILED, SKIPPED, Done, run_cases

MARK = "<!-- measured: robustness -->"
FENCEPOST = (sys.executable, "-m", "fencepost")
SEEDS = 30
KILLS_S = (0.5, 1.5, 3.0, 6.0)
"""When a command is killed: while it loads, early, in the middle, late or after its end."""
LONGEST_S = 900
DISK_KB = 512
"""A tmpfs of this size: a page of a trace is larger, a store's first file is not."""


class BrokenError(Exception):
    """What a case found, in words."""


class LacksError(Exception):
    """What this machine lacks for a case."""


def ran(*words: object, codes: tuple[int, ...] = (0, 1)) -> "subprocess.CompletedProcess[str]":
    """A command that ends. Raises BrokenError for a traceback or another exit code."""
    done = subprocess.run(
        [*FENCEPOST, *map(str, words)], capture_output=True, text=True, timeout=LONGEST_S, check=False
    )
    if "Traceback" in done.stderr:
        raise BrokenError(f"{words[0]}: a traceback: {done.stderr.strip().splitlines()[-1]}")
    if done.returncode not in codes:
        raise BrokenError(f"{words[0]}: exit code {done.returncode}: {done.stderr.strip()[-200:]}")
    return done


def killed(
    seconds: float,
    *words: object,
    environment: dict[str, str] | None = None,
    program: tuple[str, ...] = FENCEPOST,
) -> None:
    """A command that is killed after so many seconds, if it still runs."""
    process = subprocess.Popen(
        [*program, *map(str, words)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **(environment or {})},
    )
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()


def needs_java() -> None:
    """Raises LacksError."""
    if shutil.which("java") is None:
        raise LacksError("no java on the path")


def store_in(folder: Path) -> Path:
    """A small campaign's folder."""
    ran("campaign", "--seeds", f"0:{SEEDS}", "--out", folder / "store")
    return folder / "store"


# ---- kills


def kill_campaign(folder: Path) -> str:
    """A campaign that is killed several times has every seed once."""
    words = ("campaign", "--seeds", f"0:{SEEDS}", "--out", folder / "out")
    for number, seconds in enumerate(KILLS_S):
        resume = ("--resume",) if (folder / "out").exists() else ()
        killed(seconds, *words, *resume)
        if number == len(KILLS_S) - 1:
            ran(*words, "--resume")
    lines = (folder / "out" / "verdicts.jsonl").read_text().splitlines()
    seeds = sorted(json.loads(line)["seed"] for line in lines)
    if seeds != list(range(SEEDS)):
        raise BrokenError(f"{SEEDS} seeds became {len(seeds)}, of them {len(set(seeds))} different ones")
    return f"{len(KILLS_S)} kills, each of {SEEDS} seeds once"


def kill_convert(folder: Path) -> str:
    """What a killed `mine convert` has written is whole or not there."""
    store, out = store_in(folder), folder / "all.jsonl"
    ran("mine", "convert", store, "--out", out)
    whole = out.read_bytes()
    for number, seconds in enumerate(KILLS_S):
        out = folder / f"killed-{number}.jsonl"
        killed(seconds, "mine", "convert", store, "--out", out)
        if out.exists() and out.read_bytes() != whole:
            raise BrokenError(f"after {seconds} s half a file is there")
    return f"{len(KILLS_S)} kills, whole or nothing each time"


def kill_mine(folder: Path) -> str:
    """A mining that is killed goes on, counts every trace once, and the temporary folder is swept."""
    needs_java()
    store, temporary = store_in(folder), folder / "tmp"
    temporary.mkdir()
    words = ("mine", store, "--out", folder / "mined", "--master", "local[1]")
    environment = {"TMPDIR": str(temporary)}
    for seconds in (6.0, 12.0, 20.0):
        resume = ("--resume",) if (folder / "mined").exists() else ()
        killed(seconds, *words, *resume, environment=environment)
    before = os.environ.get("TMPDIR")
    os.environ["TMPDIR"] = str(temporary)
    try:
        if not (folder / "mined" / "summary.json").exists():  # the last kill came after its end
            ran(*words, *(("--resume",) if (folder / "mined").exists() else ()))
    finally:
        os.environ.pop("TMPDIR") if before is None else os.environ.update(TMPDIR=before)
    counted = sum(json.loads((folder / "mined" / "summary.json").read_text())["traces"].values())
    if counted != SEEDS:
        raise BrokenError(f"{SEEDS} traces became {counted}")
    if left := [
        path.name for path in temporary.iterdir() if path.name.startswith(("fencepost-", "blockmgr"))
    ]:
        raise BrokenError(f"left in the temporary folder: {', '.join(left)}")
    return f"3 kills, each of {SEEDS} traces once, nothing left"


def kill_cluster(folder: Path) -> str:
    """The processes of a killed `cluster up` end."""
    needs_java()
    killed(20.0, "cluster", "up", "--brokers", "2", "--directory", folder / "cluster")
    nothing_runs(folder / "cluster")
    return "no process left"


def kill_shrink(folder: Path) -> str:
    """Neither workers nor half a plan stay of a killed `shrink`, and the next one ends."""
    out = folder / "small.json"
    words = ("shrink", "--seed", "20", "--bug", "KIP-101", "--out", out, "--jobs", "2")
    for seconds in KILLS_S:
        killed(seconds, *words, environment={"TMPDIR": str(folder)})
        nothing_runs(folder)
        if out.exists():
            json.loads(out.read_text())
        only_names(folder, {"small.json"})
    ran(*words, codes=(1,))
    json.loads(out.read_text())
    return f"{len(KILLS_S)} kills, no worker and no half plan left, and the next call ends"


def kill_package(folder: Path) -> str:
    """An archive of a killed `mine package` is whole or not there, and the next call writes it."""
    out = folder / "spark"
    words = ("mine", "package", out, "--no-libraries")
    for seconds in KILLS_S:
        killed(seconds, *words, environment={"TMPDIR": str(folder)})
        nothing_runs(folder)
        only_names(folder, {"spark"})
        _whole_archive(out)
    ran(*words, codes=(0,))
    only_names(out, {"environment.tar.gz", "entry.py"})
    if not _whole_archive(out):
        raise BrokenError("there is no archive after the last call")
    return f"{len(KILLS_S)} kills, the archive whole or not there each time, and the next call writes it"


def _whole_archive(out: Path) -> bool:
    archive = out / "environment.tar.gz"
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
    files, temporary = folder / "files", folder / "tmp"
    temporary.mkdir()
    killed(LONGEST_S, environment={}, program=(sys.executable, "-c", WRITTEN, str(files)))
    before = {path: path.read_bytes() for path in sorted(files.rglob("*")) if path.is_file()}
    named = [f"{path.name}={path}" for path in sorted(files.iterdir())]
    for seconds in KILLS_S:
        killed(seconds, "log", "audit", *named, environment={"TMPDIR": str(temporary)})
        nothing_runs(temporary)
        only_names(temporary, set())
    done = ran("log", "audit", *named)
    after = {path: path.read_bytes() for path in sorted(files.rglob("*")) if path.is_file()}
    if not before or before != after:
        raise BrokenError("the audit has changed what it read")
    kept = f"{len(before)} files as they were"
    return f"{len(KILLS_S)} kills, {kept}, and the next call ends with {done.returncode}"


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


def nothing_runs(folder: Path) -> None:
    """Wait until no process has this folder in its environment or command line. Raises BrokenError."""
    deadline = time.monotonic() + LONGEST_S
    while left := _naming(folder):
        if time.monotonic() > deadline:
            raise BrokenError(f"processes that still run: {left}")
        time.sleep(0.1)


def only_names(folder: Path, names: set[str]) -> None:
    """Raises BrokenError for what else is in a folder."""
    if left := sorted({path.name for path in folder.iterdir()} - names) if folder.exists() else []:
        raise BrokenError(f"left behind: {', '.join(left)}")


def _naming(folder: Path) -> list[int]:
    """Processes with this folder in their command line or environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            try:
                said = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            except OSError:
                continue
            if str(folder).encode() in said:
                found.append(int(entry.name))
    return found


# ---- files under watch


def watched(folder: Path) -> str:
    """Half a file is not judged, the whole one once, and one that takes its place is judged or named."""
    needs_java()
    incoming, out = folder / "incoming", folder / "watched"
    incoming.mkdir()
    for name, seeds in (("first", "0:3"), ("second", "3:6")):
        ran("campaign", "--seeds", seeds, "--out", folder / f"{name}-store")
        ran("mine", "convert", folder / f"{name}-store", "--out", folder / f"{name}.jsonl")
    whole = (folder / "first.jsonl").read_bytes()
    file = incoming / "a.jsonl"
    seen = []
    for data in (whole[: len(whole) // 2], whole, (folder / "second.jsonl").read_bytes()):
        draft = folder / "draft"
        draft.write_bytes(data)
        draft.replace(file)
        done = ran("watch", incoming, "--once", "--out", out, "--json", codes=(0, 1, 2, 3))
        if '"type":"finding"' in done.stdout.replace(" ", ""):
            raise BrokenError("a healthy run is convicted")
        seen.append((done.returncode, (done.stdout + done.stderr).strip().splitlines()[-1][:160]))
    if seen[1][0] != 0:
        raise BrokenError(f"the whole file is not judged: {seen[1]}")
    return "; ".join(
        f"{what}: exit code {code}"
        for what, (code, _) in zip(("half", "whole", "replaced"), seen, strict=True)
    )


# ---- a full disk


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A disk of DISK_KB. Raises LacksError where this user may not mount one."""
    disk = folder / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_KB}k", "tmpfs", str(disk)]
    if os.geteuid() or shutil.which("mount") is None:
        raise LacksError("a small tmpfs needs root")
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
        page.write_text("what was there before")
        (disk / "filler").write_bytes(bytes((DISK_KB - 16) * 1024))
        asked = [word.format(store=store, page=page) for word in words]
        said = ran(*asked, codes=(2,)).stderr
        if "No space left" not in said and "full" not in said:
            raise BrokenError(f"the reason is not said: {said.strip()[-200:]}")
        if page.read_text() != "what was there before":
            raise BrokenError("the old file is gone")
        if left := sorted({path.name for path in disk.iterdir()} - {"page", "filler"}):
            raise BrokenError(f"a draft stays: {', '.join(left)}")
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
    asked = [word.format(store=store, out=folder / "out") for word in words]
    done = ran(*asked, codes=(0, 1, 2, 3))
    if "part-" not in done.stderr + done.stdout:
        raise BrokenError("the damaged part is not named")
    return f"exit code {done.returncode}, and the part is named"


# ---- brokers of others

MOCK = """
import sys
from confluent_kafka import Producer
settings = {"test.mock.num.brokers": 1, "bootstrap.servers": "127.0.0.1:1", "log_level": 0}
producer = Producer(settings, logger=__import__("logging").getLogger("mock"))
(broker,) = producer.list_topics(timeout=60).brokers.values()
print(f"{broker.host}:{broker.port}", flush=True)
sys.stdin.read()
"""
"""One broker of librdkafka's mock, which prints its address and stays until its input ends."""
NOT_ASKED = "no broker answers any more"
"""How the reason of a case begins that was not asked because a case before it has ended the broker."""
PEERS = Path(__file__).parents[1] / "bench" / "peers"


def mock_command(_: Path) -> list[str]:
    """Raises LacksError."""
    if importlib.util.find_spec("confluent_kafka") is None:
        raise LacksError("no confluent_kafka")
    return [sys.executable, "-c", MOCK]


def kfake_command(folder: Path) -> list[str]:
    """Raises LacksError."""
    if shutil.which("go") is None:
        raise LacksError("no go on the path")
    build = ["go", "build", "-o", str(folder / "kfake"), "."]
    if subprocess.run(build, cwd=PEERS / "kfake", capture_output=True, check=False).returncode:
        raise LacksError("kfake cannot be built here")
    return [str(folder / "kfake"), "serve"]


def tansu_command(_: Path) -> list[str]:
    """Raises LacksError."""
    if shutil.which("tansu") is None:
        raise LacksError("no tansu on the path")
    raise LacksError("tansu has no storage here that ends with it")


def conformance_of(folder: Path, command: Callable[[Path], list[str]], *, deletes: bool) -> str:
    """Every case is asked; where one ends the broker it is named, and the rest is asked of a new one."""
    serve = command(folder)
    cases = json.loads(ran("conformance", "--list", "--json").stdout)["cases"]
    counts: Counter[str] = Counter()
    killers: list[str] = []
    waiting = [each["name"] for each in cases]
    while waiting:
        seen = {each["name"]: each for each in asked_of(serve, waiting, deletes=deletes)}
        suspects = [name for name, each in seen.items() if each["status"] == "died"]
        for name in suspects:  # which of those at the same time
            (seen[name],) = asked_of(serve, [name], deletes=deletes)
        killers += [name for name in suspects if seen[name]["status"] == "died"]
        asked = {name for name, each in seen.items() if not each["reason"].startswith(NOT_ASKED)}
        counts.update(seen[name]["status"] for name in asked)
        if not asked:
            raise BrokenError(f"no case could be asked of a new broker: {waiting[0]}")
        waiting = [name for name in waiting if name not in asked]
    words = ", ".join(f"{number} {status}" for status, number in sorted(counts.items()))
    return f"{len(cases)} cases: {words}" + (f"; ended by {', '.join(killers)}" if killers else "")


def asked_of(serve: list[str], names: list[str], *, deletes: bool = True) -> list[dict[str, str]]:
    """What became of these cases with a new broker. deletes: whether it can delete topics; BrokenError
    is raised if they stay then."""
    pipe = subprocess.PIPE
    with subprocess.Popen(serve, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as broker:
        try:
            assert broker.stdout is not None
            address = broker.stdout.readline().strip()
            words = ("conformance", "--bootstrap", address, "--only", ",".join(names), "--json")
            asked = ran(*words, codes=(0, 1, 3))
            said = json.loads(asked.stdout)
            if said["topics_left"] and deletes and broker.poll() is None:
                raise BrokenError(f"topics that stay: {', '.join(said['topics_left'])}")
        finally:
            broker.kill()
    return list(said["cases"])


DAMAGES = {"a cut part": _cut, "flipped bytes": _flip, "a lost file of runs": _lose}
CASES: dict[str, Callable[[Path], str]] = {
    "campaign under kill": kill_campaign,
    "mine convert under kill": kill_convert,
    "mine under kill": kill_mine,
    "cluster up under kill": kill_cluster,
    "shrink under kill": kill_shrink,
    "mine package under kill": kill_package,
    "log audit under kill": kill_audit,
    "watch of files half written and replaced": watched,
    "show --html on a full disk": partial(
        full_disk, words=("show", "{store}", "--trace", "0", "--html", "{page}")
    ),
    **{
        f"check of {what}": partial(damaged, damage=damage, words=("check", "{store}"))
        for what, damage in DAMAGES.items()
    },
    **{
        f"mine of {what}": partial(
            damaged, damage=damage, words=("mine", "{store}", "--out", "{out}", "--master", "local[1]")
        )
        for what, damage in DAMAGES.items()
    },
    **{
        f"conformance of {name}": partial(conformance_of, command=command, deletes=deletes)
        for name, command, deletes in (
            ("kfake", kfake_command, True),
            ("librdkafka's mock", mock_command, False),  # it knows no DeleteTopics
            ("Tansu", tansu_command, True),
        )
    },
}


def tried(name: str, case: Callable[[Path], str]) -> Done:
    """One case in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="fencepost-robust-", ignore_cleanup_errors=True) as folder:
        try:
            return Done(case=name, why=case(Path(folder)))
        except LacksError as lacks:
            return Done(case=name, outcome=SKIPPED, why=str(lacks))
        except BrokenError as broken:
            return Done(case=name, outcome=FAILED, why=str(broken))


@click.command("robustness", help=__doc__)
@click.argument("words", nargs=-1)
@click.option("--docs", type=click.Path(path_type=Path), help="put the table between this page's marks")
def command(words: tuple[str, ...], docs: Path | None) -> ExitCode:
    """Try all cases, or those that are named."""
    rows: list[Done] = []
    cases = {name: partial(tried, name, case) for name, case in CASES.items()}
    code = run_cases(cases, words, Output(), keep=rows.append)
    if docs is not None:
        lines = ["| case | outcome | what was seen |", "|---|---|---|"]
        lines += [f"| {row.case} | {row.outcome} | {row.why.replace('|', '/')} |" for row in rows]
        Place(page=docs, mark=MARK).write_table(lines)
    return code


if __name__ == "__main__":
    program.run(command, "robustness")
