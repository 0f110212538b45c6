"""What is compared between Kafka and Fencepost, one function each; each yields (what, how many compared,
differences).

Owns the comparisons. Must not know how directories are made or shown.
"""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from attrs import frozen
from brokers import Broker, Peer, PeerError
from cases import CONSUMED, ISOLATIONS, copy
from dump_lines import our_lines, their_lines
from our_logs import consumed, open_all, partitions

from fencepost.impl.log.batch.record_batch import read_headers
from fencepost.impl.log.layout import EPOCH_CHECKPOINT
from fencepost.impl.log.log_options import LogOptions
from fencepost.impl.log.producer.snapshot import decode_snapshot
from fencepost.impl.log.producer.state import Producer, ProducerState
from fencepost.impl.log.segmented_log import SegmentedLog
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.impl.runtime.files import RealFiles

FILES = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
SPARSE = (".index", ".timeindex")
MOST_FILES = 200
"""Files that DumpLogSegments is told of at once."""


@frozen(kw_only=True)
class Compared:
    """One row: what of which case, how many things of which kind, and what differs."""

    case: str
    what: str
    count: int
    unit: str
    differences: tuple[str, ...] = ()


def difference(name: str, ours: Sequence[object], theirs: Sequence[object]) -> list[str]:
    """The first place where two sequences differ, in words; nothing if they are equal."""
    if list(ours) == list(theirs):
        return []
    for number, (one, other) in enumerate(zip(ours, theirs, strict=False)):
        if one != other:
            return [f"{name}: number {number}: Fencepost {one!s:.300} / Kafka {other!s:.300}"]
    more = ours[len(theirs)] if len(ours) > len(theirs) else theirs[len(ours)]
    return [f"{name}: Fencepost has {len(ours)}, Kafka {len(theirs)}; the first more: {more!s:.300}"]


def files_of(directory: Path, endings: tuple[str, ...] = FILES) -> list[Path]:
    """The files of all partitions, in order."""
    return sorted(path for path in directory.glob("*/*") if path.suffix in endings)


def dumped(peer: Peer, directory: Path, files: list[Path], *flags: str) -> dict[str, list[str]]:
    """What DumpLogSegments says of each file; nothing of those on which it fails itself: 3.5 does where an
    index leads to a batch that compaction left without records, with none after it."""
    said: list[str] = []
    for start in range(0, len(files), MOST_FILES):
        some = files[start : start + MOST_FILES]
        try:
            said += peer.dump(some, *flags)
        except PeerError:
            for file in some:
                with suppress(PeerError):
                    said += peer.dump([file], *flags)
    return their_lines(said, directory)


# ---- a broker's directory


def line_for_line(case: str, directory: Path, peer: Peer) -> Iterator[Compared]:
    """`fencepost log dump --deep --verify-index` against DumpLogSegments --deep-iteration
    --print-data-log."""
    ours, theirs = (
        our_lines(directory),
        dumped(peer, directory, files_of(directory), "--deep-iteration", "--print-data-log"),
    )
    wrong: list[str] = []
    failed = set(ours) - set(theirs)
    if failed:
        yield Compared(
            case=case, what="files on which DumpLogSegments itself fails", count=len(failed), unit="files"
        )
    for name in sorted(set(ours) & set(theirs)):
        mine, other = ours[name], theirs[name]
        if name.endswith(SPARSE) and not (directory / name).read_bytes().strip(b"\0"):
            other = []  # of preallocated room DumpLogSegments shows the first zeros as an entry
        if name.endswith(".snapshot"):
            mine, other = sorted(mine), sorted(other)
        wrong += difference(name, mine, other)
    yield Compared(
        case=case,
        what="log dump and DumpLogSegments",
        count=sum(len(ours[name]) for name in theirs),
        unit="lines",
        differences=tuple(wrong),
    )


def as_consumed(case: str, directory: Path, scratch: Path) -> Iterator[Compared]:
    """Opened (and recovered) by us nothing is cut, and what a consumer reads is what Kafka's consumer
    read."""
    target = scratch / "opened"
    copy(directory, target)
    logs = open_all(target)
    files = [path.relative_to(directory) for path in files_of(directory, (".log",))]
    wrong: list[str] = []
    for name in files:
        now = (target / name).stat().st_size if (target / name).exists() else -1
        wrong += difference(f"bytes of {name}", [now], [(directory / name).stat().st_size])
    yield Compared(
        case=case, what="segments kept whole", count=len(files), unit="files", differences=tuple(wrong)
    )
    read = sorted((directory.parent / CONSUMED).glob("*"))
    wrong, count = [], 0
    for file in read:
        topic, _, isolation = file.name.rpartition(".")
        theirs = file.read_text(encoding="utf-8").splitlines()
        wrong += difference(file.name, list(consumed(logs.logs[TopicPartition(topic, 0)], isolation)), theirs)
        count += len(theirs) - 1
    logs.close()
    if read:
        yield Compared(
            case=case,
            what="records and offsets as consumed",
            count=count,
            unit="records",
            differences=tuple(wrong),
        )


