"""The disk's faults: each does what it says, where it was told to, and stops when it is healed."""

import errno

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.sim.disk import Disk, PowerLoss
from fencepost.sim.disk_faults import STEPS as STEPS_OF_FILES
from fencepost.sim.disk_faults import DiskCall
from fencepost.sim.randomness import Randomness
from fencepost.sim.scheduler import MICROSECOND
from fencepost.traces.plan import INSIDE, DiskOptions

SEARCH = settings(derandomize=True, deadline=None, database=None, max_examples=200)


def disk(seed: int = 1, **options: object) -> Disk:
    """A fresh disk."""
    return Disk(node=1, randomness=Randomness(seed), options=DiskOptions(**options))


def durable_file(where: Disk, path: str, data: bytes = b""):
    """An open file with a durable name and content."""
    file = where.open(path)
    if data:
        file.append(data)
    file.sync()
    where.sync_directory("")
    return file


def content(where: Disk, path: str) -> bytes:
    """What a file holds."""
    file = where.open(path, create=False)
    return file.read_at(0, file.size())


def code_of(call, *arguments: object) -> int:
    """The errno that a call raises; 0 if none."""
    try:
        call(*arguments)
    except OSError as error:
        assert error.filename is not None
        return error.errno
    return 0


def test_a_full_disk_refuses_an_append_and_keeps_what_fits_or_nothing():
    """ENOSPC, over many seeds with both outcomes; what was there stays, and room that is freed can be
    used."""
    left = set()
    for seed in range(30):
        where = disk(seed)
        file, other = durable_file(where, "log", b"abcd"), durable_file(where, "other", b"xx")
        where.limit_capacity(9)
        assert code_of(file.append, b"123") == 0, "exactly up to the capacity"
        assert code_of(file.append, b"4") == errno.ENOSPC
        where.limit_capacity(11)
        assert code_of(file.append, b"4567") == errno.ENOSPC
        left.add(content(where, "log"))
        assert content(where, "other") == b"xx"
        other.truncate(0)
        file.truncate(4)
        assert code_of(file.append, b"1234567") == 0
    assert left == {b"abcd123", b"abcd12345"}


def test_a_full_disk_says_so_until_it_is_healed(where):
    """The bound holds for each append, and ends with heal."""
    file = where.open("log")
    where.limit_capacity(0)
    assert [code_of(file.append, b"x") for _ in range(3)] == [errno.ENOSPC] * 3
    where.heal()
    assert code_of(file.append, b"x") == 0 and content(where, "log") == b"x"


def test_the_chosen_calls_fail_and_no_others(where):
    """The n-th call of the kind, so many times, of the one path; other kinds and paths go on."""
    log, other = durable_file(where, "log", b"abc"), durable_file(where, "other", b"abc")
    where.fail_calls(DiskCall.READ, nth=2, times=2, path="log")
    assert [code_of(other.read_at, 0, 1) for _ in range(4)] == [0] * 4
    assert [code_of(log.read_at, 0, 1) for _ in range(5)] == [0, errno.EIO, errno.EIO, 0, 0]
    where.fail_calls(DiskCall.WRITE, times=None)
    calls = (
        (log.append, b"x"),
        (log.truncate, 1),
        (where.rename, "log", "new"),
        (where.remove, "other"),
        (where.make_directory, "folder"),
        (where.open, "fresh"),
    )
    assert [code_of(*call) for call in calls] == [errno.EIO] * len(calls)
    assert where.list("") == ["log", "other"] and content(where, "log").startswith(b"abc")
    assert code_of(log.sync) == code_of(log.read_at, 0, 1) == 0
    where.heal()
    assert [code_of(*call) for call in calls[:2]] == [0, 0]


def test_a_failed_append_leaves_some_beginning_of_its_bytes():
    """Over many seeds nothing, part and all of it."""
    left = set()
    for seed in range(60):
        where = disk(seed)
        file = durable_file(where, "log", b"ab")
        where.fail_calls(DiskCall.WRITE)
        assert code_of(file.append, b"cd") == errno.EIO
        left.add(content(where, "log"))
    assert left == {b"ab", b"abc", b"abcd"}


def test_after_a_failed_sync_the_data_may_be_lost_though_the_next_sync_succeeds():
    """As Linux does: still readable, counted as clean, and gone with the power; over many seeds every prefix
    of the writes is left."""
    left = set()
    for seed in range(80):
        where = disk(seed)
        file = durable_file(where, "log", b"ab")
        file.append(b"cd")
        file.append(b"ef")
        where.fail_calls(DiskCall.SYNC, path="log")
        assert code_of(file.sync) == errno.EIO
        assert code_of(file.sync) == 0
        assert content(where, "log") == b"abcdef", "the page cache still has it"
        where.power_loss()
        left.add(content(where, "log"))
    assert left == {b"ab", b"abcd", b"abcdef"}


