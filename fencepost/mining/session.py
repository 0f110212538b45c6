"""A Spark session that starts quietly or says in one sentence why it cannot.

Owns: settings of Spark, the checks of pyspark and Java, where the JVM's standard error goes. Must not know: what runs on it.

Settings, and why: Python workers are the running interpreter (otherwise Spark takes whatever `python3` is); no UI, no console
progress (the caller has its own); a local master binds the loopback only; an idle Python worker is kept for the next task.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fencepost.traces.errors import EnvironmentError_, MissingExtraError

JAVA_MINIMUM = 17
JAVA_TIMEOUT_S = 30
"""`java -version` answers in a fraction of a second; a machine that needs longer has no usable Java."""
_HINT = f"install a Java runtime {JAVA_MINIMUM} or newer, or point JAVA_HOME at one"


def check_pyspark() -> None:
    """Raises MissingExtraError where pyspark is not installed."""
    try:
        import pyspark  # noqa: F401
    except ImportError:
        raise MissingExtraError(package="pyspark", extra="spark", needed_for="judging on Spark") from None


def _java() -> str | None:
    """The java that Spark's launcher will take: that of JAVA_HOME, or else the first on the path."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else shutil.which("java")


def java_version(banner: str) -> int | None:
    """The major version in the output of `java -version`: 17 of 17.0.15, 8 of 1.8.0_392; None if it names none."""
    found = re.search(r'version "(\d+)(?:\.(\d+))?', banner)
    if found is None:
        return None
    major = int(found[1])
    return int(found[2]) if major == 1 and found[2] else major


def check_java() -> int:
    """The major version of the Java that Spark will run on. Raises EnvironmentError_ where it is missing or too old."""
    expected, java = f"Java {JAVA_MINIMUM} or newer for Spark", _java()
    if java is None:
        raise EnvironmentError_(
            expected=expected, seen="no java on the path", where="judging on Spark", hint=_HINT
        )
    try:
        done = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=JAVA_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        seen = (
            error.strerror
            if isinstance(error, OSError) and error.strerror
            else f"that it fails ({type(error).__name__})"
        )
        raise EnvironmentError_(expected=expected, seen=seen, where=java, hint=_HINT) from None
    version = java_version(done.stderr + done.stdout)
    if version is None or version < JAVA_MINIMUM:
        seen = f"Java {version}" if version else "a java that does not say its version"
        raise EnvironmentError_(expected=expected, seen=seen, where=java, hint=_HINT)
    return version


@contextmanager
def _standard_error_to(path: Path) -> Iterator[None]:
    """Whatever is started inside keeps `path` as its standard error: the JVM greets with warnings that nobody can act on."""
    sys.stderr.flush()
    saved = os.dup(2)
    try:
        with path.open("ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)


def _settings(master: str, extra: Mapping[str, str]) -> dict[str, str]:
    local = master.startswith("local")
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.python.worker.reuse": "true",
        **({"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"} if local else {}),
        **extra,
    }


@contextmanager
def session(master: str = "local[*]", *, settings: Mapping[str, str] | None = None) -> Iterator[Any]:
    """A SparkSession, stopped at the end. settings: of Spark, over our own.

    Raises MissingExtraError without pyspark, EnvironmentError_ without a usable Java or where Spark does not start.
    """
    check_pyspark()
    check_java()
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    with tempfile.TemporaryDirectory(prefix="fencepost-spark-") as folder:
        log = Path(folder) / "jvm.log"
        builder = SparkSession.builder.master(master).appName("fencepost")
        for name, value in _settings(master, settings or {}).items():
            builder = builder.config(name, value)
        try:
            with _standard_error_to(log):
                spark = builder.getOrCreate()
        except Exception as error:
            raise EnvironmentError_(
                expected="Spark to start", seen=_last_words(log, error), where=f"master {master}"
            ) from None
        try:
            yield spark
        finally:
            spark.stop()


def _last_words(log: Path, error: Exception) -> str:
    """Why the JVM did not come up: the exception's first line, and the first complaint in its log."""
    text = log.read_text(errors="replace") if log.exists() else ""
    complaint = next(
        (line.strip() for line in text.splitlines() if "ERROR" in line or "Exception" in line), ""
    )
    first = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return f"{first} ({complaint})" if complaint and complaint not in first else first
