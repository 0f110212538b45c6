"""What version 1 wrote stays readable for ever."""

from pathlib import Path

import attrs
import pytest

from fencepost.traces import jsonlines
from fencepost.traces.canonical_rows import claims_from_json, claims_to_json
from fencepost.traces.digest import digest_of
from fencepost.traces.events import Event
from fencepost.traces.operations import Operation
from fencepost.traces.schema import TABLES, fingerprint
from fencepost.traces.store import TraceStore
from fencepost.traces.trace import Claims, Trace

V1 = Path(__file__).parent / "golden" / "v1"


@pytest.mark.parametrize("form", ["sealed", "unsealed"])
def test_parts_and_journal_of_version_1_are_readable(form: str) -> None:
    """Parts and journals of version 1 still hold the golden traces."""
    assert list(TraceStore.open(V1 / form)) == list(jsonlines.read_traces(V1 / "traces.jsonl"))


def test_digests_of_version_1_have_not_moved() -> None:
    """The digest of a stored trace is the same in every later version of the software."""
    traces = list(jsonlines.read_traces(V1 / "traces.jsonl"))
    assert [digest_of(trace) for trace in traces] == (V1 / "digests").read_text().split()
    assert [trace.digest for trace in traces] == (V1 / "digests").read_text().split()


def test_the_golden_trace_fills_every_column() -> None:
    """Each column holds something other than its default in some golden row, so that a lost column shows."""
    traces = list(jsonlines.read_traces(V1 / "traces.jsonl"))
    rows = {
        Trace: traces,
        Operation: [row for trace in traces for row in trace.operations],
        Event: [row for trace in traces for row in trace.events],
    }
    for cls, values in rows.items():
        for field in attrs.fields(cls):
            assert any(getattr(value, field.name) != field.default for value in values), field.name


def test_the_schema_of_version_1_has_not_moved() -> None:
    """A changed column needs a new schema version: the columns of version 1 are pinned."""
    pinned = (V1 / "schema").read_text()
    assert "\n\n".join(f"{table}\n{fingerprint(table)}" for table in TABLES) + "\n" == pinned


def test_claims_that_came_later_are_silent_at_their_defaults() -> None:
    """The canonical JSON of claims names retention and compaction only where they say something, and gives
    them back."""
    plain = claims_to_json(Claims(dense=True))
    assert "retention" not in plain and "compacted" not in plain
    told = Claims(retention=True, compacted=("t",))
    assert claims_to_json(told).endswith('"retention":true,"compacted":["t"]}')
    assert claims_from_json(claims_to_json(told)) == told