def test_what_is_written_after_lost_data_stands_behind_a_hole():
    """A writer that goes on after a failed sync has a hole of zeros in the middle of its file."""
    left = set()
    for seed in range(40):
        where = disk(seed)
        file = durable_file(where, "log", b"ab")
        file.append(b"cd")
        where.fail_calls(DiskCall.SYNC)
        assert code_of(file.sync) == errno.EIO
        file.append(b"ef")
        file.sync()
        where.power_loss()
        left.add(content(where, "log"))
    assert left == {b"ab\0\0ef", b"abcdef"}


def test_a_truncation_below_lost_data_heals_the_file():
    """Who cuts back to what is surely durable and writes anew loses nothing."""
    for seed in range(40):
        where = disk(seed)
        file = durable_file(where, "log", b"ab")
        file.append(b"cd")
        where.fail_calls(DiskCall.SYNC)
        assert code_of(file.sync) == errno.EIO
        file.truncate(2)
        file.append(b"XY")
        file.sync()
        where.power_loss()
        assert content(where, "log") == b"abXY"


def test_a_failed_sync_of_a_directory_can_be_repeated(where):
    """The steps of names wait: the next sync makes them durable."""
    file = where.open("log")
    file.append(b"x")
    file.sync()
    where.fail_calls(DiskCall.SYNC, path="")
    assert code_of(where.sync_directory, "") == errno.EIO
    where.sync_directory("")
    where.power_loss()
    assert content(where, "log") == b"x"


def test_a_sync_that_lies_makes_nothing_durable():
    """It returns; what it promised may be lost. As many syncs as were told lie, and an honest one makes up
    for them."""
    left = set()
    for seed in range(40):
        where = disk(seed)
        file = durable_file(where, "log", b"ab")
        where.lie_about_syncs()
        file.append(b"cd")
        file.sync()
        where.power_loss()
        left.add(content(where, "log"))
        where.lie_about_syncs(1)
        file = where.open("log")
        file.append(b"X")
        file.sync()
        file.sync()
        where.power_loss()
        assert content(where, "log").endswith(b"X")
    assert left == {b"ab", b"abc", b"abcd"}


def test_a_sync_of_a_directory_lies_as_well():
    """A name that was promised may be lost."""
    left = set()
    for seed in range(40):
        where = disk(seed)
        where.lie_about_syncs()
        where.open("log").sync()
        where.sync_directory("")
        where.power_loss()
        left.add(where.exists("log"))
    assert left == {True, False}


def test_slow_syncs_cost_more():
    """Only syncs, of files and directories, only until healed."""
    where = disk(write_us=3, fsync_us=1_000)
    file = where.open("log")
    where.take_cost()
    where.slow_syncs(500)
    file.sync()
    where.sync_directory("")
    file.append(b"x")
    assert where.take_cost() == (2 * 1_500 + 3) * MICROSECOND
    where.heal()
    file.sync()
    assert where.take_cost() == 1_000 * MICROSECOND


def test_a_rotten_bit_is_one_durable_bit_that_turned_over():
    """It is seen at once and after a power loss, in the one place that is told; over many seeds every
    place."""
    places = set()
    for seed in range(400):
        where = disk(seed)
        durable_file(where, "a", b"\0\0")
        durable_file(where, "empty")
        file = durable_file(where, "b", b"\0")
        file.append(b"\0\0")
        rotten = where.rot_bit()
        places.add((rotten.path, rotten.position, rotten.bit))
        expected = {"a": bytearray(2), "b": bytearray(3)}
        expected[rotten.path][rotten.position] ^= 1 << rotten.bit
        for path in ("a", "b"):
            assert content(where, path) == expected[path]
        where.power_loss()
        assert content(where, rotten.path)[rotten.position] == 1 << rotten.bit
    assert places == {(path, at, bit) for path, at in (("a", 0), ("a", 1), ("b", 0)) for bit in range(8)}


def test_rot_of_one_path(where):
    """A chosen file rots, and what is not durable or not there does not."""
    durable_file(where, "a", b"a")
    file = durable_file(where, "b", b"bb")
    assert where.rot_bit("b").path == "b" and content(where, "a") == b"a"
    file.truncate(0)
    assert where.rot_bit("b") is None and where.rot_bit("none") is None
    assert disk().rot_bit() is None


def test_faults_are_keyed_by_the_seed():
    """The same seed rots the same bits, another one others."""

    def rots(seed: int) -> list[object]:
        where = disk(seed)
        durable_file(where, "a", bytes(1_000))
        return [where.rot_bit() for _ in range(3)]

    assert rots(1) == rots(1) != rots(2)


