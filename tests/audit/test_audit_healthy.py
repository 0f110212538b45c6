"""Whatever healthy replicas look like, an audit finds nothing: other boundaries, codecs, ends, starts, and
compaction at other times."""

import tempfile
import tracemalloc
from pathlib import Path

import attrs
from audit_lab import SMALL, Stamped, audit, replica
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fencepost.impl.log.batch.control_records import EndTransaction, end_transaction_batch
from fencepost.impl.log.batch.record_batch import CODECS, encode_batch, read_header, read_records
from fencepost.impl.log.cleaner import Cleaner
from fencepost.traces.errors import EnvironmentError_

KEYS = tuple(b"k%d" % number for number in range(4))


@st.composite
def leader_logs(draw: st.DrawFn, *, keyed: bool) -> list[bytes]:
    """What a leader wrote: epochs go up, producers write in order, in transactions or not; markers where they
    end."""
    stamped, epoch, sequences, batches = Stamped(), 0, dict.fromkeys((1, 2, 3), 0), []
    for _ in range(draw(st.integers(1, 25))):
        epoch += draw(st.sampled_from((0, 0, 0, 1, 3)))
        count = draw(st.integers(1, 3))
        keys = [draw(st.sampled_from(KEYS)) for _ in range(count)] if keyed else None
        values = [
            None if keyed and draw(st.integers(0, 5)) == 0 else draw(st.binary(min_size=1, max_size=40))
            for _ in range(count)
        ]
        producer = draw(st.sampled_from((None, 1, 2, 3)))
        how = {}
        if producer is not None:
            how = {
                "producer_id": producer,
                "producer_epoch": 0,
                "base_sequence": sequences[producer],
                "transactional": producer in (2, 3),
            }
            sequences[producer] += count
        batches.append(stamped.batch(*values, keys=keys, epoch=epoch, **how))
        if producer in (2, 3) and draw(st.booleans()):
            marker = EndTransaction(commit=draw(st.booleans()), coordinator_epoch=0)
            batches.append(
                end_transaction_batch(
                    marker,
                    base_offset=stamped.next_offset,
                    leader_epoch=epoch,
                    producer_id=producer,
                    producer_epoch=0,
                    timestamp_ms=5,
                )
            )
            stamped.next_offset += 1
    return batches


def rewritten(data: bytes, codec: str, *, split: bool) -> list[bytes]:
    """The same records in another codec, and each in a batch of its own if asked for."""
    header = read_header(data)
    if header.is_control:
        return [data]
    records = read_records(data, header)
    groups = [(record,) for record in records] if split else [records]
    return [
        encode_batch(
            group,
            base_offset=group[0].offset,
            leader_epoch=header.leader_epoch,
            codec=codec,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=-1
            if header.producer_id < 0
            else header.base_sequence + group[0].offset - header.base_offset,
            transactional=header.is_transactional,
        )
        for group in groups
    ]


def write_replica(draw: st.DrawFn, root: Path, broker: str, batches: list[bytes], *, compact: bool) -> None:
    """One replica of the leader's log: of any length, begun anywhere, committed up to anywhere."""
    kept = batches[: draw(st.integers(1, len(batches)))]
    codec = draw(st.sampled_from(CODECS))
    first, end = (read_header(kept[index]) for index in (0, -1))
    watermark = draw(st.integers(first.base_offset, end.next_offset))
    options = attrs.evolve(
        SMALL,
        segment_bytes=draw(st.sampled_from((150, 400, 10_000))),
        compact=compact,
        delete=not compact,
        delete_retention_ms=0,
    )
    split = draw(st.booleans())
    removed, passes = draw(st.integers(0, 3)), draw(st.integers(0, 2))

    def then(log) -> None:
        for number in range(passes if compact else 0):
            Cleaner(log).clean(first_dirty_offset=0, high_watermark=watermark, now_ms=number * 10)
        count = 0 if compact else min(removed, len(log.segments) - 1)
        if count and log.segments.all[count].base_offset <= watermark:
            log.remove_oldest(count)

    replica(
        root,
        broker,
        [batch for data in kept for batch in rewritten(data, codec, split=split)],
        high_watermark=watermark,
        options=options,
        clean=draw(st.booleans()),
        then=then,
    )


