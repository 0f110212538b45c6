"""The disk: what was synced survives any power loss, what was not is lost as a file system may lose it, and a
crash loses nothing. What calls answer is compared with real files in tests/parity/test_files.py."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.sim.disk import Disk, FileLoss, PowerLoss
from fencepost.sim.randomness import Randomness
from fencepost.sim.scheduler import MICROSECOND
from fencepost.traces.plan import DiskOptions
from tests.selfcheck.amounts import amount


def disk(seed: int = 1, **options: object) -> Disk:
    """A fresh disk; another seed loses other things."""
    return Disk(node=1, randomness=Randomness(seed), options=DiskOptions(**options))


def content(where: Disk, path: str) -> bytes | None:
    """What a file holds, None if it is absent."""
    if not where.exists(path):
        return None
    file = where.open(path, create=False)
    return file.read_at(0, file.size())


def write(where: Disk, path: str, *writes: bytes, sync: bool = True) -> None:
    """Append to a file whose name is durable."""
    file = where.open(path)
    for data in writes:
        file.append(data)
    if sync:
        file.sync()
    where.sync_directory(path.rpartition("/")[0])


def test_calls_cost_virtual_time():
    """A write and a sync cost what the options say; reading is free; take_cost starts anew."""
    where = disk(write_us=3, fsync_us=1_000)
    file = where.open("log")
    file.append(b"x")
    file.sync()
    file.read_at(0, 1)
    assert where.take_cost() == (3 + 3 + 1_000) * MICROSECOND
    assert where.take_cost() == 0


def test_a_process_crash_loses_nothing(where):
    """The page cache outlives the process."""
    write(where, "log", b"abc", sync=False)
    where.crash()
    assert content(where, "log") == b"abc"


def test_a_power_loss_loses_what_was_not_synced():
    """Over many seeds every prefix of the unsynced writes is left, torn writes among them, and the synced
    part always."""
    left = set()
    for seed in range(200):
        where = disk(seed)
        write(where, "log", b"ab")
        write(where, "log", b"cd", b"ef", sync=False)
        report = where.power_loss()
        kept = content(where, "log")
        left.add(kept)
        lost = 6 - len(kept)
        expected = (
            (FileLoss(path="log", size_before=6, size_after=len(kept), kept=len(kept)),) if lost else ()
        )
        assert report.files == expected and all(file.lost == lost for file in report.files)
    assert left == {b"ab", b"abc", b"abcd", b"abcde", b"abcdef"}


def test_without_torn_writes_whole_writes_are_lost():
    """torn_write=False leaves only whole writes."""
    left = set()
    for seed in range(100):
        where = disk(seed, torn_write=False)
        write(where, "log", b"ab")
        write(where, "log", b"cd", b"ef", sync=False)
        where.power_loss()
        left.add(content(where, "log"))
    assert left == {b"ab", b"abcd", b"abcdef"}


def test_an_unsynced_truncation_may_come_back():
    """A cut that was not synced may be undone; the report says how much of the file is as it was."""
    left = set()
    for seed in range(100):
        where = disk(seed)
        write(where, "log", b"abcdef")
        file = where.open("log")
        file.truncate(2)
        file.append(b"XY")
        report = where.power_loss()
        left.add(content(where, "log"))
        if content(where, "log") == b"abcdef":
            assert report.files == (FileLoss(path="log", size_before=4, size_after=6, kept=2),)
    assert left == {b"abcdef", b"ab", b"abX", b"abXY"}


def test_names_that_were_not_synced_may_be_lost():
    """A file whose name is not durable may vanish although its content was synced; sync_directory keeps
    it."""
    left = set()
    for seed in range(50):
        where = disk(seed)
        where.open("unsynced").sync()
        where.power_loss()
        left.add(where.exists("unsynced"))
        write(where, "synced", b"x")
        where.power_loss()
        assert content(where, "synced") == b"x"
    assert left == {True, False}


def test_a_replaced_file_is_the_old_or_the_new_one():
    """Write, sync, rename: either whole content, never a mixture; and without the sync of the new file,
    possibly an empty one."""
    left, careless = set(), set()
    for seed in range(100):
        for sync, results in ((True, left), (False, careless)):
            where = disk(seed)
            write(where, "checkpoint", b"old")
            file = where.open("checkpoint.tmp")
            file.append(b"new!")
            if sync:
                file.sync()
            where.rename("checkpoint.tmp", "checkpoint")
            where.power_loss()
            results.add(content(where, "checkpoint"))
    assert left == {b"old", b"new!"}
    assert careless > {b"old", b"new!", b""}


def test_a_rename_between_directories_is_kept_or_lost_in_both():
    """A file is never in both directories or in none after a power loss; syncing one of them keeps the rename
    whole."""
    left = set()
    for seed in range(50):
        where = disk(seed)
        for directory in ("a", "b"):
            where.make_directory(directory)
        where.sync_directory("")
        write(where, "a/x", b"1")
        where.rename("a/x", "b/x")
        if seed % 2:
            where.sync_directory("b")
        where.power_loss()
        left.add((seed % 2, where.exists("a/x"), where.exists("b/x")))
    assert left == {(0, True, False), (0, False, True), (1, False, True)}


def test_the_armed_power_loss_fires_inside_the_chosen_call():
    """The k-th changing call raises, no call works after it, and no `except Exception` can hold it up."""
    for calls in (1, 2, 3):
        where = disk()
        write(where, "log", b"durable")
        file = where.open("log")
        where.arm_power_loss(calls)
        done = 0
        with pytest.raises(PowerLoss):
            for _ in range(10):
                file.append(b"x")
                file.read_at(0, 1)
                done += 1
        assert done == calls - 1
        for call in (file.sync, lambda file=file: file.read_at(0, 1), lambda where=where: where.list("")):
            with pytest.raises(PowerLoss):
                call()
        assert not issubclass(PowerLoss, Exception)
        where.power_loss()
        assert content(where, "log").startswith(b"durable")


def test_a_sync_in_which_the_power_fails_promises_nothing():
    """An armed sync raises before it made anything durable."""
    left = set()
    for seed in range(50):
        where = disk(seed)
        write(where, "log", b"")
        file = where.open("log")
        file.append(b"abc")
        where.arm_power_loss(1)
        with pytest.raises(PowerLoss):
            file.sync()
        where.power_loss()
        left.add(content(where, "log"))
    assert left == {b"", b"a", b"ab", b"abc"}


def test_disarming(where):
    """A disarmed or crashed disk does not lose power later."""
    where.arm_power_loss(1)
    where.disarm_power_loss()
    write(where, "log", b"x")
    where.arm_power_loss(1)
    where.crash()
    write(where, "log", b"x")


WRITES = st.one_of(
    st.tuples(st.just("append"), st.binary(min_size=1, max_size=4)),
    st.tuples(st.just("truncate"), st.integers(0, 12)),
    st.tuples(st.just("sync"), st.none()),
)


@settings(derandomize=True, deadline=None, database=None, max_examples=amount(120, 300))
@given(steps=st.lists(WRITES, max_size=12), seed=st.integers(0, 1000), torn=st.booleans())
def test_synced_data_survives_and_the_rest_is_a_prefix_of_the_writes(steps, seed, torn):
    """After any history, a power loss leaves the content at the last sync with some prefix of the later
    writes, the last one torn."""
    where = disk(seed, torn_write=torn)
    write(where, "log")
    file = where.open("log")
    now, possible = b"", {b""}
    for kind, argument in steps:
        if kind == "append":
            file.append(argument)
            cuts = range(1, len(argument) + 1) if torn else [len(argument)]
            possible |= {now + argument[:cut] for cut in cuts}
            now += argument
        elif kind == "truncate":
            file.truncate(argument)
            now = now[:argument]
            possible.add(now)
        else:
            file.sync()
            possible = {now}
    assert content(where, "log") == now
    report = where.power_loss()
    after = content(where, "log")
    assert after in possible
    assert bool(report.files) == (after != now)
    where.power_loss()
    assert content(where, "log") == after, "what survived is durable"


NAME_STEPS = st.one_of(
    st.tuples(st.just("create"), st.sampled_from(["a/x", "a/y", "b/x", "b/y"]), st.none()),
    st.tuples(st.just("remove"), st.sampled_from(["a/x", "a/y", "b/x", "b/y"]), st.none()),
    st.tuples(
        st.just("rename"),
        st.sampled_from(["a/x", "a/y", "b/x", "b/y"]),
        st.sampled_from(["a/x", "a/z", "b/y", "b/z"]),
    ),
    st.tuples(st.just("sync"), st.sampled_from(["a", "b"]), st.none()),
)


def look(where: Disk) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names in both directories."""
    return tuple(where.list("a")), tuple(where.list("b"))


