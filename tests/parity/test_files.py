"""The simulated disk and real files answer the same calls in the same way, errors included."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fencepost.impl.runtime.real_file_system import RealFiles
from fencepost.sim.disk import Disk
from fencepost.sim.randomness import Randomness


def content(files, path: str) -> bytes:
    file = files.open(path, create=False)
    return file.read_at(0, file.size())


def test_a_file_reads_back_what_was_written(files):
    """Rule: append gives positions, read_at is cut at the end, truncate never extends, and two handles see
    one file."""
    file, other = files.open("log"), files.open("log")
    assert [file.append(b"abc"), other.append(b"defg"), file.append(b"")] == [0, 3, 7]
    assert (file.read_at(2, 3), other.read_at(5, 99), file.read_at(99, 1)) == (b"cde", b"fg", b"")
    file.truncate(4)
    other.truncate(99)
    assert (file.size(), other.size(), other.read_at(0, 99)) == (4, 4, b"abcd")
    assert file.append(memoryview(b"xyz")[1:]) == 4 and content(files, "log") == b"abcdyz"
    file.sync()
    for handle in (file, other):
        handle.close()
    files.sync_directory("")


def test_names(files):
    """Rule: directories, sorted listing, renaming over another name, removing."""
    files.make_directory("a/b")
    files.make_directory("a/b")
    for name, data in (("a/y", b"2"), ("a/x", b"1")):
        files.open(name).append(data)
    assert (files.list("a"), files.list(""), files.list("none")) == (["b", "x", "y"], ["a"], [])
    files.rename("a/x", "a/y")
    assert (files.list("a"), content(files, "a/y")) == (["b", "y"], b"1")
    files.rename("a/y", "z")
    files.sync_directory("a")
    files.sync_directory("a/b")
    assert files.exists("z") and files.exists("a/b") and not files.exists("a/y")
    files.remove("z")
    assert files.list("") == ["a"]


def test_a_directory_goes_with_its_files(files):
    """Rule: a directory is removed with the files in it, and its name is free; one that is absent, no
    directory, or holds another stays as it is."""
    files.make_directory("t-0/empty")
    files.open("t-0/log").append(b"abc")
    with pytest.raises((IsADirectoryError, PermissionError)):
        files.remove_directory("t-0")
    files.remove_directory("t-0/empty")
    files.open("t-0/log").append(b"abc")
    files.remove_directory("t-0")
    assert files.list("") == [] and not files.exists("t-0/log")
    files.make_directory("t-0")
    assert files.list("t-0") == []
    files.open("file")
    with pytest.raises(FileNotFoundError):
        files.remove_directory("none")
    with pytest.raises(NotADirectoryError):
        files.remove_directory("file")


def test_errors(files):
    """Rule: an absent name is FileNotFoundError, a directory is no file."""
    files.make_directory("d")
    for call in (
        lambda: files.open("no", create=False),
        lambda: files.open("no/x"),
        lambda: files.rename("no", "x"),
        lambda: files.remove("no"),
        lambda: files.sync_directory("no"),
    ):
        with pytest.raises(FileNotFoundError):
            call()
    for call in (lambda: files.open("d"), lambda: files.remove("d")):
        with pytest.raises(IsADirectoryError):
            call()


def test_a_removed_file_lives_on_in_open_handles(files):
    """Rule: a reader of a segment that retention removes reads on."""
    file = files.open("log")
    file.append(b"abc")
    files.remove("log")
    files.open("log").append(b"new")
    assert (file.read_at(0, 9), content(files, "log")) == (b"abc", b"new")


STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["append"]), st.sampled_from("xy"), st.binary(max_size=6)),
        st.tuples(st.sampled_from(["truncate"]), st.sampled_from("xy"), st.integers(0, 12)),
        st.tuples(st.sampled_from(["rename"]), st.sampled_from("xyz"), st.sampled_from("xyz")),
        st.tuples(st.sampled_from(["remove", "sync"]), st.sampled_from("xyz"), st.none()),
    ),
    max_size=15,
)


def after(files, steps) -> tuple[list[object], dict[str, bytes]]:
    """What each step answered, and what is there in the end."""
    answers: list[object] = []
    for kind, name, argument in steps:
        try:
            if kind == "append":
                answers.append(files.open(name).append(argument))
            elif kind == "truncate":
                answers.append(files.open(name, create=False).truncate(argument))
            elif kind == "sync":
                answers.append(files.open(name, create=False).sync())
            else:
                answers.append(files.rename(name, argument) if kind == "rename" else files.remove(name))
        except OSError as error:
            answers.append(type(error).__name__)
    return answers, {name: content(files, name) for name in files.list("")}


@settings(
    max_examples=60, derandomize=True, database=None, deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(steps=STEPS)
def test_any_history_ends_the_same_in_both_worlds(steps, tmp_path_factory):
    """Rule: answers, errors and contents agree, whatever was done."""
    simulated = Disk(node=1, randomness=Randomness(1))
    assert after(simulated, steps) == after(RealFiles(tmp_path_factory.mktemp("world")), steps)


def test_read_only_files_change_nothing(tmp_path):
    """Rule: who looks at somebody's log directory cannot change it, not even by opening a file that is not
    there."""
    (tmp_path / "log").write_bytes(b"abc")
    files = RealFiles(tmp_path, read_only=True)
    assert content(files, "log") == b"abc" and files.list("") == ["log"]
    with pytest.raises(FileNotFoundError):
        files.open("absent")
    for call in (
        lambda: files.open("log").append(b"x"),
        lambda: files.open("log").truncate(0),
        lambda: files.rename("log", "x"),
        lambda: files.remove("log"),
        lambda: files.make_directory("d"),
    ):
        with pytest.raises(OSError):
            call()
    assert content(files, "log") == b"abc" and files.list("") == ["log"]
