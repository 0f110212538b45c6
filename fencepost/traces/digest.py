"""The digest of a run: equal for equal runs, on every machine.

Owns: which facts of a trace make up its identity, and their canonical text.
Must not know: Parquet, journals, the machine.

The digest is BLAKE2b (16 bytes, hexadecimal) over four lines of JSON in UTF-8, without white space, each
ended by a line feed:

1. `["fencepost trace",1]`: the name and the schema version;
2. `[plan,seed,claims,unique_values,concurrent_processes]`, plan and claims as the strings that `traces`
   holds;
3. the canonical rows (canonical_rows.py) of the operations as one array of arrays, in order;
4. those of the events.

Left out: `trace_id`, because the same seed must give the same digest in any campaign; `digest` itself;
`software_version`, so that two versions can be compared; `target` and `profile`, which say where a run comes
from, not what happened. Nothing here depends on PYTHONHASHSEED: rows are ordered by the run, columns by the
schema.
"""

from hashlib import blake2b

import msgspec

from fencepost.traces.canonical_rows import Rows, rows_of
from fencepost.traces.errors import TraceError
from fencepost.traces.schema import TRACE_COLUMNS
from fencepost.traces.trace import SCHEMA_VERSION, Trace

DIGEST_BYTES = 16
"""128 bits: no two of a billion runs are likely to be equal by chance."""
_IDENTITY = ("plan", "seed", "claims", "unique_values", "concurrent_processes")
_POSITIONS = tuple(TRACE_COLUMNS.index(name) for name in _IDENTITY)


def digest_of_rows(rows: Rows) -> str:
    """The digest of a trace given as canonical rows, 32 hexadecimal digits. Raises TraceError for text
    without UTF-8."""
    digest = blake2b(digest_size=DIGEST_BYTES)
    for line in (
        ["fencepost trace", SCHEMA_VERSION],
        [rows.trace[position] for position in _POSITIONS],
        rows.operations,
        rows.events,
    ):
        try:
            digest.update(msgspec.json.encode(line))
        except (UnicodeError, OverflowError) as error:
            raise TraceError(expected="text and integers", seen=str(error), where="a trace's rows") from None
        digest.update(b"\n")
    return digest.hexdigest()


def check_digest(rows: Rows, *, where: str) -> None:
    """Refuse a trace that has other rows than it was stored with. A trace without a digest passes.

    Args:
        rows: of the trace, all of them.
        where: names it in the error.

    Raises:
        TraceError: if its digest says otherwise.
    """
    if rows.digest and (seen := digest_of_rows(rows)) != rows.digest:
        many = f"{len(rows.operations):,} operations and {len(rows.events):,} events"
        raise TraceError(
            expected=f"rows with the digest {rows.digest}",
            seen=f"{many} with the digest {seen}",
            where=where,
            hint="rows are damaged or missing; restore the folder from a copy, or run the seed again",
        )


def digest_of(trace: Trace) -> str:
    """The digest of a trace. Its `digest` field is ignored."""
    return digest_of_rows(rows_of(trace))
