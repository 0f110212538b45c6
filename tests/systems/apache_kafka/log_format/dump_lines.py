"""What `fencepost log dump --deep --json` says, in the words of kafka.tools.DumpLogSegments, so that the two
can be compared line for line.

Owns both forms. Must not know which files are compared.
"""

import base64
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

MARKERS = {0: "ABORT", 1: "COMMIT"}


def our_lines(said: dict[str, Any], directory: Path) -> dict[str, list[str]]:
    """The lines of each file below a data directory, by its path relative to it.

    Args:
        said: by `fencepost log dump DIR --deep --json`.
    """
    found = {}
    for file in said["files"]:
        path = Path(file["file"])
        lines = [
            line
            for item in file["content"]
            for text in _lines(file["kind"], item)
            for line in text.split("\n")
        ]
        if path.suffix == ".log":
            lines.insert(0, f"Log starting offset: {int(path.stem)}")
        found[str(path.relative_to(directory))] = lines
    return found


def their_lines(said: Iterable[str], directory: Path) -> dict[str, list[str]]:
    """The same of what DumpLogSegments printed about several files."""
    found: dict[str, list[str]] = {}
    for line in said:
        if line.startswith("Dumping "):
            current = found.setdefault(str(Path(line.removeprefix("Dumping ")).relative_to(directory)), [])
        elif line and found and not line.endswith(" is empty."):
            current.append(line)
    return found


def _lines(kind: str, item: dict[str, Any]) -> Iterator[str]:
    if "flaw" in item:
        yield f"WRONG {item['flaw']}"
        return
    match kind:
        case "segment":
            yield from _batch(item)
        case "offset index":
            yield f"offset: {item['offset']} position: {item['position']}"
        case "time index":
            yield f"timestamp: {item['timestamp_ms']} offset: {item['offset']}"
        case "transaction index":
            yield (
                f"version: {item['version']} producerId: {item['producer_id']} firstOffset: "
                f"{item['first_offset']} "
                f"lastOffset: {item['last_offset']} lastStableOffset: {item['last_stable_offset']}"
            )
        case "producer snapshot":
            yield _producer(item)


def _batch(batch: dict[str, Any]) -> Iterator[str]:
    time = "LogAppendTime" if batch["timestamp_type"] == "log append" else "CreateTime"
    horizon = batch["delete_horizon_ms"]
    yield (
        f"baseOffset: {batch['base_offset']} lastOffset: {batch['last_offset']} count: {batch['count']} "
        f"baseSequence: {batch['base_sequence']} lastSequence: {batch['last_sequence']} producerId: "
        f"{batch['producer_id']} "
        f"producerEpoch: {batch['producer_epoch']} partitionLeaderEpoch: {batch['leader_epoch']} "
        f"isTransactional: {_bool(batch['is_transactional'])} isControl: {_bool(batch['is_control'])} "
        f"deleteHorizonMs: {_optional(horizon)} position: {batch['position']} {time}: "
        f"{batch['max_timestamp_ms']} "
        f"size: {batch['size']} magic: {batch['magic']} compresscodec: {batch['codec']} crc: {batch['crc']} "
        f"isvalid: {_bool(batch['crc_is_valid'])}"
    )
    for record in batch["contents"]:
        key, value = _bytes(record["key"]), _bytes(record["value"])
        headers = ",".join(_bytes(name).decode() for name, _ in record["headers"])
        sequence = batch["base_sequence"]
        if sequence >= 0:
            sequence += record["offset"] - batch["base_offset"]
        line = (
            f"| offset: {record['offset']} {time}: {record['timestamp_ms']} keySize: {_size(key)} "
            f"valueSize: {_size(value)} "
            f"sequence: {sequence} headerKeys: [{headers}]"
        )
        if batch["is_control"]:
            kind = MARKERS[int.from_bytes(key[2:4], "big")]
            yield f"{line} endTxnMarker: {kind} coordinatorEpoch: {int.from_bytes(value[2:6], 'big')}"
        else:
            yield (
                line
                + ("" if key is None else f" key: {_text(key)}")
                + ("" if value is None else f" payload: {_text(value)}")
            )


def _producer(entry: dict[str, Any]) -> str:
    line = (
        f"producerId: {entry['producer_id']} producerEpoch: {entry['producer_epoch']} "
        f"coordinatorEpoch: {entry['coordinator_epoch']} currentTxnFirstOffset: "
        f"{_optional(None if entry['current_first_offset'] < 0 else entry['current_first_offset'])} "
        f"lastTimestamp: {entry['timestamp_ms']} "
    )
    if entry["last_offset"] < 0:
        return line.rstrip()
    first = (entry["last_sequence"] - entry["offset_delta"]) & 0x7FFF_FFFF
    return (
        f"{line}firstSequence: {first} lastSequence: {entry['last_sequence']} lastOffset: "
        f"{entry['last_offset']} "
        f"offsetDelta: {entry['offset_delta']} timestamp: {entry['timestamp_ms']}"
    )


def _bytes(value: Any) -> Any:
    if value is None:
        return None
    return value.encode() if isinstance(value, str) else base64.b64decode(value["base64"])


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _bool(value: bool) -> str:
    return "true" if value else "false"


def _optional(value: int | None) -> str:
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"
