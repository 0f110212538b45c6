"""The process of Spark's JVM: whether it still runs, and the end of a session without it.

Owns the one sentence about a JVM that died: the kernel may kill it for its memory. Must not know what runs
on it.
"""

import subprocess
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from fencepost.traces.errors import EnvironmentError_

ENDS_S = 5.0
"""Longest wait for the end of a JVM that has closed its connections."""


@contextmanager
def jvm_needed(spark: Any, where: str, goes_on: Callable[[], str]) -> Iterator[None]:
    """Any error inside is one sentence if the JVM has died. spark: the session; where: for the sentence;
    goes_on: says how the work is continued. Raises EnvironmentError_."""
    process = _process(spark)
    _silence_updates(spark)
    try:
        yield
    except Exception as error:
        code = _ended(process, error)
        if code is None:
            raise
        raise EnvironmentError_(
            expected="Spark to run to the end",
            seen=f"its JVM end with {code}" + (" (killed)" if code == -9 else ""),
            where=where,
            hint=goes_on(),
        ) from None


def stop(spark: Any) -> None:
    """End a session. Without its JVM nothing answers, and what Python knows of the session is forgotten, so
    that another one can begin."""
    process = _process(spark)
    if process is None or process.poll() is None:
        spark.stop()
        return
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    with warnings.catch_warnings(), suppress(Exception):
        warnings.simplefilter("ignore")
        spark.stop()
    with suppress(Exception):
        spark.sparkContext._gateway.shutdown()
    SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None
    SparkSession._instantiatedSession = None


def _silence_updates(spark: Any) -> None:
    """PySpark has a server for updates of accumulators. Its thread prints a traceback when the JVM's end of
    the connection is gone, which says nothing more than our sentence."""
    server = getattr(spark.sparkContext, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda request, address: None


def _process(spark: Any) -> "subprocess.Popen[bytes] | None":
    """The JVM's, if this Python started it."""
    return getattr(getattr(spark.sparkContext, "_gateway", None), "proc", None)


def _ended(process: "subprocess.Popen[bytes] | None", error: BaseException) -> int | None:
    """The exit code of a JVM that has died; None if it runs. A lost connection is seen before the end."""
    if process is None:
        return None
    if not _lost_connection(error):
        return process.poll()
    with suppress(subprocess.TimeoutExpired):
        return process.wait(ENDS_S)
    return None


def _lost_connection(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, OSError | EOFError) or "py4j" in type(error).__module__:
            return True
        error = error.__cause__ or error.__context__
    return False
