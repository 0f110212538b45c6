"""A disk keeps what was synced: any run of calls against a naive twin, and each fault by itself."""

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.impl.log.batch.record_batch import Record, encode_batch
from fencepost.sim.disk_faults import DiskCall
from fencepost.sim.randomness import Randomness
from fencepost.systems.disk.content import PAGE, Pages, StoredFile
from fencepost.systems.disk.volume import MOST_BYTES, Volume, is_below

SIZES = st.builds(lambda pages, rest: pages * PAGE + rest, st.integers(0, 2), st.integers(-2, 2)).map(abs)
DATA = st.builds(lambda byte, size: bytes([byte]) * (size + 1), st.integers(1, 255), SIZES)
WRITES = st.lists(st.tuples(SIZES, DATA) | SIZES, max_size=8)


def applied(writes):
    """A file as one run of bytes."""
    content = bytearray()
    for write in writes:
        if isinstance(write, int):
            content = content[:write] + bytes(max(0, write - len(content)))
        else:
            position, data = write
            content += bytes(max(0, position + len(data) - len(content)))
            content[position : position + len(data)] = data
    return bytes(content)


def whole(pages):
    return pages.read(0, pages.size)


def volume(seed=0, **options):
    return Volume(node=1, randomness=Randomness(seed), **options)


@given(WRITES, SIZES, SIZES)
def test_pages_are_a_run_of_bytes(writes, position, size):
    """Holes read as zeros; what was cut off is zeros when the file grows again."""
    pages = Pages()
    for write in writes:
        pages.apply(write)
    twin = applied(writes)
    assert (whole(pages), whole(pages.copy())) == (twin, twin)
    assert pages.read(position, size) == twin[position : position + size]


@given(WRITES, WRITES, st.data())
def test_a_file_keeps_what_was_synced_and_a_prefix_of_the_rest(synced, later, data):
    """The write after the prefix may be torn; nothing else of later writes is there."""
    file = StoredFile()
    for write in synced:
        file.write(write)
    file.sync()
    for write in later:
        file.write(write)
    kept = data.draw(st.integers(0, len(later)))
    torn = later[kept] if kept < len(later) else 0
    torn_to = 0 if isinstance(torn, int) else data.draw(st.integers(0, len(torn[1])))
    file.settle(kept, torn_to)
    rest = [] if isinstance(torn, int) or not torn_to else [(torn[0], torn[1][:torn_to])]
    assert whole(file.content) == applied([*synced, *later[:kept], *rest])


def test_a_failed_sync_loses_what_no_later_one_writes():
    """The pages count as clean: a process reads them until the power fails."""
    file = StoredFile()
    file.write((0, b"aaaa"))
    file.write((4, b"bbbb"))
    file.fail_sync(1)
    file.write((8, b"cccc"))
    file.sync()
    assert whole(file.content) == b"aaaabbbbcccc"
    file.settle(0, 0)
    assert whole(file.content) == b"aaaa\0\0\0\0cccc"


@pytest.mark.parametrize("seed", range(30))
def test_power_loss_keeps_synced_files_with_synced_names(seed):
    """And nothing is kept that was never written."""
    disk = volume(seed)
    disk.make_directory("d")
    kept, lost = disk.create("d/kept"), disk.create("d/lost")
    disk.write(kept, "d/kept", 0, b"k" * 5000)
    disk.sync(kept, "d/kept")
    disk.sync_directory("d")
    disk.sync_directory("")
    for number in range(4):
        disk.write(lost, "d/lost", number * 10, bytes([number + 1]) * 10)
    disk.create("d/late")
    report = disk.power_loss()
    assert whole(disk.file("d/kept").content) == b"k" * 5000
    left = whole(disk.file("d/lost").content)
    assert left == b"".join(bytes([number + 1]) * 10 for number in range(4))[: len(left)]
    assert {each.path for each in report.files} <= {"d/lost", "d/late"}
    again = volume(seed)
    assert again.power_loss().files == ()


def batch(value):
    """One record, as the first one of a log."""
    record = Record(value, -1, None, b"%d" % value)
    return encode_batch([record], base_offset=value, leader_epoch=0)


def log_of(calls, *, lies=False):
    """What the disk says of a log after these calls: append, sync, names, at the file that they name."""
    disk, number = volume(1), 0
    disk.make_directory("t-0")
    disk.sync_directory("")
    path = "t-0/00000000000000000000.log"
    file = disk.create(path)
    if lies:
        disk.lie_about_syncs(times=1)
    for call in calls:
        if call == "append":
            disk.write(file, path, file.content.size, batch(number))
            number += 1
        elif call == "sync":
            disk.sync(file, path)
        else:
            disk.sync_directory("t-0")
    (log,) = disk.power_loss().logs
    return log


def test_a_power_loss_says_what_the_disk_surely_held():
    """Rule: the content that a sync made durable, if its name is durable too. A process with threads may be
    between the sync of a file and that of its directory; it is not after a second sync of the file."""
    named = log_of(("names", "append", "sync", "append"))
    assert (named.topic, named.partition, named.end, named.written, named.asked) == ("t", 0, 1, 2, 1)
    assert named.rolled == -1, "another thread may be about to sync what a roll has closed"
    assert log_of(("append", "sync")).end == 0
    assert log_of(("append", "sync", "sync")).end == 0, "nothing new was synced"
    assert log_of(("append", "sync", "append", "sync")).end == 2
    assert log_of(("names", "append", "sync", "append", "sync"), lies=True).end == 0, "a lie about the name"
    assert log_of(("append", "sync", "names"), lies=True).end == 0, "a lie about the content"


