"""A Spark session that starts quietly or says in one sentence why it cannot.

Owns settings of Spark, the checks of pyspark and Java, and where the JVM's standard error goes. Must not know
what runs on it.

Settings, and why: Python workers of a local master are the running interpreter (otherwise Spark takes
any `python3`), those of a cluster what PYSPARK_PYTHON names; no UI, no console progress (the caller
has its own); a master on this machine is reached only over the loopback interface; an idle Python worker is
kept for the next task, and keeps freed memory (KEPT_MEMORY). Under spark-submit the session keeps the
submitted settings.
"""

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fencepost.mining.spark.interrupts import patient_interrupts
from fencepost.mining.spark.jvm import jvm_needed, stop
from fencepost.mining.spark.scratch import scratch_folder
from fencepost.processes.java import check_java
from fencepost.traces.errors import EnvironmentError_, MissingExtraError

MOST_FAILURES = 2
"""Attempts of one task: the kernel may kill a Python worker for its memory, and the others should not lose
their work to that."""
DEFAULT_MASTER = "local[*]"
_CLUSTER = re.compile(r"local-cluster\[|spark://|yarn|k8s://")
"""Masters with executors in separate processes."""
_ON_THIS_MACHINE = re.compile(r"local(-cluster)?(\[|$)|spark://(localhost|127\.0\.0\.1):")
KEPT_MEMORY = {
    "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": str(256 << 20),
}
"""glibc's malloc of Python workers keeps up to 256 MiB that were freed, and takes columns of up to 32 MiB
from there (DEFAULT_MMAP_THRESHOLD_MAX, mallopt(3)). Otherwise each column of a row group is new memory that
the kernel must clear: up to a third of a task's processor time (docs/decisions/log-check.md). Other systems
ignore the names."""
DEFAULT_JAVA = "-Xlog:disable"
"""For every JVM of ours: what it says of its archive is of no use to anybody."""


def check_pyspark(needed_for: str = "judging on Spark") -> None:
    """Raises MissingExtraError where pyspark, or pandas, which its Arrow paths need, is not installed."""
    for package in ("pyspark", "pandas"):
        if find_spec(package) is None:
            raise MissingExtraError(package=package, extra="spark", needed_for=needed_for)


def check_spark() -> None:
    """Before anything is written: raises MissingExtraError and EnvironmentError_ for what a session will
    need."""
    check_pyspark()
    check_java("Spark")


@contextmanager
def _standard_error_to(path: Path) -> Iterator[None]:
    """Processes started inside have `path` as their standard error: the JVM prints warnings at its start that
    do not help the user."""
    sys.stderr.flush()
    saved = os.dup(2)
    try:
        with path.open("ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)


def archive_of() -> Path:
    """Where the classes of this Spark are (class_archive.py): in its environment, for they are of its jars'
    place only."""
    return Path(sys.prefix) / "share" / "fencepost" / "spark.jsa"


def java_options() -> str:
    """For Spark's JVM, which passes over an archive that does not fit."""
    archive = archive_of()
    return f'{DEFAULT_JAVA} "-XX:SharedArchiveFile={archive}"' if archive.exists() else ""


def submitted() -> bool:
    """Whether spark-submit began this process: its JVM is there already, and its word on master and settings
    holds."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _settings(master: str | None, extra: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Ours and the caller's. folder: where a local master puts down blocks and temporary files."""
    here = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.python.worker.reuse": "true",
        "spark.driver.defaultJavaOptions": java_options(),
        **KEPT_MEMORY,
        **(here if master is not None and _ON_THIS_MACHINE.match(master) else {}),
        **({"spark.local.dir": str(folder)} if master is not None and not _CLUSTER.match(master) else {}),
        **extra,
    }


def _with_retries(master: str) -> str:
    """A local master gives a task up at its first failure by default; on a cluster it takes
    several."""
    return re.sub(
        r"^local\[([^],]+)\]$", rf"local[\1,{MOST_FAILURES}]", re.sub(r"^local$", "local[1]", master)
    )


def _name_python(master: str | None) -> None:
    """Set the Python of the workers. On a cluster its path may differ from here, so the caller's setting
    wins."""
    if master is None or _CLUSTER.match(master):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    else:
        os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable


def _builder(master: str | None, settings: Mapping[str, str], folder: Path) -> Any:
    """A session's builder. folder: of this session. Under spark-submit the submitted settings apply, and none
    of ours."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("fencepost")
    if master is not None:
        builder = builder.master(_with_retries(master))
    _name_python(master)
    for name, value in (settings if submitted() else _settings(master, settings, folder)).items():
        builder = builder.config(name, value)
    return builder


@contextmanager
def session(
    master: str | None = None,
    *,
    settings: Mapping[str, str] | None = None,
    source: bool = True,
    goes_on: Callable[[], str] = str,
) -> Iterator[Any]:
    """A SparkSession, stopped at the end. One that the process has already, as in a notebook, is used as it
    is, and goes on. master: where Spark runs, None for spark-submit's, or else all processors of this
    machine; settings: of Spark, over our own; source: whether `spark.read.format("fencepost")` is used, for
    which Spark starts another Python; goes_on: says how the work is continued if Spark's JVM dies.

    Raises MissingExtraError without pyspark, EnvironmentError_ without a usable Java, if Spark does not
    start or if its JVM dies.
    """
    running = _running()
    if running is None:
        check_spark()
        with _own(master, settings or {}, source, goes_on) as own:
            yield own
        return
    with patient_interrupts() as patience:
        if source:
            patience.to_the_end(lambda: _register(running))
        yield running


def _register(spark: Any) -> None:
    from fencepost.mining.inputs.source import register  # imports pyspark

    register(spark)


def _running() -> Any:
    """The session of this process, or None."""
    module = sys.modules.get("pyspark.core.context")
    if module is None or module.SparkContext._active_spark_context is None:
        return None
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate()


@contextmanager
def _own(
    master: str | None, settings: Mapping[str, str], source: bool, goes_on: Callable[[], str]
) -> Iterator[Any]:
    """A session of this process, which has none."""
    if master is None and not submitted():
        master = DEFAULT_MASTER
    where = f"master {master or 'as it was submitted'}"
    with scratch_folder() as folder, patient_interrupts() as patience:
        log = folder / "jvm.log"
        builder = _builder(master, settings, folder)
        started: list[Any] = []

        def start() -> None:
            with _standard_error_to(log):
                started.append(builder.getOrCreate())
            if source:
                _register(started[0])

        try:
            try:
                patience.to_the_end(start)
            except Exception as error:
                raise EnvironmentError_(
                    expected="Spark to start", seen=_last_words(log, error), where=where
                ) from None
            with jvm_needed(started[0], where, goes_on):
                yield started[0]
        finally:
            for spark in started:
                stop(spark)


def _last_words(log: Path, error: Exception) -> str:
    """Why the JVM did not come up: the first complaint in its log, or else the cause inside the exception, or
    else its first line."""
    text = log.read_text(errors="replace") if log.exists() else ""
    for pattern, where in (
        (r" ERROR \w+: (.+)", text),
        (r"^(?:Caused by: |Exception in thread \S+ )(.+)", text),
        (r"^: (\S*(?:Exception|Error)\b.*)", str(error)),
        (r"(\S.*)", str(error)),
    ):
        found = re.search(pattern, where, re.MULTILINE)
        if found is not None:
            return found[1].strip()
    return type(error).__name__
