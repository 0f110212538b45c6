"""Hunts for planted bugs of the log: the log machine in a process of its own, its progress, its scripts.

Owns that process and the track record of the machine. Must not know how the machine works
(machines/log/hunt.py), or how a hunt is shown.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import msgspec
from attrs import frozen

from fencepost.bugs.storage import log_bug
from fencepost.traces.errors import EnvironmentError_, ExitCode, TraceError
from fencepost.traces.whole_file import write_whole

LOG_RECORD = "log-track-record.json"


@frozen(kw_only=True)
class LogHunt:
    """The track record of one bug of the log."""

    bug: str
    breaks: str
    says: str
    examples_tried: int = 0
    # Up to and including the first that shows it, None if none did.
    examples_needed: int | None = None
    complaint: str = ""
    # Steps of the shrunk script.
    steps: int = 0
    script: str = ""
    # Complaints met on the way that are not its own.
    others: tuple[str, ...] = ()
    # Processor time of the hunting process, in seconds.
    cpu_s: float = 0.0
    interrupted: bool = False

    @property
    def exit_code(self) -> ExitCode:
        """Found is what is wanted; not found leaves the question open."""
        if self.interrupted:
            return ExitCode.INTERRUPTED
        return ExitCode.NOTHING_FOUND if self.examples_needed is not None else ExitCode.UNDECIDED


def hunt_log_bug(bug: str, examples: int, shrink: bool, progress: Callable[[int], None]) -> LogHunt:
    """Let the machine look for one bug. progress: is called with the number of examples so far. Raises
    EnvironmentError_ if its process fails."""
    protection = log_bug(bug).protection
    command = [sys.executable, "-m", "fencepost.machines.log.hunt", bug, "--examples", str(examples)]
    if not shrink:
        command.append("--no-shrink")
    try:
        hunted = _listen(command, progress, bug)
    except KeyboardInterrupt:
        return LogHunt(bug=bug, breaks=protection.breaks, says=protection.says, interrupted=True)
    return LogHunt(
        bug=bug,
        breaks=protection.breaks,
        says=protection.says,
        examples_tried=hunted["examples_tried"],
        examples_needed=hunted["examples"],
        complaint=hunted["complaint"],
        steps=hunted["steps"],
        script=hunted["script"],
        others=tuple(hunted["others"]),
        cpu_s=hunted["cpu_s"],
    )


def _listen(command: list[str], progress: Callable[[int], None], bug: str) -> dict[str, Any]:
    hunted: dict[str, Any] = {}
    with tempfile.TemporaryFile("w+") as words:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=words, text=True) as process:
            try:
                assert process.stdout is not None
                for line in process.stdout:
                    said = msgspec.json.decode(line)
                    if "bug" in said:
                        hunted = said
                    else:
                        progress(said["examples"])
            except BaseException:
                process.terminate()
                raise
        if process.returncode or not hunted:
            words.seek(0)
            last = (words.read().strip().splitlines() or ["no word"])[-1]
            raise EnvironmentError_(
                expected="a hunt that ends with a result",
                seen=f"exit code {process.returncode}, {last}",
                where=f"hunt of {bug}",
            )
    return hunted


# ---- the record


def read_log_record(out: Path | None, examples: int) -> dict[str, LogHunt]:
    """The record of earlier hunts. One that gave up below today's budget does not count.

    Args:
        out: the folder of the hunts; None: there is no record.
        examples: today's budget.

    Returns:
        The hunts by bug.

    Raises:
        TraceError: if the record cannot be read.
    """
    if out is None or not (out / LOG_RECORD).exists():
        return {}
    try:
        hunts = msgspec.json.decode((out / LOG_RECORD).read_bytes(), type=list[LogHunt])
    except msgspec.DecodeError as error:
        raise TraceError(
            expected="a track record of the log machine", seen=str(error), where=str(out / LOG_RECORD)
        ) from None
    return {
        one.bug: one
        for one in hunts
        if not one.interrupted and (one.examples_needed is not None or one.examples_tried >= examples)
    }


def write_log_record(out: Path | None, record: dict[str, LogHunt]) -> None:
    """Keep the record, and each script next to it."""
    if out is None:
        return
    out.mkdir(parents=True, exist_ok=True)
    for bug, found in sorted(record.items()):
        if found.script:
            (out / f"{bug}.py").write_text(found.script, encoding="utf-8")
    hunts = [attrs.asdict(record[bug]) for bug in sorted(record)]
    write_whole(out / LOG_RECORD, msgspec.json.format(msgspec.json.encode(hunts)) + b"\n")
