"""TLC's JVM for tests: it runs for a second, most of which it spends on loading classes."""

import atexit
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from fencepost.model.tlc import RunOptions


@cache
def _folder() -> Path:
    """Of this process alone: two that wrote one archive would meet."""
    folder = mkdtemp(prefix="fencepost-tlc-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


class _JavaOptions:
    """Read anew for each JVM. The first one writes an archive of TLC's classes (JEP 350), the others use it,
    and do not verify what it loads. A JVM without such archives ignores both, and is not asked to say so."""

    def __iter__(self) -> Iterator[str]:
        archive = _folder() / "classes.jsa"
        yield from ("-XX:TieredStopAtLevel=1", "-XX:-UseParallelGC", "-XX:+UseSerialGC", "-Xlog:disable")
        yield "-XX:-StackTraceInThrowable"  # SANY and TLC throw very often, and nobody reads those traces
        if archive.exists():
            yield from ("-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote")
            yield f"-XX:SharedArchiveFile={archive}"
        else:
            yield f"-XX:ArchiveClassesAtExit={archive}"


_OPTIONS: Any = _JavaOptions()
QUICK = RunOptions(java_options=_OPTIONS)
"""One worker, as ever; a JVM that is not worth warming up."""