def test_the_loss_depends_on_the_seed_alone():
    """The same calls lose the same; over some seeds each length of the file is seen."""

    def left(seed):
        disk = volume(seed, torn_writes=False)
        file = disk.create("x")
        disk.sync_directory("")
        for number in range(3):
            disk.write(file, "x", number, b"x")
        disk.power_loss()
        return disk.file("x").content.size

    assert [left(seed) for seed in range(40)] == [left(seed) for seed in range(40)]
    assert {left(seed) for seed in range(40)} == {0, 1, 2, 3}


def test_a_lie_is_about_one_part_of_the_tree():
    """A synced file below it is lost, one beside it is not; what a kernel writes back by itself neither."""
    disk = volume(3, torn_writes=False)
    for folder in ("t-0", "t-00"):
        disk.make_directory(folder)
        disk.create(f"{folder}/log")
    disk.write_back()
    disk.lie_about_syncs(below="t-0")
    for folder in ("t-0", "t-00"):
        file = disk.file(f"{folder}/log")
        for number in range(20):
            disk.write(file, f"{folder}/log", number, b"x")
            disk.sync(file, f"{folder}/log")
    disk.write_back()
    disk.power_loss()
    assert disk.file("t-00/log").content.size == 20
    assert disk.file("t-0/log").content.size < 20
    disk.heal()
    file = disk.file("t-0/log")
    disk.write(file, "t-0/log", 0, b"y" * 30)
    disk.sync(file, "t-0/log")
    disk.power_loss()
    assert disk.file("t-0/log").content.size == 30


def test_a_lie_about_another_part_comes_on_top():
    """Each folder that was named loses, until the heal; it was only the last one once."""
    disk = volume(3, torn_writes=False)
    folders = ("t-0", "t-1", "t-2")
    for folder in folders:
        disk.make_directory(folder)
        disk.create(f"{folder}/log")
    disk.write_back()
    disk.lie_about_syncs(below="t-0")
    disk.lie_about_syncs(below="t-1")
    for folder in folders:
        file = disk.file(f"{folder}/log")
        for number in range(20):
            disk.write(file, f"{folder}/log", number, b"x")
            disk.sync(file, f"{folder}/log")
    disk.power_loss()
    sizes = [disk.file(f"{folder}/log").content.size for folder in folders]
    assert sizes[2] == 20 and max(sizes[:2]) < 20


def test_calls_fail_as_often_as_they_should():
    """The second write below a folder, and only there; reads; syncs of a directory."""
    disk = volume()
    disk.make_directory("a")
    file, other = disk.create("a/x"), disk.create("b")
    disk.fail_calls(DiskCall.WRITE, nth=2, below="a")
    disk.write(file, "a/x", 0, b"1")
    disk.write(other, "b", 0, b"1")
    for expected in (errno.EIO, None):
        try:
            disk.write(file, "a/x", 1, b"2")
            assert expected is None
        except OSError as error:
            assert error.errno == expected
    disk.fail_calls(DiskCall.READ, times=None)
    disk.fail_calls(DiskCall.SYNC)
    for call in (lambda: disk.read(other, "b", 0, 1), lambda: disk.sync_directory("a")):
        with pytest.raises(OSError, match="Input/output error"):
            call()
    disk.heal()
    assert disk.read(other, "b", 0, 1) == b"1"


def test_a_full_disk_takes_what_fits():
    """And has room again once something is removed, or the bound is gone."""
    disk = volume()
    file = disk.create("x")
    disk.write(file, "x", 0, bytes([1]) * PAGE)
    disk.limit_capacity(2 * PAGE)
    with pytest.raises(OSError, match="No space left"):
        disk.write(file, "x", PAGE, b"2" * 3 * PAGE)
    assert file.content.size == 2 * PAGE
    disk.limit_capacity(None)
    assert disk.write(file, "x", 2 * PAGE, b"3") == 1
    assert disk.used() == 3 * PAGE < MOST_BYTES


def test_slow_syncs_wait():
    """For each file and directory."""
    waited = []
    disk = volume(sleep=waited.append)
    file = disk.create("x")
    disk.slow_syncs(250)
    disk.sync(file, "x")
    disk.sync_directory("")
    disk.heal()
    disk.sync(file, "x")
    assert waited == [0.25, 0.25]


def test_names_answer_as_a_file_system_does():
    """Each refusal has the number of a system call."""
    disk = volume()
    disk.make_directory("d")
    disk.create("d/x")
    refused = {
        errno.ENOENT: [lambda: disk.file("y"), lambda: disk.remove("y"), lambda: disk.create("no/x")],
        errno.EEXIST: [lambda: disk.create("d/x"), lambda: disk.make_directory("d")],
        errno.ENOTEMPTY: [lambda: disk.remove_directory("d")],
        errno.EISDIR: [lambda: disk.remove("d"), lambda: disk.rename("d/x", "d")],
        errno.ENOTDIR: [lambda: disk.remove_directory("d/x"), lambda: disk.rename("d", "d/x/y")],
    }
    for number, calls in refused.items():
        for call in calls:
            with pytest.raises(OSError) as raised:
                call()
            assert raised.value.errno in (number, errno.ENOENT, errno.ENOTDIR), number
    disk.rename("d/x", "d/x")
    disk.rename("d/x", "z")
    assert (disk.children(""), disk.children("d")) == (["d", "z"], [])
    disk.remove("z")
    disk.remove_directory("d")
    assert disk.children("") == []


def test_a_path_is_below_itself_and_its_parents_only():
    """Names that only begin alike are others."""
    assert is_below("a/b", "a") and is_below("a", "a") and is_below("a", "")
    assert not is_below("ab", "a") and not is_below("", "a")
