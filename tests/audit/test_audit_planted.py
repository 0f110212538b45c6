"""Each kind of damage, planted into healthy replicas, is named with its offset, file and byte; what only
looks like damage is not."""

import shutil
import zlib
from pathlib import Path
from struct import pack

import attrs
import pytest
from audit_lab import SMALL, Stamped, T, audit, flip, only, place_of, plain, position_of, replica, segment

from fencepost.impl.log.batch.record_batch import Record, encode_batch
from fencepost.impl.log.checkpoint.log_checkpoints import write_offsets
from fencepost.impl.log.cleaner import Cleaner
from fencepost.impl.log.layout import HIGH_WATERMARKS, RECOVERY_POINTS
from fencepost.impl.log.producer.snapshot_files import write_snapshot
from fencepost.impl.runtime.real_file_system import RealFiles

COMPACT = attrs.evolve(SMALL, compact=True, delete=False)


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Two replicas of twenty records each, all committed."""
    return replica(tmp_path, "a", plain()), replica(tmp_path, "b", plain())


def at(path: Path, position: int) -> str:
    return f"{path} at byte {position}"


def test_replicas_that_are_the_same_have_no_finding(pair, tmp_path):
    """Rule: a finding means something."""
    result = audit(tmp_path)
    assert result.verdict.decision == "ok" and not result.findings.notes
    assert [(one.broker, one.end_offset, one.records) for one in result.replicas] == [
        ("a", 20, 20),
        ("b", 20, 20),
    ]


# ---- replicas against each other


def other(count: int, *differing: int, epoch: int = 0) -> list[bytes]:
    """The batches of plain() with another record at some offsets. epoch: of these."""
    stamped = Stamped()
    return [
        stamped.batch(
            b"other" if number in differing else b"v%d" % number, epoch=epoch if number in differing else 0
        )
        for number in range(count)
    ]


def test_divergence_below_both_high_watermarks(tmp_path):
    """Rule LOG-MATCH: named from its first offset to its last, with both files and bytes."""
    a, b = replica(tmp_path, "a", plain()), replica(tmp_path, "b", other(20, 7, 8, 9))
    finding = only(audit(tmp_path))
    assert (finding.anomaly, finding.offset, finding.topic, finding.partition) == (
        "log_divergence",
        7,
        "t",
        0,
    )
    assert at(*place_of(a, 7)) in finding.expected and at(*place_of(b, 7)) in finding.seen
    assert "another value" in finding.seen and "3 records up to offset 9" in finding.seen
    assert "below the high watermark 20 of both" in finding.expected


def test_divergence_above_the_lower_high_watermark_is_milder(tmp_path):
    """Rule: what is not committed on both is to be cut from one, unless one epoch wrote both."""
    replica(tmp_path, "a", plain(), high_watermark=15)
    replica(tmp_path, "b", other(20, *range(15, 20), epoch=1), high_watermark=20)
    finding = only(audit(tmp_path))
    assert (finding.anomaly, finding.offset) == ("uncommitted_divergence", 15)
    assert (
        "epoch 0" in finding.expected
        and "epoch 1" in finding.seen
        and "leader epoch and value" in finding.seen
    )


def test_one_epoch_holds_one_record_at_an_offset_committed_or_not(tmp_path):
    """Rule LOG-MATCH: epoch and offset name one record, whatever the high watermarks are."""
    replica(tmp_path, "a", plain(), high_watermark=0)
    replica(tmp_path, "b", other(20, 19), high_watermark=0)
    assert (only(audit(tmp_path)).anomaly, only(audit(tmp_path)).offset) == ("log_divergence", 19)


def test_the_odd_one_of_three_is_named(tmp_path):
    """Rule: one finding, against the minority."""
    replica(tmp_path, "a", plain())
    b = replica(tmp_path, "b", other(20, 4))
    replica(tmp_path, "c", plain())
    finding = only(audit(tmp_path))
    assert at(*place_of(b, 4)) in finding.seen and "(b)" in finding.seen


def test_other_batches_with_one_other_record(tmp_path):
    """Rule: records are compared where batches are not, and only the record that differs is told."""
    together, single = Stamped(), Stamped()
    replica(tmp_path, "a", [together.batch(b"v0", b"v1", b"v2"), together.batch(b"v3", b"v4", codec="zstd")])
    b = replica(
        tmp_path, "b", [single.batch(b"x" if number == 1 else b"v%d" % number) for number in range(5)]
    )
    finding = only(audit(tmp_path))
    assert (finding.anomaly, finding.offset) == ("log_divergence", 1)
    assert "another value: epoch 0" in finding.seen and at(*place_of(b, 1)) in finding.seen


def test_a_replica_that_ends_or_begins_elsewhere_does_not_differ(tmp_path):
    """Rule: copies are taken at different times, and each broker deletes at its own."""
    replica(tmp_path, "a", plain(12))
    replica(tmp_path, "b", plain(20), then=lambda log: log.remove_oldest(2))
    assert audit(tmp_path).verdict.decision == "ok"


def test_a_record_that_one_replica_lacks(tmp_path):
    """Rule LOG-MATCH: a hole in one log where the other has committed records is a divergence, told once."""
    holes = [data for number, data in enumerate(plain()) if number not in (5, 6)]
    replica(tmp_path, "a", plain())
    b = replica(tmp_path, "b", holes, options=COMPACT)
    (b / "cleaner-offset-checkpoint").unlink()
    finding = only(audit(tmp_path))
    assert (finding.anomaly, finding.offset) == ("log_divergence", 5)
    assert (
        f"none before {at(*place_of(b, 7))} (b), which continues at offset 7; 2 records up to offset 6"
        in finding.seen
    )


def test_a_hole_that_all_have_is_a_gap_unless_compaction_explains_it(tmp_path):
    """Rule: only compaction leaves gaps; the cleaner's checkpoint, a sparse batch or the caller says that it
    was there."""
    holes = [data for number, data in enumerate(plain()) if number not in (5, 6)]
    a = replica(tmp_path, "a", holes, options=COMPACT)
    assert audit(tmp_path).verdict.decision == "ok"
    (a / "cleaner-offset-checkpoint").unlink()
    finding = only(audit(tmp_path))
    assert (finding.anomaly, finding.offset) == ("log_gap", 5) and at(*place_of(a, 7)) in finding.seen
    assert audit(tmp_path, compacted=("t*",)).verdict.decision == "ok"
    sparse = encode_batch([Record(20, 5, None, b"x")], base_offset=20, leader_epoch=0, last_offset_delta=3)
    shutil.rmtree(a)
    a = replica(tmp_path, "a", [*holes, sparse], options=COMPACT)
    (a / "cleaner-offset-checkpoint").unlink()
    assert audit(tmp_path).verdict.decision == "ok"


def test_compaction_that_took_the_latest_of_a_key(tmp_path):
    """Rule KIP-58: with --deep, a record that is gone from one replica must have a later one of its key, or
    be a tombstone."""
    stamped = Stamped()
    pairs = [(b"a", b"1"), (b"b", b"1"), (b"a", b"2"), (b"c", b"1"), (b"d", None), (b"e", b"1")]
    batches = [stamped.batch(value, keys=[key]) for key, value in pairs]
    replica(tmp_path, "a", batches, options=COMPACT)
    b = replica(tmp_path, "b", [batches[2], batches[3], batches[5]], options=COMPACT)
    assert audit(tmp_path).verdict.decision == "ok"
    finding = only(audit(tmp_path, deep=True))
    assert (finding.anomaly, finding.offset) == ("compaction_lost_record", 1)
    assert "key 'b'" in finding.expected and finding.seen == "neither it nor a later one at b"
    shutil.rmtree(b)
    replica(tmp_path, "b", [batches[1], batches[2], batches[3], batches[5]], options=COMPACT)
    assert audit(tmp_path, deep=True).verdict.decision == "ok"


# ---- a log against itself


def test_leader_epochs_that_go_back(tmp_path):
    """Rule EPOCH-MONO: named where they go back; the epoch checkpoint contradicts the same batches."""
    a = replica(tmp_path, "a", plain(epoch_of=lambda number: 3 if number < 10 else 2))
    found = audit(tmp_path).findings.found
    assert [(one.anomaly, one.offset) for one in found] == [
        ("epoch_regressed_in_log", 10),
        ("epoch_checkpoint_contradicts_log", 10),
    ]
    assert at(*place_of(a, 10)) in found[0].seen and found[0].seen.startswith("2 in ")


def test_a_producers_batch_that_stands_twice(tmp_path):
    """Rule IDEMP: named with both places."""
    stamped, producer = Stamped(), {"producer_id": 9, "producer_epoch": 0}
    batches = [stamped.batch(b"v", base_sequence=number, **producer) for number in (0, 1, 2, 1, 3)]
    a = replica(tmp_path, "a", batches)
    finding = only(audit(tmp_path))
    assert (finding.anomaly, finding.offset) == ("duplicate", 3)
    assert "sequence 1 to 1 of producer 9 once, at offset 1" in finding.expected
    assert at(*place_of(a, 1)) in finding.expected and at(*place_of(a, 3)) in finding.seen


@pytest.mark.parametrize(
    ("before", "after"), [((0, 100), (0, 3)), ((2, 0), (1, 1))], ids=["sequence", "epoch"]
)
def test_a_producer_that_goes_back(tmp_path, before, after):
    """Rule IDEMP: neither its epoch nor its sequence numbers go back."""
    stamped = Stamped()
    batches = [
        stamped.batch(b"v", producer_id=9, producer_epoch=epoch, base_sequence=sequence)
        for epoch, sequence in (before, after)
    ]
    a = replica(tmp_path, "a", batches)
    finding = next(one for one in audit(tmp_path).findings.found if one.anomaly == "sequence_regressed")
    assert finding.offset == 1 and at(*place_of(a, 1)) in finding.seen


def test_sequence_numbers_wrap_and_jump(tmp_path):
    """Rule: they wrap at 2^31, a forgotten producer goes on anywhere above, a new epoch begins anew."""
    stamped = Stamped()
    steps = [(0, 5), (0, 2**31 - 1), (0, 0), (0, 1), (1, 0)]
    batches = [
        stamped.batch(b"v", producer_id=9, producer_epoch=epoch, base_sequence=sequence)
        for epoch, sequence in [(0, 2**31 - 2), *steps[1:]]
    ]
    replica(tmp_path, "a", batches)
    assert audit(tmp_path).verdict.decision == "ok"


def test_segments_that_overlap(pair, tmp_path):
    """Rule LOG-MATCH: offsets ascend over segments too."""
    first = segment(pair[0])
    with open(first, "ab") as file:
        file.write(first.read_bytes()[: position_of(first, 1)])
    finding = only(audit(tmp_path))
    assert (
        finding.anomaly == "offset_regressed_in_log" and "0 in" in finding.seen and str(first) in finding.seen
    )


@pytest.mark.parametrize("byte", [5, 6, 7])
def test_a_flipped_bit_in_a_base_offset(pair, tmp_path, byte):
    """Rule: it is not under the checksum; the one batch is blamed, not those after it, and nothing else is
    lost."""
    path, position = place_of(pair[0], 9)
    flip(path, position + byte, 0x40)
    finding = only(audit(tmp_path))
    assert finding.anomaly == "offset_regressed_in_log" and at(path, position) in finding.seen


# ---- bytes


def test_a_flipped_bit_under_the_checksum(pair, tmp_path):
    """Rule: named with file and byte; the batch is unreadable there, which is not a divergence."""
    path, position = place_of(pair[1], 6)
    flip(path, position + 65)
    finding = only(audit(tmp_path))
    assert (finding.anomaly, finding.offset) == ("corrupt_batch", 6)
    assert at(path, position) in finding.seen and "CRC-32C" in finding.expected


def test_a_segment_that_is_cut_off(pair, tmp_path):
    """Rule: how far it is good; the later segments are still compared."""
    path = segment(pair[1], 1)
    data = path.read_bytes()
    path.write_bytes(data[:-5])
    later = segment(pair[1], 2)
    flip(later, position_of(later, int(later.stem)) + 15)  # its leader epoch
    found = audit(tmp_path).findings.found
    assert "corrupt_batch" in {one.anomaly for one in found} and "log_divergence" in {
        one.anomaly for one in found
    }
    torn = next(one for one in found if one.anomaly == "corrupt_batch")
    assert f"good up to offset {torn.offset}" in torn.seen and str(path) in torn.seen


def test_an_unfinished_tail_of_a_broker_that_died_is_a_note(tmp_path):
    """Rule: a broker cuts it at its start, and nothing there is committed; below the high watermark, or after
    a clean stop, it is damage."""
    for name, watermark, clean in (("died", 15, False), ("damaged", 20, False), ("clean", 15, True)):
        root = tmp_path / name
        root.mkdir()
        a = replica(root, "a", plain(), high_watermark=watermark, clean=clean)
        path = segment(a, -1)
        path.write_bytes(path.read_bytes()[:-5])
        result = audit(root)
        assert ("corrupt_batch" in {one.anomaly for one in result.findings.found}) == (name != "died")
        if name == "died":
            assert result.verdict.decision == "ok" and "unfinished" in result.findings.notes[0]


def test_messages_of_old_formats_are_left_out_and_the_rest_is_read(tmp_path):
    """Rule: format 0 and 1 are told, no crash, and batches behind them in the same segment count; a magic
    that only looks old is damage."""
    rest = pack(">bb", 1, 0) + pack(">qii", 5, -1, 1) + b"x"
    message = pack(">I", zlib.crc32(rest)) + rest
    old = pack(">qi", 0, len(message)) + message + pack(">qi", 1, len(message)) + message
    a = replica(tmp_path, "a", plain())
    replica(tmp_path, "b", plain())
    path = segment(a)
    data = path.read_bytes()
    path.write_bytes(old + data[position_of(path, 2) :])
    result = audit(tmp_path)
    assert result.verdict.decision == "unknown" and not result.findings.found
    (left_out,) = result.findings.unreadable
    assert "2 messages of format 1" in left_out.reason and left_out.path == path
    path.write_bytes(data)
    flip(path, 16, 3)
    assert [one.anomaly for one in audit(tmp_path).findings.found] == ["corrupt_batch"]


def test_records_that_make_no_sense_under_a_good_checksum(tmp_path):
    """Rule: found where records are decoded: with --deep, or where replicas differ."""
    replica(tmp_path, "a", [*plain(3), _nonsense(3)])
    assert audit(tmp_path).verdict.decision == "ok"
    assert only(audit(tmp_path, deep=True)).anomaly == "corrupt_batch"
    replica(tmp_path, "b", plain(4))
    assert only(audit(tmp_path)).anomaly == "corrupt_batch"


def _nonsense(offset: int) -> bytes:
    from crc32c import crc32c

    data = bytearray(encode_batch([Record(offset, 5, None, b"value")], base_offset=offset, leader_epoch=0))
    data[61] = 0x7F
    data[17:21] = pack(">I", crc32c(bytes(data[21:])))
    return bytes(data)


# ---- what lies beside the batches


def test_an_epoch_checkpoint_that_contradicts_the_batches(tmp_path):
    """Rule KIP-101: a wrong start, a missing file, an entry above the end of a log that was closed whole."""
    a = replica(tmp_path, "a", plain(epoch_of=lambda number: number // 10))
    path = a / "t-0" / "leader-epoch-checkpoint"
    assert path.read_text() == "0\n2\n0 0\n1 10\n"
    path.write_text("0\n2\n0 0\n1 8\n")
    finding = only(audit(tmp_path))
    assert (finding.anomaly, finding.offset) == ("epoch_checkpoint_contradicts_log", 8)
    assert finding.seen == f"epoch 1 from offset 8 on in {path}" and at(*place_of(a, 8)) in finding.expected
    path.write_text("0\n3\n0 0\n1 10\n2 25\n")
    assert only(audit(tmp_path)).offset == 25
    path.write_text("0\n2\n1 0\n0 10\n")
    assert only(audit(tmp_path)).anomaly == "checkpoint_damaged"
    path.unlink()
    assert [one.offset for one in audit(tmp_path).findings.found] == [0, 10]


def test_an_epoch_checkpoint_ahead_of_a_broker_that_died(tmp_path):
    """Rule: an entry above the lost tail, and a first one above a log start not yet checkpointed, are what a
    broker puts right when it starts."""
    a = replica(tmp_path, "a", plain(epoch_of=lambda number: number // 10), clean=False)
    path = a / "t-0" / "leader-epoch-checkpoint"
    path.write_text("0\n3\n0 4\n1 10\n2 25\n")
    result = audit(tmp_path)
    assert result.verdict.decision == "ok" and len(result.findings.notes) == 2


@pytest.mark.parametrize(
    ("kind", "data", "seen"),
    [
        (".index", pack(">ii", 1, 7), "none that begins there"),
        (".index", pack(">iiii", 2, 90, 1, 80), "1 at 80"),
        (".timeindex", pack(">qi", 5, 1), "5"),
        (".timeindex", b"\1" * 5, "5 bytes at the end"),
    ],
)
def test_an_index_that_leads_astray(pair, tmp_path, kind, data, seen):
    """Rule: as `log dump --verify-index` follows it; named with the index's file and byte."""
    path = segment(pair[0], 0, kind)
    path.write_bytes(data)
    finding = next(iter(audit(tmp_path).findings.found))
    assert finding.anomaly == "index_damaged"
    assert finding.seen.startswith(seen) and f"in {path} at byte " in finding.seen