@settings(derandomize=True, deadline=None, database=None, max_examples=amount(120, 300))
@given(steps=st.lists(NAME_STEPS, max_size=12), seed=st.integers(0, 1000))
def test_each_directory_keeps_its_synced_names_and_a_prefix_of_its_steps(steps, seed):
    """Whatever was done to two directories, each is as it was at some moment since its last sync."""
    where = disk(seed)
    for directory in ("a", "b"):
        where.make_directory(directory)
    where.sync_directory("")
    states = [[()], [()]]
    for kind, name, other in steps:
        try:
            if kind == "create":
                where.open(name)
            elif kind == "remove":
                where.remove(name)
            elif kind == "rename":
                where.rename(name, other)
            else:
                where.sync_directory(name)
        except FileNotFoundError:
            continue
        now = look(where)
        for side in (0, 1):
            states[side].append(now[side])
        if kind == "sync":
            states["ab".index(name)] = [now["ab".index(name)]]
    where.power_loss()
    after = look(where)
    assert after[0] in states[0] and after[1] in states[1]
    where.power_loss()
    assert look(where) == after, "what survived is durable"


def test_the_kernel_writes_back_unless_syncs_lie(where):
    """Rule: after write_back a power loss takes nothing, neither content nor names, and no call has cost a
    process anything; a lying disk keeps lying."""
    write(where, "a", b"one", b"two", sync=False)
    where.make_directory("d")
    spent = where.take_cost()
    where.lie_about_syncs()
    where.write_back()
    assert where._names.unsynced and spent > 0
    where.heal()
    where.write_back()
    assert where.take_cost() == 0 and not where._names.unsynced
    where.power_loss()
    assert content(where, "a") == b"onetwo" and where.exists("d")
    assert where.size() == 6
