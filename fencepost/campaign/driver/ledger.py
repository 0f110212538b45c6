"""What a campaign's folder says about the campaign: how it was asked for, and the verdict of each run.

Owns: campaign.json and verdicts.jsonl. Must not know: traces (they are files next to it, see
traces/store.py), processes.

    DIR/campaign.json     what every run shares; a resumed campaign must be asked for in the same way
    DIR/verdicts.jsonl    one line per judged run, in the order in which they ended

The traces are the record, the verdicts can be made again: a run without a line is judged again, a torn last
line is cut, and a line without a stored run counts for nothing.
"""

from collections.abc import Collection
from pathlib import Path
from typing import BinaryIO, Self

import attrs
import msgspec
from attrs import Factory, define, frozen

from fencepost.campaign.driver.sitting import FOLDER, NO_SITTING, take_over
from fencepost.campaign.workers.results import Job, RunResult
from fencepost.traces.errors import EnvironmentError_, FencepostError, TraceError
from fencepost.traces.store import TraceStore

ABOUT = "campaign.json"
VERDICTS = "verdicts.jsonl"
ABOUT_VERSION = 1


class _Version(msgspec.Struct):
    version: int = ABOUT_VERSION


@frozen(kw_only=True)
class About:
    """The content of campaign.json."""

    version: int = ABOUT_VERSION
    software_version: str = ""
    job: Job = Factory(Job)


def read_about(path: Path) -> About:
    """How the campaign in a folder was asked for. Raises TraceError, also for one of a later version."""
    try:
        text = (path / ABOUT).read_bytes()
        version = msgspec.json.decode(text, type=_Version).version
        if version != ABOUT_VERSION:
            raise TraceError(
                expected=f"a campaign of version {ABOUT_VERSION}",
                seen=f"{version}",
                where=str(path / ABOUT),
                hint="a later fencepost wrote it and reads it",
            )
        return msgspec.json.decode(text, type=About)
    except OSError as error:
        raise TraceError(
            expected="a campaign's folder", seen=error.strerror or str(error), where=str(path / ABOUT)
        ) from None
    except msgspec.DecodeError as error:
        raise TraceError(
            expected="how a campaign was asked for", seen=str(error), where=str(path / ABOUT)
        ) from None


def refuse_foreign(folder: Path, ours: Collection[str], what: str) -> None:
    """Raise FencepostError if a folder has files of something else.

    Args:
        folder: may be missing or empty.
        ours: the names that may be in it; hidden files may be there anyway.
        what: is written there, with its article.
    """
    if not folder.is_dir():
        return
    others = sorted(
        path.name for path in folder.iterdir() if path.name not in ours and not path.name.startswith(".")
    )
    if others:
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        raise FencepostError(
            expected=f"an empty folder, or {what}",
            seen=f"{others[0]}{more}",
            where=str(folder),
            hint="choose another folder",
        )


def claim(path: Path, job: Job, *, software_version: str, resume: bool) -> TraceStore:
    """The store of a new campaign, or of the same campaign resumed.

    Args:
        path: the campaign's folder.
        job: what the campaign runs; a resumed one must run the same.
        software_version: of this package; a campaign of another version is not resumed.
        resume: whether a folder that exists may be used.

    Raises:
        FencepostError: in one sentence, if the folder holds something else.
    """
    try:
        taken = path.is_dir() and any(path.iterdir())
        if taken and not resume:
            raise FencepostError(
                expected="an empty folder",
                seen="that it holds a campaign" if (path / ABOUT).exists() else "other files in it",
                where=str(path),
                hint="continue it (--resume, or resume=True), or choose another folder",
            )
        if taken:
            earlier = read_about(path).job
            different = [name for name, value in attrs.asdict(job).items() if getattr(earlier, name) != value]
            if different:
                name = different[0]
                raise FencepostError(
                    expected=f"the campaign to be resumed with the same {name}, "
                    f"{_shown(getattr(earlier, name))}",
                    seen=_shown(getattr(job, name)),
                    where=str(path),
                )
            if (path / FOLDER).is_dir():
                take_over(path / FOLDER, NO_SITTING)
        store = TraceStore.create(path)
        if not taken:
            about = attrs.asdict(About(software_version=software_version, job=job))
            (path / ABOUT).write_bytes(msgspec.json.format(msgspec.json.encode(about)) + b"\n")
    except OSError as error:
        raise EnvironmentError_(
            expected="a folder to write to", seen=error.strerror or str(error), where=str(path)
        ) from None
    return store


def _shown(value: object) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 80 else text[:77] + "..."


def verdicts_of(folder: Path) -> dict[int, RunResult]:
    """The verdict of each judged run of a campaign, by seed; a torn last line is left out. Raises
    TraceError."""
    return _read(folder / VERDICTS)[0]


def _read(path: Path) -> tuple[dict[int, RunResult], int]:
    """The verdicts, and how many bytes they take."""
    found: dict[int, RunResult] = {}
    end = 0
    if not path.exists():
        return found, end
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.endswith(b"\n"):
                break
            try:
                result = RunResult.from_json(line)
            except msgspec.DecodeError as error:
                raise TraceError(
                    expected="a verdict",
                    seen=str(error),
                    where=f"{path}:{number}",
                    hint="remove the file to judge again",
                ) from None
            found[result.seed] = result
            end += len(line)
    return found, end


@define
class Ledger:
    """The verdicts of a campaign."""

    path: Path
    # Those of previous sittings, by seed.
    earlier: dict[int, RunResult]
    # Open for appending.
    file: BinaryIO

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Read what earlier sittings wrote, cut a torn last line, go on after it. Raises TraceError for
        anything else than that."""
        path = folder / VERDICTS
        earlier, end = _read(path)
        file = path.open("ab")
        file.truncate(end)
        return cls(path, earlier, file)

    def add(self, result: RunResult) -> None:
        """Write one line, and let the kernel have it."""
        self.file.write(result.to_json() + b"\n")
        self.file.flush()

    def close(self) -> None:
        """Close the file."""
        self.file.close()
