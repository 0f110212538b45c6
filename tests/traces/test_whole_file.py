"""Files that are written whole or not at all."""

import os
import subprocess
import sys
import threading

import pytest

from fencepost.traces.whole_file import whole, write_whole


def test_the_old_file_stays_where_writing_fails(tmp_path):
    """Rule: what was there stays, no draft does, and the error names the file, which `write` does not."""
    path = tmp_path / "page.html"
    write_whole(path, "old")
    with pytest.raises(OSError, match="full") as error, whole(path) as draft:
        draft.write_text("a part")
        raise OSError(28, "full")
    assert error.value.filename == str(path)
    assert path.read_text() == "old" and [one.name for one in tmp_path.iterdir()] == ["page.html"]


def test_missing_folders_are_made_and_a_link_stays_one(tmp_path):
    """Rule: what a link leads to is replaced."""
    target, link = tmp_path / "a" / "real", tmp_path / "link"
    write_whole(target, b"1")
    link.symlink_to(target)
    write_whole(link, "2")
    assert link.is_symlink() and target.read_bytes() == b"2"


def test_a_pipe_is_written_to(tmp_path):
    """Rule: what is no file has no draft."""
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_whole(pipe, "through")
    reader.join(60)
    assert read == ["through"]


SMALL_DISK = """
import resource, sys
from pathlib import Path
from fencepost.cli import run
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
sys.exit(run(["show", sys.argv[1], "--html", sys.argv[2]]))
"""


def test_a_page_that_has_no_room_leaves_the_old_one(tmp_path, request):
    """Rule: one sentence with the file and the reason, and the page of before is still there."""
    page = tmp_path / "page.html"
    page.write_text("of before")
    history = request.config.rootpath / "tests/checkers/linearizability/histories/stale-read.edn"
    trace = tmp_path / "trace.edn"
    trace.write_bytes(history.read_bytes())
    done = subprocess.run(
        [sys.executable, "-c", SMALL_DISK, str(trace), str(page)], capture_output=True, text=True, check=False
    )
    said = " ".join(done.stderr.split())
    assert done.returncode == 2 and "File too large" in said and str(page) in said.replace(" ", ""), done
    assert page.read_text() == "of before" and {one.name for one in tmp_path.iterdir()} == {
        "page.html",
        "trace.edn",
    }
