"""Files about producers against the log that they are derived from: transaction indexes, and snapshots."""

from collections.abc import Sequence
from pathlib import Path
from struct import pack, unpack

import pytest
from attrs import astuple, evolve
from audit_lab import SMALL, Stamped, audit, only, replica, segment
from crc32c import crc32c

from fencepost.cli import run
from fencepost.impl.log.batch.control_records import EndTransaction, end_transaction_batch
from fencepost.impl.log.log_options import LogOptions
from fencepost.impl.log.producer.snapshot import ProducerEntry, snapshot_entries

ENTRY = ">hqqqq"
FIELDS = ("version", "producer", "first", "last", "stable")
WIDE = LogOptions(segment_bytes=100_000)


class Leader(Stamped):
    """Appends transactions of several producers."""

    def of(self, producer: int, *values: bytes) -> bytes:
        """Records in a transaction."""
        return self.batch(
            *values,
            producer_id=producer,
            producer_epoch=0,
            base_sequence=self.next_offset,
            transactional=True,
        )

    def end(self, producer: int, *, commit: bool = False) -> bytes:
        """A marker."""
        at, self.next_offset = self.next_offset, self.next_offset + 1
        return end_transaction_batch(
            EndTransaction(commit=commit, coordinator_epoch=0), base_offset=at, leader_epoch=0,
            producer_id=producer, producer_epoch=0, timestamp_ms=5,
        )  # fmt: skip


def transactions() -> list[bytes]:
    """Producer 7 aborts [1, 4], while 8 is open from 2 on; it commits at 5; 9 aborts [6, 7]."""
    leader = Leader()
    return [
        leader.batch(b"plain"), leader.of(7, b"a"), leader.of(8, b"b"), leader.of(7, b"c"), leader.end(7),
        leader.end(8, commit=True), leader.of(9, b"d"), leader.end(9), leader.batch(b"last"),
    ]  # fmt: skip


def entries_of(path: Path) -> list[list[int]]:
    """What an index holds."""
    data = path.read_bytes()
    return [list(unpack(ENTRY, data[at : at + 34])) for at in range(0, len(data), 34)]


def write(path: Path, entries: Sequence[Sequence[int]]) -> None:
    """Write an index."""
    path.write_bytes(b"".join(pack(ENTRY, *entry) for entry in entries))


@pytest.fixture
def broker(tmp_path):
    """A broker's directory with these transactions in one segment."""
    return replica(tmp_path, "1", transactions(), options=WIDE)


def test_what_a_broker_wrote_is_right(broker, tmp_path):
    """Rule: nothing is found in it, in one segment or in several."""
    assert entries_of(segment(broker, kind=".txnindex")) == [[0, 7, 1, 4, 2], [0, 9, 6, 7, 8]]
    replica(tmp_path, "2", transactions(), options=SMALL)
    assert not audit(tmp_path).findings.count


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("by", [-1, 1])
def test_each_field_of_an_entry_is_compared(field, number, by, broker, tmp_path, capsys):
    """Rule: an entry that differs from the log in any field is a finding of an audit and of a dump."""
    path = segment(broker, kind=".txnindex")
    entries = entries_of(path)
    entries[number][FIELDS.index(field)] += by
    write(path, entries)
    found = audit(tmp_path).findings.found
    assert {one.anomaly for one in found} == {"index_damaged"}
    assert run(["log", "dump", str(broker / "t-0"), "--verify-index"]) == 1
    assert "WRONG" in capsys.readouterr().out


@pytest.mark.parametrize("kept", [[], [0], [1]])
def test_a_transaction_that_lacks_is_named(kept, broker, tmp_path, capsys):
    """Rule: readers of committed records get what the index does not have (KAFKA-13727)."""
    path = segment(broker, kind=".txnindex")
    entries = entries_of(path)
    write(path, [entries[number] for number in kept])
    if not kept:
        path.unlink()
    result = audit(tmp_path)
    assert result.findings.count == 2 - len(kept)
    if kept == [0]:
        finding = only(result)
        assert "the aborted transaction of producer 9 from offset 6 to the marker at 7" in finding.expected
    for target in (broker / "t-0", segment(broker)):
        assert run(["log", "dump", str(target), "--verify-index"]) == 1
        assert "no entry, so that readers of committed records get its records" in capsys.readouterr().out


def test_what_began_before_the_log_is_not_compared(tmp_path):
    """Rule: where a log begins later, the first record of a transaction that was open there is not known."""
    batches = transactions()

    def cut(log) -> None:
        log.remove_oldest(1)

    options = LogOptions(segment_bytes=150)
    broker = replica(tmp_path, "1", batches, options=options, then=cut, log_start=None)
    assert segment(broker).name > "0" * 20 + ".log"
    assert not audit(tmp_path).findings.count


def test_an_unclean_end_is_not_compared(tmp_path):
    """Rule: a broker that died may not have written the last index."""
    broker = replica(tmp_path, "1", transactions(), options=WIDE, clean=False)
    path = segment(broker, kind=".txnindex")
    path.unlink()
    assert not audit(tmp_path).findings.count


def test_a_marker_without_records_may_have_an_entry_or_none(tmp_path):
    """Rule: brokers before 2.5 wrote one, later ones do not."""
    leader = Leader()
    broker = replica(tmp_path, "1", [leader.batch(b"plain"), leader.end(7)], options=WIDE)
    path = broker / "t-0" / f"{'0' * 20}.txnindex"
    path.unlink(missing_ok=True)
    assert not audit(tmp_path).findings.count
    write(path, [[0, 7, 1, 1, 2]])
    assert not audit(tmp_path).findings.count


SNAPSHOT_FIELDS = ("epoch", "sequence", "last offset", "delta", "first offset")


@pytest.mark.parametrize("field", SNAPSHOT_FIELDS)
def test_each_field_of_a_producer_snapshot_is_compared(field, tmp_path):
    """Rule: sequence, offsets, and the open transaction of a producer are those of the log below it."""
    leader = Leader()
    batches = [leader.of(7, b"a", b"b"), *(leader.batch(b"%050d" % n) for n in range(8))]
    broker = replica(tmp_path, "1", batches, options=SMALL)
    path = segment(broker, kind=".snapshot")
    assert not audit(tmp_path).findings.count
    (entry,) = snapshot_entries(path.read_bytes())
    assert isinstance(entry, ProducerEntry)
    changed = {
        "epoch": {"producer_epoch": entry.producer_epoch - 1},
        "sequence": {"last_sequence": entry.last_sequence + 1},
        "last offset": {"last_offset": entry.last_offset + 1},
        "delta": {"offset_delta": entry.offset_delta + 1},
        "first offset": {"current_first_offset": -1},
    }[field]
    assert entry.current_first_offset == 0 and entry.offset_delta == 1
    values = astuple(evolve(entry, **changed))
    body = pack(">i", 1) + pack(">qhiqiqiq", *values)
    path.write_bytes(pack(">hI", 1, crc32c(body)) + body)
    assert only(audit(tmp_path)).anomaly == "producer_snapshot_damaged"
