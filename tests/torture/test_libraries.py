"""The table of libraries, and what NAME@VERSION means."""

import os
import re

import pytest

from fencepost.torture.building import build, folder_of, missing
from fencepost.torture.libraries import DRIVERS, Wanted, is_below, libraries, read_library, wanted
from fencepost.traces.errors import FencepostError


def test_an_old_sarama_commits_automatically_only():
    """Sessions have no Commit before 1.28, so that its driver offers no commits."""
    old, new = ("".join(wanted(f"sarama@{version}").files().values()) for version in ("1.26.1", "1.28.0"))
    assert "session.Commit()" not in old and '"commit_modes": []string{}' in old
    assert "session.Commit()" in new and '"commit_modes": []string{"sync"}' in new


@pytest.mark.parametrize("library", libraries().values(), ids=lambda library: library.name)
def test_every_row_can_be_read_and_pins_its_version(library):
    """A row names files that are there, and a version that is asked for is in its manifest, exact."""
    files = Wanted(library, "9.8.7").files()
    assert all(files.values())
    pinned = [text for name, text in files.items() if name in library.manifest]
    assert any(re.search(r"(?<![\d.^~])=?v?9\.8\.7(?![\d.])", text) for text in pinned), pinned
    assert library.folder.name == library.name and library.issues.startswith("https://")


def test_the_table_has_what_is_in_the_folder():
    """A folder with a driver is a row; shared/ is none."""
    folders = {path.name for path in DRIVERS.iterdir() if path.is_dir() and (path / "driver.toml").exists()}
    assert set(libraries()) == folders and "shared" not in folders and len(folders) >= 6


def test_an_old_version_gets_its_old_names():
    """sarama up to 1.38 has another import path, in sources and manifest."""
    old, new = wanted("sarama@1.38.1").files(), wanted("sarama@1.39.0").files()
    assert (
        "github.com/Shopify/sarama" in old["main.go"]
        and "github.com/IBM/sarama" not in old["main.go"] + old["go.mod"]
    )
    assert "github.com/IBM/sarama v1.39.0" in new["go.mod"] and "Shopify" not in new["main.go"]


@pytest.mark.parametrize(
    ("older", "newer"),
    [("1.9.2", "1.10.0"), ("1.38.1", "1.39.0"), ("2.0.0-beta.1", "2.0.0"), ("1.0", "1.0.1")],
)
def test_versions_are_compared_as_numbers(older, newer):
    """Not as text."""
    assert is_below(older, newer) and not is_below(newer, older) and not is_below(older, older)


def test_equal_versions_of_different_length_are_equal():
    """1.0 is 1.0.0, and a build's metadata counts for nothing."""
    assert (
        not is_below("1.0", "1.0.0") and not is_below("1.0.0", "1.0") and not is_below("4.0.0+1.6.1", "4.0.0")
    )


@pytest.mark.parametrize(
    "text",
    [
        "nobody",
        "sarama@",
        "sarama@../../x",
        "sarama@1.0 || rm",
        "@platformatic/kafka",
        "sarama@1\n2",
        "./absent",
    ],
)
def test_what_is_no_library_is_one_sentence(text):
    """A version becomes part of a path and of a manifest: nothing but a version is taken."""
    with pytest.raises(FencepostError, match="expected"):
        wanted(text)


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("name = 3", "Expected"),
        ("nmae = 'x'", "nmae"),
        ("[[when]]\nbelwo = '1'", "belwo"),
        ("not toml", "saw"),
        ("name='x'\ntitle='t'\ntoolchain='make'\nnewest='1'\nsources=[]", "make"),
        ("name='X/..'\ntitle='t'\ntoolchain='go'\nnewest='1'\nsources=[]", "X/"),
    ],
)
def test_a_row_that_is_none_is_one_sentence(tmp_path, text, seen):
    """A setting that is misspelt is not ignored."""
    (tmp_path / "driver.toml").write_text(text)
    with pytest.raises(FencepostError, match=seen):
        read_library(tmp_path)