def test_an_index_that_is_missing(pair, tmp_path):
    """Rule: told, except of the segment that a broker was writing when it died."""
    path = segment(pair[0], 0, ".timeindex")
    path.unlink()
    assert only(audit(tmp_path)).expected == f"an index {path}"
    shutil.rmtree(pair[0])
    a = replica(tmp_path, "a", plain(), clean=False)
    segment(a, -1).with_suffix(".index").unlink(missing_ok=True)
    assert audit(tmp_path).verdict.decision == "ok"


def test_a_segment_that_is_gone_and_left_its_indexes(pair, tmp_path):
    """Rule: retention takes the indexes too; without them a log that begins later would look as it should."""
    path = segment(pair[0])
    path.unlink()
    found = audit(tmp_path).findings.found
    assert {(one.anomaly, one.expected) for one in found} == {("index_damaged", f"a segment {path}")}


def test_a_producer_snapshot_that_is_damaged_or_lies(tmp_path):
    """Rule KIP-98: its checksum, and what the log says of the producer below its offset."""
    stamped = Stamped()
    batches = [
        stamped.batch(b"v", producer_id=9, producer_epoch=0, base_sequence=number) for number in range(20)
    ]
    a = replica(tmp_path, "a", batches)
    assert audit(tmp_path).verdict.decision == "ok"
    path = segment(a, 0, ".snapshot")
    good = path.read_bytes()
    flip(path, 20)
    finding = only(audit(tmp_path))
    assert finding.anomaly == "producer_snapshot_damaged" and f"in {path} at byte 2" in finding.seen
    path.write_bytes(good)
    files = RealFiles(tmp_path / "other")
    (tmp_path / "other").mkdir()
    from fencepost.impl.log.segmented_log import SegmentedLog

    log = SegmentedLog.open(files, "t-0", options=SMALL)
    for data in batches[:2]:
        log.append_as_follower(data)
    write_snapshot(files, "t-0", int(path.stem), log.producers)
    lie = (tmp_path / "other" / "t-0" / path.name).read_bytes()
    shutil.rmtree(tmp_path / "other")
    path.write_bytes(lie)
    finding = only(audit(tmp_path))
    assert (finding.anomaly, finding.offset) == ("producer_snapshot_damaged", int(path.stem))
    assert "sequence 1, " in finding.seen and str(path) in finding.seen


