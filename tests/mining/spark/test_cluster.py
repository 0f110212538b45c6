"""Mining on clusters: executors are processes of their own, reach Fencepost as
docs/how-to/spark-cluster.md says, and answer what a local master answers."""

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from campaign_digests import digests

from fencepost.campaign.driver.campaign_driver import Campaign, drive
from fencepost.campaign.workers.results import Job
from fencepost.mining.mine import mine
from fencepost.mining.results.result_rows import RESULTS
from fencepost.mining.spark.package import Packaged, package

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes under /proc"),
]

LIMIT_S = 600
"""Generous: of the whole of one run on a busy machine."""
QUICK_JAVA = os.environ["SPARK_SUBMIT_OPTS"]
"""What a JVM that lives for seconds is worth (tests/conftest.py)."""
FENCEPOST = (sys.executable, "-c", "from fencepost.cli import main; main()")


def spark_home() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent


def environment(**more: str) -> dict[str, str]:
    """Of a process that has to do with Spark: nothing of ours but what is named, and what a tester set for
    numba and Java."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "JAVA_HOME", "LANG") if name in os.environ}
    return {**kept, "SPARK_LOCAL_IP": "127.0.0.1", "JAVA_TOOL_OPTIONS": QUICK_JAVA, **more}


def driver_environment(**more: str) -> dict[str, str]:
    """The driver runs what is under test here."""
    import fencepost

    ours = {"PYTHONPATH": str(Path(str(fencepost.__file__)).parents[1])}
    if "NUMBA_CACHE_DIR" in os.environ:
        ours["NUMBA_CACHE_DIR"] = os.environ["NUMBA_CACHE_DIR"]
    return environment(**ours, **more)


def until(wanted: Callable[[], object], what: str) -> object:
    """Wait for something to be true."""
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        found = wanted()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"waited in vain for {what}")


class Cluster:
    """A standalone cluster on the loopback: a master and a worker with two executors of one core each, begun
    outside of the repository and without a PYTHONPATH."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        master = self._start("master", "org.apache.spark.deploy.master.Master")
        self.url = until(lambda: self._said(master, "Starting Spark master at "), "the master")
        until(self._answers, "the master's port")
        worker = self._start(
            "worker", "org.apache.spark.deploy.worker.Worker",
            "--cores", "2", "--memory", "2g", "--work-dir", str(folder / "work"), str(self.url),
        )  # fmt: skip
        until(lambda: self._said(worker, "registered with master "), "a worker")

    def _start(self, name: str, main: str, *arguments: str) -> Path:
        log = self.folder / f"{name}.log"
        java = Path(os.environ["JAVA_HOME"]) / "bin" / "java" if "JAVA_HOME" in os.environ else "java"
        scala = next(spark_home().glob("jars/scala-library-*.jar")).stem.split("-")[-1].rpartition(".")[0]
        command = [
            str(java),
            "-cp",
            f"{spark_home()}/conf:{spark_home()}/jars/*",
            main,
        ]  # as Spark itself does
        command += ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0", *arguments]
        with log.open("wb") as file:
            self.processes.append(
                subprocess.Popen(
                    command,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    env=environment(SPARK_HOME=str(spark_home()), SPARK_SCALA_VERSION=scala),
                    cwd=self.folder,
                    start_new_session=True,
                )
            )
        return log

    def _said(self, log: Path, what: str) -> str:
        assert all(process.poll() is None for process in self.processes), log.read_text()
        lines = [
            line
            for line in log.read_text().splitlines()
            if what in line and line.endswith(tuple("0123456789"))
        ]
        return lines[0].split(what)[1] if lines else ""

    def _answers(self) -> bool:
        host, port = str(self.url).removeprefix("spark://").split(":")
        with socket.socket() as client:
            return client.connect_ex((host, int(port))) == 0

    def executors(self) -> list[Path]:
        """The working directories of the executors of the latest application."""
        names = sorted(path.name for path in self.folder.glob("work/app-*"))
        return sorted(self.folder.glob(f"work/{names[-1]}/*")) if names else []

    def stop(self) -> None:
        for process in reversed(self.processes):
            os.killpg(process.pid, signal.SIGKILL)  # a worker's executors are of its group
            process.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One for all tests that submit to it: every application has executors of its own."""
    started = Cluster(tmp_path_factory.mktemp("cluster"))
    yield started
    started.stop()


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has the libraries and not Fencepost, wherever it is begun."""
    tmp_path = tmp_path_factory.mktemp("stranger")
    libraries, python = tmp_path / "libraries", tmp_path / "stranger"
    libraries.mkdir()
    for path in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        for entry in sorted(Path(path).iterdir()):
            if (
                "fencepost" not in entry.name
                and entry.suffix != ".pth"
                and not (libraries / entry.name).exists()
            ):
                (libraries / entry.name).symlink_to(entry)
    base = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{libraries}" exec "{base}" -S -s "$@"\n')
    python.chmod(0o755)
    told = [
        subprocess.run(
            [python, "-c", f"import {name}"], env=environment(), cwd=tmp_path, capture_output=True
        ).returncode
        for name in ("pyarrow, numba, attrs, msgspec", "fencepost")
    ]
    assert told == [0, 1]
    return python


