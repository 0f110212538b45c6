"""A disk in use: the process that serves it, as its owner steers it.

Owns the process, the pipe and the mount. Must not know the rules of the disk (volume.py). If the owner dies,
the pipe ends, and the process takes its mount away.
"""

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from queue import Empty, Queue
from typing import Any

from attrs import define, field

from fencepost.systems.children import END_S, end_child
from fencepost.systems.disk.unmounting import is_mounted, unmount, write_dirty_pages
from fencepost.traces.errors import EnvironmentError_, install_extra

MODULE = "fencepost.systems.disk.mount"
ANSWER_S = 120.0
"""Longest wait for an answer, also for the first one; a crowded machine starts Python in seconds."""


def missing() -> str:
    """Why no disk can be mounted here; empty if one can."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "needs /dev/fuse (Linux with FUSE; in a container: --device /dev/fuse --cap-add SYS_ADMIN)"
    if importlib.util.find_spec("mfusepy") is None:
        return f"needs mfusepy: {install_extra('disk')}"
    try:
        import mfusepy  # noqa: F401
    except Exception as error:  # it looks for libfuse while it is imported, and says so in several ways
        return f"needs libfuse 3 (Debian: apt-get install fuse3): {error}"
    return ""


@define(eq=False)
class MountedDisk:
    """One disk, mounted at a folder."""

    folder: Path
    node: int
    seed: int = 0
    _process: "subprocess.Popen[str] | None" = field(default=None, init=False)
    _answers: "Queue[str]" = field(factory=Queue, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def open(self) -> None:
        """Mount it, empty. Raises EnvironmentError_ where that is impossible."""
        reason = missing()
        if reason:
            raise EnvironmentError_(
                expected="a disk that can lose power", seen=reason, where=str(self.folder)
            )
        if is_mounted(self.folder):
            unmount(self.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder.parent / f"{self.folder.name}.disk.log").open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", MODULE, str(self.folder.absolute()), str(self.node), str(self.seed)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        threading.Thread(target=self._listen, name="disk", daemon=True).start()
        try:
            self._answer()
            self._mounted()
        except BaseException:
            self.close()
            raise

    def _mounted(self) -> None:
        deadline = time.monotonic() + END_S
        while not is_mounted(self.folder):
            if time.monotonic() > deadline:
                raise EnvironmentError_(expected="a mounted disk", seen="none", where=str(self.folder))
            time.sleep(0.01)

    def _listen(self) -> None:
        assert self._process is not None and self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put("")

    def _answer(self) -> dict[str, Any]:
        try:
            line = self._answers.get(timeout=ANSWER_S)
        except Empty:
            line = ""
        if not line:
            raise EnvironmentError_(
                expected="an answer of the process that serves a disk",
                seen=self._last_words(),
                where=str(self.folder),
            )
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise ValueError(answer["error"])
        return answer

    def _last_words(self) -> str:
        log = self.folder.parent / f"{self.folder.name}.disk.log"
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        return lines[-1][:300] if lines else "nothing"

    def ask(self, do: str, **fields: Any) -> dict[str, Any]:
        """Have the disk do something (mount.py has the verbs). Returns its answer. Raises EnvironmentError_
        if its process is gone."""
        with self._lock:
            if self._process is None or self._process.stdin is None:
                raise EnvironmentError_(expected="a mounted disk", seen="none", where=str(self.folder))
            try:
                self._process.stdin.write(json.dumps({"do": do, **fields}) + "\n")
                self._process.stdin.flush()
            except OSError:
                self._answers.put("")
            return self._answer()

    def power_loss(self) -> dict[str, Any]:
        """Lose what was not synced. No process may use the disk: the caller has killed it. What it changed in
        memory and nobody had written yet is unsynced, too. Returns what was lost: files (path,
        size_before, size_after, writes, kept), steps, and logs: what was surely held."""
        with contextlib.suppress(OSError):  # a full or failing disk takes nothing: that is lost, too
            write_dirty_pages(self.folder)
        lost: dict[str, Any] = self.ask("power_loss")["lost"]
        return lost

    def close(self) -> None:
        """Unmount it; its content is gone. Closing again does nothing."""
        process, self._process = self._process, None
        if process is None:
            return
        unmount(self.folder)
        end_child(process)
        if is_mounted(self.folder):
            unmount(self.folder)