@given(st.data(), st.booleans(), st.booleans())
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_healthy_replicas_have_no_finding(data: st.DataObject, compact: bool, deep: bool) -> None:
    """Rule: an audit does not cry wolf, deep or not, compacted or not, closed or killed."""
    batches = data.draw(leader_logs(keyed=compact))
    with tempfile.TemporaryDirectory() as folder:
        for broker in ("a", "b", "c"):
            write_replica(data.draw, Path(folder), broker, batches, compact=compact)
        result = audit(Path(folder), deep=deep)
    assert result.findings.found == [] and result.findings.unreadable == []
    assert [one.broker for one in result.replicas] == ["a", "b", "c"]


# Whatever happens to the files, an audit ends with a verdict; and it takes no more memory for more of
# them.


LARGE = attrs.evolve(SMALL, segment_bytes=1 << 20, index_interval_bytes=4096)


def broker(root: Path, name: str) -> None:
    stamped = Stamped()
    batches = [
        stamped.batch(
            b"a",
            b"b",
            keys=[b"k", b"l"],
            epoch=number // 8,
            producer_id=4,
            producer_epoch=0,
            base_sequence=2 * number,
        )
        for number in range(16)
    ]
    replica(root, name, batches)


@st.composite
def damages(draw: st.DrawFn) -> tuple[int, str, int, bytes]:
    """(which file, what is done to it, where, with what)."""
    what = draw(st.sampled_from(("flip", "cut", "write", "append", "remove", "empty")))
    return (
        draw(st.integers(0, 1000)),
        what,
        draw(st.integers(0, 10_000)),
        draw(st.binary(min_size=1, max_size=70)),
    )


def damage(files: list[Path], which: int, what: str, place: int, data: bytes) -> Path:
    path = files[which % len(files)]
    if not path.exists():
        return path
    old = path.read_bytes()
    at = place % (len(old) + 1)
    new = {
        "flip": old[:at] + bytes([data[0] ^ old[at]]) + old[at + 1 :] if at < len(old) else old,
        "cut": old[:at],
        "write": old[:at] + data + old[at + len(data) :],
        "append": old + data,
        "empty": b"",
    }
    if what == "remove":
        path.unlink()
    else:
        path.write_bytes(new[what])
    return path


@given(st.lists(damages(), min_size=1, max_size=4), st.booleans())
@settings(max_examples=40, deadline=None)
def test_damage_of_any_kind_ends_in_a_verdict(planned: list[tuple[int, str, int, bytes]], deep: bool) -> None:
    """Rule: verdicts, never exceptions; and a batch under a broken checksum never passes in silence."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        broker(root, "a")
        broker(root, "b")
        files = sorted(path for path in root.rglob("*") if path.is_file())
        healthy = {path: path.read_bytes() for path in files}
        for one in planned:
            damage(files, *one)
        try:
            result = audit_any(root, deep)
        except EnvironmentError_:
            return  # nothing is left that names a partition
        changed = [
            path
            for path in files
            if path.suffix == ".log" and (not path.exists() or path.read_bytes() != healthy[path])
        ]
        assert result or not changed, changed


def audit_any(root: Path, deep: bool) -> bool:
    """Whether anything at all is told."""
    from fencepost.audit.partition import audit_partition
    from fencepost.audit.survey import AuditRequest, survey

    found = survey(
        AuditRequest(places=tuple((path.name, path) for path in sorted(root.iterdir())), deep=deep)
    )
    told = found.findings.count + len(found.findings.notes)
    for key in found.partitions:
        findings = audit_partition(found, key, lambda size: None).findings
        told += findings.count + len(findings.unreadable) + len(findings.notes)
    return told > 0


def peak(root: Path, megabytes: int) -> int:
    """Bytes of Python's memory that an audit of two replicas takes at most."""
    stamped = Stamped()
    batches = [stamped.batch(b"x" * 16_000) for _ in range(megabytes * 60)]
    for name in ("a", "b"):
        replica(root, name, batches, options=LARGE)
    tracemalloc.start()
    try:
        assert audit(root).verdict.decision == "ok"
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_log(tmp_path) -> None:
    """Rule: segments are streamed; four times the log takes no more memory."""
    small, large = tmp_path / "small", tmp_path / "large"
    small.mkdir()
    large.mkdir()
    peak(small, 2)
    assert peak(large, 8) < 8 * 1024 * 1024
