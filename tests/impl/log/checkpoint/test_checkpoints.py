"""Checkpoint files are replaced whole; a bad one is an empty one."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.impl.log.checkpoint.checkpoint_file import format_lines, parse_lines, replace_file
from fencepost.impl.log.checkpoint.log_checkpoints import read_offsets, write_offsets
from fencepost.impl.log.layout import HIGH_WATERMARKS
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.sim.disk import Disk, PowerLoss
from fencepost.sim.randomness import Randomness

A, B = TopicPartition("a-b", 0), TopicPartition("t", 11)


def disk_of(seed: int = 1) -> Disk:
    return Disk(node=1, randomness=Randomness(seed))


def test_the_format_is_kafkas(disk: Disk) -> None:
    """Rule: version, number of entries, then one entry per line, sorted."""
    write_offsets(disk, HIGH_WATERMARKS, {B: 7, A: 3})
    assert disk.open(HIGH_WATERMARKS).read_at(0, 1000) == b"0\n2\na-b 0 3\nt 11 7\n"
    assert read_offsets(disk, HIGH_WATERMARKS) == {A: 3, B: 7}


@settings(max_examples=150)
@given(st.integers(1, 12), st.integers(0, 1_000_000))
def test_power_loss_at_any_file_call_leaves_the_old_file_or_the_new_one(call: int, seed: int) -> None:
    """Rule: a checkpoint is never a mixture, and once replacing it returned the old one is gone."""
    disk = disk_of(seed)
    write_offsets(disk, HIGH_WATERMARKS, {A: 1})
    disk.arm_power_loss(call)
    done = 1
    try:
        for high_watermark in (2, 3):
            write_offsets(disk, HIGH_WATERMARKS, {A: high_watermark, B: high_watermark})
            done = high_watermark
        disk.disarm_power_loss()
    except PowerLoss:
        pass
    disk.power_loss()
    read = read_offsets(disk, HIGH_WATERMARKS)
    assert read in ([{A: 1}] if done == 1 else []) + [{A: done, B: done}, {A: done + 1, B: done + 1}]
    write_offsets(disk, HIGH_WATERMARKS, {A: 9})  # a temporary file that was left behind does no harm
    assert read_offsets(disk, HIGH_WATERMARKS) == {A: 9}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"0",
        b"1\n1\nt 0 5\n",
        b"0\n2\nt 0 5\n",
        b"0\n1\nt 0\n",
        b"0\n1\nt zero 5\n",
        b"0\n1\nt 0 5 6\n",
        b"\xff\xfe\n1\n",
    ],
)
def test_a_checkpoint_that_cannot_be_read_is_an_empty_one(content: bytes, disk: Disk) -> None:
    """Rule: a checkpoint is a hint: foreign, cut or garbled content counts as none, and stops no broker from
    starting."""
    replace_file(disk, "", HIGH_WATERMARKS, content)
    assert read_offsets(disk, HIGH_WATERMARKS) == {}


def test_words_may_be_any_white_space_apart() -> None:
    """Rule: a broker reads what a dump of the file finds nothing wrong with (Kafka's pattern is `\\s+`)."""
    assert parse_lines(b"0\n1\nt  0\t5\n", list) == [["t", "0", "5"]]


@given(st.lists(st.lists(st.integers(-5, 99).map(str), min_size=1, max_size=3), max_size=4))
def test_lines_come_back_as_they_were_written(entries: list) -> None:
    """Rule: formatting and parsing are inverse."""
    assert parse_lines(format_lines([" ".join(entry) for entry in entries]), list) == entries
