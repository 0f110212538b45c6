"""The classes of Spark's JVM, read and verified once for this machine (JEP 350), so that a JVM starts
sooner.

    python -m fencepost.mining.spark.class_archive

makes the archive, which costs as much as a few starts. Without one, or with that of another Java or of
another place of Spark's jars, a JVM reads its classes as it always did.
"""

import os
import subprocess
import sys
from pathlib import Path

from fencepost.mining.spark.session import DEFAULT_JAVA, archive_of, session
from fencepost.traces.errors import EnvironmentError_, FencepostError

ENDS_S = 300.0
"""Longest wait for a JVM that writes its archive, on a crowded machine."""


def make() -> Path:
    """Make the archive. Raises what a session raises, and EnvironmentError_ if the JVM leaves none."""
    archive = archive_of()
    partial = archive.with_suffix(f".{os.getpid()}")
    words = f'{DEFAULT_JAVA} "-XX:ArchiveClassesAtExit={partial}"'
    with session("local[1]", settings={"spark.driver.defaultJavaOptions": words}) as spark:
        spark.sparkContext.parallelize(range(2), 2).map(abs).collect()
        gateway = spark.sparkContext._gateway
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(ENDS_S)
        partial.replace(archive)
    except (subprocess.TimeoutExpired, OSError) as error:
        raise EnvironmentError_(
            expected="an archive of Spark's classes",
            seen=str(error),
            where=str(archive),
            hint="Spark starts without it, too, only slower",
        ) from None
    return archive


if __name__ == "__main__":
    try:
        sys.stdout.write(f"{make()}\n")
    except FencepostError as error:
        sys.stderr.write(f"fencepost: {error}\n")
        sys.exit(error.exit_code)