def made_again(
    case: str, directory: Path, scratch: Path, settings: dict[str, dict[str, str]]
) -> Iterator[Compared]:
    """With nothing but batches (and the log starts) recovery makes the same indexes, aborted transactions,
    epochs and producers as Kafka had.

    Not compared: compacted partitions, where the batches do not tell everything; and sparse indexes of
    brokers that were started more than once, since a start begins to count the bytes to the next entry anew.
    """
    target = scratch / "bare"
    copy(directory, target)
    for path in target.glob("**/*"):
        if path.is_file() and path.suffix != ".log" and path.name != "log-start-offset-checkpoint":
            path.unlink()
    plain = [key for key in partitions(directory) if "compacted" not in key.topic]
    logs = open_all(target, {key: options_of(settings.get(key.topic, {})) for key in plain})
    states = {key: log.producers for key, log in logs.logs.items()}
    logs.close()
    wrong: list[str] = []
    count = 0
    once = directory.parent.name == "clean"
    for key in plain:
        for path in files_of_one(directory / str(key), *(SPARSE if once else ()), ".txnindex"):
            ours = target / str(key) / path.name
            count += 1
            mine = (ours.read_bytes() if ours.exists() else b"").rstrip(b"\0")
            other = path.read_bytes().rstrip(b"\0")
            if path.suffix == ".txnindex":
                mine, other = _without_stable_offsets(mine), _without_stable_offsets(other)
            if mine != other:
                wrong.append(f"{key}/{path.name}: {len(mine)} bytes / {len(other)} bytes")
    yield Compared(
        case=case, what="indexes made again from batches", count=count, unit="files", differences=tuple(wrong)
    )
    wrong = []
    for key in plain:
        mine, other = (_epochs(root / str(key)) for root in (target, directory))
        wrong += difference(
            str(key), mine, [line for line in other if _has_batches(directory / str(key), line)]
        )
    yield Compared(
        case=case,
        what="leader epochs made again",
        count=len(plain),
        unit="partitions",
        differences=tuple(wrong),
    )
    if directory.parent.name in ("clean", "three"):  # a kill leaves no snapshot at the end
        yield _producers_made_again(case, directory, states)


def _producers_made_again(
    case: str, directory: Path, states: dict[TopicPartition, ProducerState]
) -> Compared:
    """Against the snapshot at the end of the log, where a broker left one. It may know producers whose
    batches were deleted."""
    wrong: list[str] = []
    count = 0
    for key, state in states.items():
        path = directory / str(key) / f"{state.end_offset:020d}.snapshot"
        if not path.exists():
            continue
        found = decode_snapshot(path.read_bytes(), state.end_offset)
        assert found is not None, path
        for producer_id, theirs in sorted(found.producers.items()):
            ours = state.producers.get(producer_id)
            if ours is None and theirs.batches[-1].last_offset < _first(directory / str(key)):
                continue
            if ours is None:
                wrong.append(f"{key}: producer {producer_id} is missing")
                continue
            count += 1
            wrong += difference(f"{key} producer {producer_id}", [_gist(ours)], [_gist(theirs)])
    return Compared(
        case=case, what="producers made again", count=count, unit="producers", differences=tuple(wrong)
    )


def _gist(producer: Producer) -> tuple[object, ...]:
    """A snapshot has one time for a producer, whether of its last batch or of a marker after it."""
    last = [
        (batch.first_sequence, batch.last_sequence, batch.first_offset, batch.last_offset)
        for batch in producer.batches[-1:]
    ]
    return (
        producer.epoch,
        last,
        producer.timestamp_ms,
        producer.open_since,
        producer.coordinator_epoch,
    )


def _without_stable_offsets(index: bytes) -> bytes:
    """Brokers before and after a restart, leaders and followers count differently how far everything was
    decided."""
    return b"".join(index[start : start + 26] for start in range(0, len(index), 34))


def _epochs(folder: Path) -> list[str]:
    path = folder / EPOCH_CHECKPOINT
    return path.read_text(encoding="utf-8").splitlines()[2:] if path.exists() else []


def _has_batches(folder: Path, line: str) -> bool:
    epoch = int(line.split()[0])
    return any(
        header.leader_epoch == epoch
        for log in folder.glob("*.log")
        for header in read_headers(log.read_bytes())
    )