def results(out: Path) -> dict[str, list]:
    """The rows of every result, in an order of their own."""
    return {result: sorted(map(repr, pq.read_table(out / result).to_pylist())) for result in RESULTS}


@pytest.fixture(scope="module")
def packaged(tmp_path_factory: pytest.TempPathFactory) -> Packaged:
    """Fencepost as an archive, without libraries."""
    return package(tmp_path_factory.mktemp("package") / "packaged", libraries=False)


def settings(stranger: Path, packaged: Packaged) -> list[str]:
    """Options of spark-submit: executors run the packaged archive with a Python that is `stranger`."""
    told = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.executor.cores": "1",
        "spark.executor.memory": "512m",
        "spark.executorEnv.FENCEPOST_PYTHON": str(stranger),
        "spark.scheduler.minRegisteredResourcesRatio": "1",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": f"{LIMIT_S}s",
    }
    words = [word for name, value in told.items() for word in ("--conf", f"{name}={value}")]
    return [*words, "--archives", f"{packaged.archive}#environment"]


PYTHON = {"PYSPARK_PYTHON": "./environment/bin/python", "PYSPARK_DRIVER_PYTHON": sys.executable}


def imported(cluster: Cluster, module: str) -> list[bool]:
    """Of each executor, whether it ran a module out of its own archive."""
    name = Path("environment/site-packages/fencepost", module)
    kept = [executor / name.parent / "__pycache__" for executor in cluster.executors()]
    return [bool(list(folder.glob(f"{name.name}.*.pyc"))) for folder in kept]


def children(parent: int) -> dict[int, str]:
    """The command lines of all descendants of a process."""
    parents, found = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue  # it has ended
    wanted = {parent}
    while more := {pid for pid, above in parents.items() if above in wanted} - wanted:
        wanted |= more
    return {pid: found[pid] for pid in sorted(wanted - {parent})}


def killed(cluster: Cluster, module: str) -> None:
    """A Python worker of the cluster dies by SIGKILL, and an executor that ran a module of its archive."""

    def of(what: str) -> dict[int, str]:
        workers = [children(process.pid) for process in cluster.processes]
        return {pid: line for some in workers for pid, line in some.items() if what in line}

    os.kill(max(of("-m pyspark.daemon")), signal.SIGKILL)  # the youngest: a daemon's worker

    def busy() -> list[int]:
        ran = [
            folder for folder, did in zip(cluster.executors(), imported(cluster, module), strict=True) if did
        ]
        return [
            pid for pid in of("CoarseGrainedExecutorBackend") if Path(f"/proc/{pid}/cwd").readlink() in ran
        ]

    until(busy, "an executor at work")
    os.kill(busy()[0], signal.SIGKILL)


def test_spark_submit_mines_on_a_cluster_through_the_archive_though_processes_die(
    long: Path, campaign: Path, tmp_path: Path, cluster: Cluster, stranger: Path, packaged: Packaged, spark
) -> None:
    """Submitted to a standalone cluster whose Python knows no Fencepost, the packaged environment gives, row
    by row, what a local master gives, each trace once. A Python worker and then an executor die by SIGKILL in
    the middle."""
    mine([long, campaign], tmp_path / "local", spark=spark)
    command = [spark_home() / "bin" / "spark-submit", "--master", cluster.url, *settings(stranger, packaged)]
    command += [packaged.entry, "mine", long, campaign, "--out", tmp_path / "out"]
    with (tmp_path / "told").open("wb") as told:
        driver = subprocess.Popen(
            list(map(str, command)),
            env=driver_environment(**PYTHON),
            cwd=tmp_path,
            stdout=told,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        done = tmp_path / "out" / ".work" / "done"
        until(lambda: any(done.glob("*.json")) or driver.poll() is not None, "a task")
        assert driver.poll() is None, (tmp_path / "told").read_text()
        killed(cluster, "mining/spark_judge")
        assert driver.wait(LIMIT_S) == 1, (tmp_path / "told").read_text()  # findings
    finally:
        if driver.poll() is None:
            os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()
    assert results(tmp_path / "out") == results(tmp_path / "local")
    assert imported(cluster, "mining/spark_judge").count(True) >= 2


def test_a_campaign_runs_on_the_executors_of_a_cluster(
    tmp_path: Path, cluster: Cluster, stranger: Path, packaged: Packaged
) -> None:
    """From its own driver, with the same archive, a campaign on two executors has the runs and digests of
    the local engine, the repeats in another process included."""
    seeds, local, out = range(22, 28), tmp_path / "local", tmp_path / "out"
    drive(Campaign(seeds=seeds, job=Job(), out=local))
    line = f"campaign --seeds 22:28 --engine spark --json --master {cluster.url} --out {out}".split()
    done = subprocess.run(
        [*FENCEPOST, *line],
        env=driver_environment(
            **PYTHON, PYSPARK_SUBMIT_ARGS=shlex.join([*settings(stranger, packaged), "pyspark-shell"])
        ),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert (told["finished"], told["rechecked"], told["disagreeing"]) == (6, 1, []), told
    assert digests(out) == digests(local)
    assert imported(cluster, "mining/campaign/tasks").count(True) == 2  # one that died is replaced