def test_a_fault_outlives_the_process_but_not_the_healing(where):
    """A crash mends no disk."""
    file = durable_file(where, "log", b"x")
    where.fail_calls(DiskCall.READ, times=None)
    where.crash()
    assert code_of(file.read_at, 0, 1) == errno.EIO
    where.power_loss()
    assert code_of(where.open("log").read_at, 0, 1) == errno.EIO
    where.heal()
    assert code_of(where.open("log").read_at, 0, 1) == 0


STEPS = st.one_of(
    st.tuples(st.just("append"), st.binary(min_size=1, max_size=4)),
    st.tuples(st.just("truncate"), st.integers(0, 12)),
    st.tuples(st.just("sync"), st.none()),
    st.tuples(st.just("failed sync"), st.none()),
)


@SEARCH
@given(steps=st.lists(STEPS, max_size=12), seed=st.integers(0, 1_000))
def test_whatever_fails_the_part_synced_before_is_kept(steps, seed):
    """What an honest sync promised, before the first failed one and not truncated since, survives; and what
    survives survives again."""
    where = disk(seed)
    file = durable_file(where, "log")
    now, promised, failed = b"", b"", False
    for kind, argument in steps:
        if kind == "append":
            file.append(argument)
            now += argument
        elif kind == "truncate":
            file.truncate(argument)
            now, promised = now[:argument], promised[:argument]
        elif kind == "sync":
            file.sync()
            promised = promised if failed else now
        else:
            where.fail_calls(DiskCall.SYNC)
            assert code_of(file.sync) == errno.EIO
            failed = True
        assert content(where, "log") == now
    where.power_loss()
    after = content(where, "log")
    assert after.startswith(promised)
    where.power_loss()
    assert content(where, "log") == after


def test_another_thread_sees_half_an_append_and_all_of_it_before_it_returns(where):
    """Rule: a file grows while it is written; who looks then sees some of the bytes, once, and the append is
    whole all the same."""
    file = where.open("f")
    file.append(b"ab")
    seen = []
    where.look_inside_append(lambda size: seen.append((size, bytes(file.read_at(0, 99)))))
    assert file.append(b"cdef") == 2
    assert file.append(b"g") == 6
    assert seen == [(2, b"abcd"), (4, b"abcdef")]
    assert file.read_at(0, 99) == b"abcdefg"


def test_a_fault_inside_a_step_meets_its_calls_and_no_others():
    """An error, a death and a power loss each wait for the n-th call that the step consists of."""
    assert {*STEPS_OF_FILES} == {*INSIDE}
    where = disk()
    log, index = durable_file(where, "0.log", b"abcd"), durable_file(where, "0.index", b"abcd")
    where.fail_calls(None, nth=2, step="truncation")
    log.append(b"ef")
    index.truncate(2)
    assert code_of(log.truncate, 2) == errno.EIO and content(where, "0.log") == b"abcdef"
    where.fail_calls(None, step="swap")
    assert code_of(where.open("0.log.cleaned").sync) == errno.EIO
    assert code_of(where.rename, "0.log.cleaned", "0.log.swap") == 0


@pytest.mark.parametrize("kills", [True, False])
def test_a_process_that_dies_in_a_call_loses_nothing(kills):
    """The call is done and the next one is not; where the power fails the content may be gone."""
    left = set()
    for seed in range(20):
        where = disk(seed)
        where.arm_power_loss(2, "roll", kills=kills)
        where.open("other").append(b"x")
        file = where.open("0.index")
        with pytest.raises(PowerLoss):
            file.append(b"abc")
        assert where.power_loss().steps_lost == 0 or not kills
        left.add((where.exists("other"), content(where, "0.index") if where.exists("0.index") else b""))
        where.open("other")
    assert left == {(True, b"abc")} if kills else len(left) > 2


def test_a_length_may_be_kept_without_its_data():
    """Each append that was not synced is there, or zeros in its place, or gone with all after it; a write
    before a truncation that is lost is cut as before."""
    left = set()
    for seed in range(300):
        where = disk(seed, keeps_lengths=True, torn_write=False)
        file = durable_file(where, "log", b"ab")
        file.append(b"cd")
        file.append(b"ef")
        file.truncate(3)
        file.append(b"gh")
        where.power_loss()
        left.add(content(where, "log"))
    assert left == {b"ab", b"abcd", b"ab\0\0", b"abcdef", b"abcd\0\0", b"ab\0\0ef", b"ab\0\0\0\0"} | {
        b"abc",
        b"abcgh",
        b"abc\0\0",
    }
