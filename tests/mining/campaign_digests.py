"""The runs of a campaign in a folder, whichever engine wrote them."""

from pathlib import Path

from fencepost.traces.parquet.row_groups import groups_of, read_tables
from fencepost.traces.store import TraceStore
from fencepost.traces.tables import traces_of_tables


def digests(out: Path) -> list[tuple[int, str]]:
    """(seed, digest) of every run in every part and journal of a folder, as often as it is there."""
    store = TraceStore.open(out)
    found = [
        (trace.trace_id, trace.digest)
        for part in store.parts()
        for group in groups_of(part)
        for trace in traces_of_tables(read_tables(part, group.index))
    ]
    return sorted(found + [(frame.trace_id, "") for frames in store.unsealed().values() for frame in frames])
