"""The kfake program: built with Go once for each version, in the user's cache.

Owns the build. Must not know what the program is asked. As with drivers of client libraries
(torture/building.py), a build happens in a temporary folder that is renamed when it is complete.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from fencepost.traces.errors import EnvironmentError_

VERSION = "v0.0.0-20260918054303-01f206a7e32c"
"""Of the module; it has no releases."""
CLIENT_VERSION = "v1.22.2"
"""Of franz-go, which it uses: the version that its own go.mod names is too old for it."""
SOURCE = Path(__file__).parent / "main.go"
MODULE = f"""\
module fencepost-kfake

go 1.26

require (
	github.com/twmb/franz-go {CLIENT_VERSION}
	github.com/twmb/franz-go/pkg/kfake {VERSION}
)
"""
STEPS = (("go", "mod", "tidy"), ("go", "build", "-o", "kfake", "."))
BUILD_S = 600
"""Longest step: three seconds were measured; a crowded machine that fetches the modules takes longer."""
MOST_SHOWN = 400


def missing() -> str:
    """Why it cannot be built here; empty if it can."""
    return "" if shutil.which("go") else "needs Go 1.26 or later on the PATH"


def built() -> Path:
    """The program. Raises EnvironmentError_ in one sentence: what is missing, or what Go said."""
    source = SOURCE.read_text(encoding="utf-8")
    digest = hashlib.sha256((MODULE + source).encode()).hexdigest()[:12]
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fencepost"
    folder = caches / f"kfake-{digest}"
    if not (folder / "kfake").exists():
        if lacks := missing():
            raise EnvironmentError_(expected="what builds kfake", seen=lacks, where="the system kfake")
        _build(folder, {"go.mod": MODULE, "main.go": source})
    return folder / "kfake"


def _build(folder: Path, files: dict[str, str]) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=".kfake-", dir=folder.parent))
    try:
        for name, text in files.items():
            (work / name).write_text(text, encoding="utf-8")
        for step in STEPS:
            _carry_out(step, work)
        try:
            work.rename(folder)
        except OSError:  # another build was faster
            if not folder.is_dir():
                raise
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _carry_out(step: tuple[str, ...], work: Path) -> None:
    environment = {**os.environ, "GOFLAGS": "-mod=mod -buildvcs=false"}
    try:
        done = subprocess.run(
            step, cwd=work, env=environment, capture_output=True, text=True, timeout=BUILD_S, check=False
        )
        said = done.stderr.strip()[-MOST_SHOWN:] or f"exit code {done.returncode}"
        wrong = bool(done.returncode)
    except subprocess.TimeoutExpired:
        said, wrong = f"no end within {BUILD_S} s", True
    if wrong:
        raise EnvironmentError_(expected=f"`{' '.join(step)}` to succeed", seen=said, where="building kfake")
