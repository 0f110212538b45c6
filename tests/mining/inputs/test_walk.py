"""Links and second names: each real file is read once, by `check`, `mine`, `show` and `watch`."""

import os
from pathlib import Path

import pytest
from attrs import evolve
from damaged_stores import IDS, healthy

from fencepost.mining.inputs.history_files import told_apart
from fencepost.mining.inputs.traces import Found, Piece, pieces_of, read_piece, sources, traces_of
from fencepost.mining.inputs.walk import Walk
from fencepost.mining.watch.arrivals import Folder
from fencepost.traces.digest import digest_of
from fencepost.traces.errors import FencepostError
from fencepost.traces.jsonlines import write_traces


@pytest.fixture
def folder(tmp_path: Path, make) -> Path:
    """A file of three traces, one of two in a folder below, and a folder of traces."""
    top = tmp_path / "top"
    (top / "below").mkdir(parents=True)
    made = [make(100 + number, "legal") for number in range(5)]
    made = [evolve(trace, digest=digest_of(trace)) for trace in made]
    write_traces(top / "three.jsonl", made[:3])
    write_traces(top / "below" / "two.jsonl", made[3:])
    healthy(top / "stored", make)
    return top


def to_itself(top: Path) -> None:
    (top / "below" / "self").symlink_to(top)


def branching(top: Path) -> None:
    for name in ("left", "right"):
        (top / name).mkdir()
        (top / name / "up").symlink_to(top)
        (top / name / "beside").symlink_to(top / ("right" if name == "left" else "left"))


def to_files(top: Path) -> None:
    (top / "below" / "again.jsonl").symlink_to(top / "three.jsonl")
    os.link(top / "below" / "two.jsonl", top / "second.jsonl")
    (top / "stored-again").symlink_to(top / "stored")
    (top / "nowhere.jsonl").symlink_to(top / "gone")


LINKS = [to_itself, branching, to_files]
EVERY = sorted([*range(100, 105), *IDS])


@pytest.mark.parametrize("link", LINKS)
def test_check_and_mine_read_each_real_file_once(folder: Path, link) -> None:
    """Rule: whatever links lead to, thirteen traces are thirteen."""
    link(folder)
    found = [one for one in traces_of((folder,)) if isinstance(one, Found)]
    assert sorted(one.trace.trace_id for one in found) == EVERY
    stores, files = told_apart([folder], "auto")
    assert [path.resolve() for path in stores] == [folder / "stored"] and len(files) == 2


@pytest.mark.parametrize("link", LINKS)
def test_watch_reads_each_real_file_once(folder: Path, link) -> None:
    """Rule: of the names of one file, one is taken, also where links lead in circles."""
    link(folder)
    taken = [Path(one.place) for one in Folder(named="top", root=folder).look()]
    assert len(taken) == 3, taken
    assert {path.name for path in taken} <= {"three.jsonl", "two.jsonl", "second.jsonl", "part-00000.parquet"}


def test_a_link_to_what_is_elsewhere_is_followed(folder: Path, tmp_path: Path) -> None:
    """A folder may be made of links alone."""
    links = tmp_path / "links"
    links.mkdir()
    (links / "a.jsonl").symlink_to(folder / "three.jsonl")
    (links / "b").symlink_to(folder / "below")
    (links / "c").symlink_to(folder / "stored")
    found = [one.trace.trace_id for one in traces_of((links,)) if isinstance(one, Found)]
    assert sorted(found) == EVERY
    assert [str(path.relative_to(links)) for path in sources(links)] == ["a.jsonl", "b/two.jsonl", "c"]


def test_what_is_named_twice_is_judged_once_and_said(folder: Path) -> None:
    """Rule: a file that two paths of the command line mean is one, and a sentence says so."""
    (folder / "other").symlink_to(folder / "stored")
    said: list[str] = []
    paths = (
        folder / "three.jsonl",
        folder / "stored",
        folder,
        folder / "other",
        folder / "below/../three.jsonl",
    )
    pieces = [one for one in pieces_of(paths, tell=said.append) if isinstance(one, Piece)]
    found = [one.trace.trace_id for piece in pieces for one in read_piece(piece) if isinstance(one, Found)]
    assert sorted(found) == EVERY
    assert len(said) == 4 and all("named twice, and read once" in sentence for sentence in said)


def test_a_folder_that_cannot_be_read_is_said_in_a_sentence(folder: Path, monkeypatch) -> None:
    """The environment's mistake is no traceback."""

    def refused(_: Path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refused)
    with pytest.raises(FencepostError, match="expected a folder that can be read, saw Permission denied"):
        list(Walk().below(folder, lambda path: False))