def written_again(
    case: str, directory: Path, scratch: Path, settings: dict[str, dict[str, str]]
) -> Iterator[Compared]:
    """Every batch of a broker appended to an empty log of ours under the same settings: the same files, byte
    for byte."""
    target = scratch / "again"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    wrong, count = [], 0
    for topic, kafka in sorted(settings.items()):
        source = directory / f"{topic}-0"
        if "compacted" in topic or not files_of_one(source, ".log"):
            continue
        log = SegmentedLog.open(
            RealFiles(target), f"{topic}-0", options=options_of(kafka), log_start_offset=_first(source)
        )
        for path in files_of_one(source, ".log"):
            data = path.read_bytes()
            for header in read_headers(data):
                log.append_as_follower(data[header.position : header.end_position])
        log.close()
        for path in files_of_one(source, *FILES):
            if path.suffix == ".snapshot" and int(path.stem) <= _first(source):
                continue  # from before retention
            ours = target / f"{topic}-0" / path.name
            count += 1
            mine, other = ours.read_bytes() if ours.exists() else b"(no file)", path.read_bytes()
            if path.suffix == ".snapshot":
                mine, other = _producers(mine), _producers(other)
            if mine != other:
                wrong.append(f"{topic}-0/{path.name}: {len(mine)} bytes / {len(other)} bytes")
    yield Compared(
        case=case,
        what="files written again, byte for byte",
        count=count,
        unit="files",
        differences=tuple(wrong),
    )


def _producers(snapshot: bytes) -> bytes:
    """A snapshot without its checksum and with its entries sorted: Kafka writes them in the order of a hash
    map."""
    entries = [snapshot[start : start + 46] for start in range(10, len(snapshot), 46)]
    return snapshot[:2] + snapshot[6:10] + b"".join(sorted(entries))


def _first(folder: Path) -> int:
    return int(files_of_one(folder, ".log")[0].stem)


def files_of_one(folder: Path, *endings: str) -> list[Path]:
    """The files of one partition."""
    return sorted(path for path in folder.iterdir() if path.suffix in endings)


def options_of(kafka: dict[str, str]) -> LogOptions:
    """Kafka's topic settings as ours."""
    names = {
        "segment.bytes": "segment_bytes",
        "segment.index.bytes": "segment_index_bytes",
        "index.interval.bytes": "index_interval_bytes",
        "segment.ms": "segment_ms",
    }
    return LogOptions(
        retention_ms=-1, **{name: int(kafka[key]) for key, name in names.items() if key in kafka}
    )


# ---- a directory of ours


def kafka_reads(case: str, directory: Path, peer: Peer) -> Iterator[Compared]:
    """DumpLogSegments over what we wrote: its own checks (of an index without entries it says only that it is
    empty), and line for line."""
    yield from line_for_line(case, directory, peer)
    indexes = files_of(directory, (".index", ".timeindex"))
    sane = dumped(peer, directory, indexes, "--index-sanity-check")
    wrong = [
        f"{name}: {lines}"
        for name, lines in sane.items()
        if (directory / name).stat().st_size and not (lines and lines[-1].endswith("passed sanity check."))
    ]
    yield Compared(
        case=case,
        what="DumpLogSegments --index-sanity-check",
        count=len(sane),
        unit="files",
        differences=tuple(wrong),
    )
    verified = dumped(peer, directory, indexes, "--verify-index-only")
    wrong = [f"{name}: {lines[0]}" for name, lines in verified.items() if lines]
    yield Compared(
        case=case,
        what="DumpLogSegments --verify-index-only",
        count=len(verified),
        unit="files",
        differences=tuple(wrong),
    )


def broker_serves(
    case: str, directory: Path, broker: Broker, peer: Peer, *, clean: bool, scratch: Path
) -> Iterator[Compared]:
    """A broker started on what we wrote serves the same records as we read, having believed our marker or
    recovered as we do; and we open what it left."""
    mirror = scratch / "mirror"
    copy(directory, mirror)
    logs = open_all(mirror)
    expected = {
        key: {isolation: list(consumed(log, isolation)) for isolation in ISOLATIONS}
        for key, log in logs.logs.items()
    }
    logs.abandon()
    before = len(broker.said())
    broker.start()
    try:
        said, wrong, count = broker.said()[before:], [], 0
        skipped, recovering = (
            "since clean shutdown file was found" in said,
            "Recovering unflushed segment" in said,
        )
        wrong += difference("skips recovery, recovers segments", [clean, not clean], [skipped, recovering])
        for key, ours in expected.items():
            if key.topic.startswith("__"):
                continue
            for isolation, lines in ours.items():
                theirs = peer.ask("consume", broker.address, key.topic, key.partition, isolation)
                wrong += difference(f"{key.topic} {isolation}", lines, theirs)
                count += len(lines) - 1
    finally:
        broker.stop()
    how = "clean shutdown marker believed" if clean else "recovered after an unclean stop"
    yield Compared(
        case=case,
        what=f"a broker serves our directory, {how}",
        count=count,
        unit="records",
        differences=tuple(wrong),
    )
    logs = open_all(directory)
    wrong = difference("clean", [logs.clean], [True])
    for key, ours in expected.items():
        wrong += difference(
            str(key), list(consumed(logs.logs[key], ISOLATIONS[0]))[1:], ours[ISOLATIONS[0]][1:]
        )
    logs.close()
    yield Compared(
        case=case,
        what="what that broker left, opened by us",
        count=len(expected),
        unit="partitions",
        differences=tuple(wrong),
    )