@pytest.mark.parametrize("name", [HIGH_WATERMARKS, RECOVERY_POINTS, "log-start-offset-checkpoint"])
def test_a_checkpoint_beyond_the_log(pair, tmp_path, name):
    """Rule: high watermark, log start and recovery point lie within the log."""
    write_offsets(RealFiles(pair[0]), name, {T: 21})
    finding = next(one for one in audit(tmp_path).findings.found if one.anomaly == "checkpoint_outside_log")
    assert "from 0 to 20" in finding.expected or "21" in finding.seen
    assert str(pair[0]) in finding.expected


def test_a_replica_that_is_gone(pair, tmp_path):
    """Rule: the checkpoint still knows it."""
    shutil.rmtree(pair[1] / "t-0")
    finding = only(audit(tmp_path))
    assert finding.anomaly == "replica_missing" and str(pair[1] / "t-0") in finding.expected
    assert finding.seen == "no such directory at b"
    (pair[1] / "t-0.0123456789abcdef-delete").mkdir()
    assert not audit(tmp_path).findings.found


def test_a_replica_of_an_earlier_topic_of_the_name_is_not_compared(tmp_path):
    """Rule KIP-516: topics of one name may be two topics."""
    for name, values in (("a", plain()), ("b", plain()), ("c", other(20, 3))):
        path = replica(tmp_path, name, values)
        (path / "t-0" / "partition.metadata").write_text(
            f"version: 0\ntopic_id: {'x' if name < 'c' else 'y'}\n"
        )
    result = audit(tmp_path)
    assert result.verdict.decision == "ok" and "another topic of the same name" in result.findings.notes[0]