def test_a_missing_toolchain_is_named(monkeypatch, tmp_path):
    """Without Go a driver in Go cannot be built, and the sentence says so."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("FENCEPOST_DRIVERS", str(tmp_path / "cache"))
    assert "go" in missing(wanted("sarama"))
    with pytest.raises(FencepostError, match="no go on the path"):
        build(wanted("sarama"))
    assert not (tmp_path / "cache").exists()


def test_a_failed_build_leaves_nothing_and_shows_its_end(monkeypatch, tmp_path):
    """The toolchain's last words are in the sentence; the cache has no build and no rest of one."""
    (tmp_path / "go").write_text("#!/bin/sh\necho no such module\nexit 3\n")
    (tmp_path / "go").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("FENCEPOST_DRIVERS", str(tmp_path / "cache"))
    with pytest.raises(FencepostError, match="ended with 3: no such module"):
        build(wanted("sarama@1.0.0"))
    assert list((tmp_path / "cache").iterdir()) == []


def test_another_version_and_another_source_are_other_builds(monkeypatch, tmp_path):
    """What is in the cache was made from what is asked for."""
    monkeypatch.setenv("FENCEPOST_DRIVERS", str(tmp_path))
    assert (
        len({folder_of(wanted(text)) for text in ("sarama@1.43.2", "sarama@1.43.3", "franz-go@1.43.2")}) == 3
    )


def test_a_driver_that_is_a_program_stays_one(monkeypatch, tmp_path):
    """Rule: what its author may run may be run in the build's folder: a driver without a toolchain is a
    finished program."""
    monkeypatch.setenv("FENCEPOST_DRIVERS", str(tmp_path / "cache"))
    own = tmp_path / "own"
    own.mkdir()
    (own / "driver").write_text("#!/bin/sh\nexit 0\n")
    (own / "driver").chmod(0o755)
    (own / "notes").write_text("x")
    sources = "name='own'\ntitle='t'\ntoolchain='none'\nnewest='1'\nsources=['driver', 'notes']"
    (own / "driver.toml").write_text(sources)
    folder = build(Wanted(read_library(own), "1")).folder
    assert os.access(folder / "driver", os.X_OK) and not (folder / "notes").stat().st_mode & 0o111


def test_drivers_in_python_are_installed_from_wheels(monkeypatch, tmp_path):
    """Rule: no code of a package runs while it is installed, unless the caller wants that; where a version
    has no wheel, the sentence says so."""
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho "$@"\necho No matching distribution found for x\nexit 1\n')
    python.chmod(0o755)
    monkeypatch.setattr("fencepost.torture.building.sys.executable", str(python))
    monkeypatch.setenv("FENCEPOST_DRIVERS", str(tmp_path / "cache"))
    with pytest.raises(FencepostError, match=r"--only-binary=:all:(?s:.)*is there a wheel for Python 3"):
        build(wanted("kafka-python@1.0.0"))
    monkeypatch.setenv("FENCEPOST_SOURCE_DISTRIBUTIONS", "1")
    with pytest.raises(FencepostError, match=r"--prefer-binary(?s:.)*does this version exist"):
        build(wanted("kafka-python@1.0.0"))


def test_a_version_that_its_driver_does_not_build_with_is_refused_by_name():
    """The sentence names the oldest one that does, and nothing is built."""
    with pytest.raises(FencepostError, match=r"kafka-go@0\.4\.38 or newer.*0\.4\.37"):
        wanted("kafka-go@0.4.37")
    assert wanted("kafka-go@0.4.38").version == "0.4.38"


def test_aiokafka_before_it_had_coordinators_of_its_own_gets_a_kafka_python_that_has_them():
    """Rule: up to 0.8 it asks for any kafka-python from 2.0.2 on, and 3 has other modules."""
    old, new = ("".join(wanted(f"aiokafka@{one}").files().values()) for one in ("0.8.1", "0.9.0"))
    assert "kafka-python==2.0.2\n" in old and "kafka-python" not in new
    assert "from kafka.coordinator" in old and "from aiokafka.coordinator" in new
