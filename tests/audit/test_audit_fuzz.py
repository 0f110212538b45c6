"""Whatever happens to the files, an audit ends with a verdict; and it takes no more memory for more of
them."""

import tempfile
import tracemalloc
from pathlib import Path

import attrs
from audit_lab import SMALL, Stamped, audit, replica
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.traces.errors import EnvironmentError_

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