def test_findings_of_one_kind_are_bounded_and_counted(tmp_path):
    """Rule: a broken disk makes thousands; the first ones tell what is wrong, the rest is counted."""
    a = replica(tmp_path, "a", plain(50))
    for offset in range(50):
        path, position = place_of(a, offset)
        flip(path, position + 62)
    findings = audit(tmp_path).findings
    assert (
        len([one for one in findings.found if one.anomaly == "corrupt_batch"]),
        findings.more["corrupt_batch"],
    ) == (20, 30)


def test_real_compaction_of_one_replica_only(tmp_path):
    """Rule: what the cleaner of one broker took is no divergence, and --deep finds nothing lost."""
    stamped = Stamped()
    batches = [stamped.batch(b"v%d" % number, keys=[b"k%d" % (number % 3)]) for number in range(30)]
    replica(tmp_path, "a", batches, options=COMPACT)
    replica(
        tmp_path,
        "b",
        batches,
        options=COMPACT,
        then=lambda log: Cleaner(log).clean(first_dirty_offset=0, high_watermark=30, now_ms=0),
    )
    assert audit(tmp_path).unjudged == 30 - audit(tmp_path).replicas[1].records
    result = audit(tmp_path, deep=True)
    assert result.verdict.decision == "ok" and result.replicas[1].records < result.replicas[0].records


def test_records_that_a_later_epoch_will_cut_are_told(tmp_path):
    """Rule (KIP-101): what a replica has of an older epoch beyond the start of a later one, in another
    replica's checkpoint, goes; how much of it was committed is said."""
    replica(tmp_path, "a", plain(76), high_watermark=11)
    b = replica(tmp_path, "b", plain(11), high_watermark=11)
    checkpoint = b / "t-0" / "leader-epoch-checkpoint"
    assert not audit(tmp_path).findings.notes
    checkpoint.write_text("0\n2\n0 0\n1 11\n")
    result = audit(tmp_path)
    assert result.verdict.decision == "ok"
    assert result.findings.notes == [
        f"a: 65 records of epoch 0 beyond offset 11 will be cut: epoch 1 begins there in {checkpoint}"
    ]
    write_offsets(RealFiles(tmp_path / "a"), HIGH_WATERMARKS, {T: 14})
    (note,) = audit(tmp_path).findings.notes
    assert note.endswith("; 3 of them below its high watermark 14")
    checkpoint.write_text("0\n2\n0 0\n1 80\n")
    assert not any("will be cut" in note for note in audit(tmp_path).findings.notes)
