"""Records of __cluster_metadata in words and as JSON, for `fencepost log dump`.

Owns how they are written. Must not know files or formats (impl/log/metadata_records.py). A value without
the frame of such a record is shown as bytes.
"""

from typing import Any

from fencepost.impl.log.batch.record_batch import Record
from fencepost.impl.log.metadata_records import SECRET, TOPIC, MetadataRecord, decode_metadata
from fencepost.report.event_words import printable

LONGEST = 400
"""Characters of a record's content: some lines of a terminal."""


def is_metadata_partition(directory: str) -> bool:
    """Whether a directory of this name holds the partition of __cluster_metadata."""
    name, dash, number = directory.partition(".")[0].rpartition("-")
    return name == TOPIC and bool(dash) and number.isdigit()


def metadata_record_in_words(record: Record) -> str:
    """The record in words; "" if it is not of the cluster's metadata."""
    found = decode_metadata(record.value)
    if found is None:
        return ""
    said = " ".join(f"{name} {_shown(name, value)}" for name, value in found.fields.items())
    wrong = f" UNREADABLE: {found.wrong}" if found.wrong else ""
    return f"      {found.name} v{found.version}: {printable(said, LONGEST) or 'nothing'}{wrong}"


def metadata_record_as_dict(record: Record) -> dict[str, Any] | None:
    """The record for a program; None if it is not of the cluster's metadata."""
    found = decode_metadata(record.value)
    return None if found is None else _as_dict(found)


def _as_dict(found: MetadataRecord) -> dict[str, Any]:
    fields = {
        name: _shown(name, value) if isinstance(value, bytes) else value
        for name, value in found.fields.items()
    }
    return {"type": found.name, "version": found.version, "fields": fields, "error": found.wrong or None}


def _shown(name: str, value: Any) -> str:
    if isinstance(value, bytes):
        return f"{len(value)} bytes" if name in SECRET else value.hex()
    if isinstance(value, dict):
        return "{" + " ".join(f"{inner} {_shown(inner, one)}" for inner, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + " ".join(_shown(name, one) for one in value) + "]"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
