"""Files that would kill: nesting without end, and little that becomes much. Each is refused in a
sentence, with its bound."""

import os
import resource
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from attrs import evolve

from fencepost.checkers.models.base import value_of
from fencepost.report.event_words import fault_detail
from fencepost.traces import importers, jsonlines
from fencepost.traces.canonical_rows import ROWS_MAX, claims_from_json, rows_of, trace_of
from fencepost.traces.decoding import MOST_LEVELS, from_json
from fencepost.traces.errors import EnvironmentError_, PlanError, TraceError
from fencepost.traces.events import Event, Name
from fencepost.traces.journal import MAGIC, WHOLE_BYTES, encode_frame, frames_one_by_one, read_frames, scan
from fencepost.traces.parquet.row_groups import TEXT_BYTES_MAX, check_text, read_group
from fencepost.traces.plan_json import plan_from_json
from fencepost.traces.schema import SCHEMAS
from fencepost.traces.sealing import SealingFiles, seal
from fencepost.traces.store import TraceStore
from fencepost.traces.tables import tables_of
from fencepost.traces.trace import Claims
from tests.checkers import lab

DEEP = "[" * 100_000 + "]" * 100_000
TRACE = '{"type":"trace","trace_id":1,"plan":"","seed":1,"software_version":"v"}'
MEGABYTE = 1 << 20


def levels(count: int) -> str:
    """Lists within lists."""
    return "[" * count + "]" * count


@pytest.mark.parametrize("text", [levels(MOST_LEVELS + 1), '{"a":' * 65 + "1" + "}" * 65, DEEP], ids=len)
def test_json_has_so_many_levels_and_no_more(text: str) -> None:
    """Rule: depth is bounded at one number, not at what is left of the caller's stack."""
    assert from_json(levels(MOST_LEVELS)) is not None and from_json("[" + "[1]," * 99 + "[]]")
    with pytest.raises(msgspec.DecodeError, match="more than 64 levels of nesting"):
        from_json(text)


def test_every_reader_refuses_nesting_without_end(make_trace, tmp_path: Path) -> None:
    """Rule: lines, plans, claims, values of models, details of events and foreign histories refuse it;
    none raises RecursionError."""
    operation = evolve(make_trace(1).operations[0], argument=DEEP)
    for read in (
        lambda: list(jsonlines.read_lines([TRACE.replace('""', DEEP)], where="f")),
        lambda: plan_from_json(DEEP),
        lambda: claims_from_json(f'{{"x":{DEEP}}}'),
        lambda: value_of(operation, "argument"),
        lambda: importers.import_text(
            f'{{"process":0,"type":"invoke","f":"read","value":{DEEP}}}', where="f"
        ),
    ):
        with pytest.raises((TraceError, PlanError), match="64 levels"):
            read()
    assert fault_detail(Event(time=0, name=Name.FAULT_BEGAN, detail=DEEP)) == {}


def journal_of(path: Path, *raws: bytes, raw_length: int | None = None) -> Path:
    """A journal of frames with these payloads, checksums right."""
    codec = pa.Codec("zstd")
    data = bytearray(MAGIC)
    for number, raw in enumerate(raws):
        payload = codec.compress(raw, asbytes=True)
        length = len(raw) if raw_length is None else raw_length
        head = struct.pack("<IIq", len(payload), length, number)
        data += (
            struct.pack("<IIIq", len(payload), length, zlib.crc32(payload, zlib.crc32(head)), number)
            + payload
        )
    path.write_bytes(data)
    return path


def msgpack_of(trace) -> bytes:
    rows = rows_of(trace)
    return msgspec.msgpack.encode([rows.trace, rows.operations, rows.events])


def test_a_journal_holds_rows_and_nothing_else(make_trace, tmp_path: Path) -> None:
    """Rule: a payload is checked against the columns' types, and a bad run costs only itself."""
    good = msgpack_of(make_trace(7))
    row = rows_of(make_trace(7))
    bad = [
        b"\x93" + b"\x91" * 100_000 + b"\xc0",
        msgspec.msgpack.encode([row.trace, row.operations, [["x"] * 19]]),
        msgspec.msgpack.encode([row.trace, [[*row.operations[0][:-1]]], row.events]),
        msgspec.msgpack.encode([row.trace[:-1], row.operations, row.events]),
        msgspec.msgpack.encode([row.trace, {}, 3]),
        b"\x93\xff\xff",
    ]
    path = journal_of(tmp_path / "j", *bad, good)
    told = list(frames_one_by_one(path, scan(path).frames))
    assert [isinstance(one, TraceError) for one in told] == [True] * len(bad) + [False]
    assert all("expected rows of a run" in str(one) for one in told[:-1])


LIMITED = """
import resource, sys
from pathlib import Path
from fencepost.cli import run
import numba, pandas
import fencepost.cli.check.work, fencepost.mining.inputs, fencepost.checkers.judges
# all of this is loaded before the limit counts
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[1]), -1))
codes = []
for command in sys.argv[2:]:
    sys.argv = ["fencepost", *command.split("\\n")]
    codes.append(int(run()))
sys.exit(codes[0] if len(set(codes)) == 1 else f"exit codes {codes}")
"""


def within(megabytes: int, *commands: tuple[object, ...]) -> subprocess.CompletedProcess[str]:
    """Commands, one after the other, in a process that may take so much memory beyond what is loaded. All
    have one exit code, else it is 1."""
    lines = ["\n".join(map(str, command)) for command in commands]
    command = [sys.executable, "-c", LIMITED, str(megabytes * MEGABYTE), *lines]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def repeated_part(folder: Path, trace, count: int, many: str = "operations") -> Path:
    """A folder of traces in which a row of a table stands so many times: equal rows take next to nothing."""
    tables = tables_of([rows_of(trace)])
    for name, rows in (("traces", 1), ("operations", 1), ("events", 0)):
        one = tables.of(name).slice(0, 1).combine_chunks()
        table = one.take(pa.array([0] * (count if name == many else rows), pa.int32()))
        (folder / name).mkdir(parents=True)
        pq.write_table(
            table, folder / name / "part-00000.parquet", row_group_size=max(1, count), compression="zstd"
        )
    return folder


def test_equal_rows_are_counted_before_they_are_read(make_trace, tmp_path: Path) -> None:
    """Rule: a folder of 1,600,000 equal rows (1.8 GB once) is refused within 400 MB, with the bound and
    what judges it."""
    folder = repeated_part(tmp_path / "in", make_trace(1), 1_600_000)
    assert (folder / "operations" / "part-00000.parquet").stat().st_size < MEGABYTE
    told = within(400, ("check", folder, "--checks", "log"))
    assert told.returncode == 2 and "Traceback" not in told.stderr, told.stderr
    assert "at most 67,108,864 values in a row group" in told.stderr and "fencepost mine" in told.stderr


def _number(value: int) -> bytes:
    """As Thrift's compact protocol writes it in a footer."""
    zigzag, found = value << 1, bytearray()
    while zigzag > 127:
        found.append(zigzag & 127 | 128)
        zigzag >>= 7
    return bytes([*found, zigzag])


def say_rows(path: Path, was: int, says: int) -> None:
    """Let a file's footer say another number of rows, and of values in each column."""
    data = path.read_bytes()
    begin = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer = data[begin:-8].replace(_number(was), _number(says))
    path.write_bytes(data[:begin] + footer + len(footer).to_bytes(4, "little") + data[-4:])


def test_a_footer_that_lies_takes_no_memory(make_trace, tmp_path: Path) -> None:
    """Rule: a row group of 2^40 rows, as its footer says, is refused by that; one that says less than it has
    is read as far as it says."""
    commands, paths = [], {}
    for table in ("traces", "operations", "events"):
        folder = repeated_part(tmp_path / table, make_trace(1), 1009, table)
        paths[table] = folder / table / "part-00000.parquet"
        say_rows(paths[table], 1009, 1 << 40)
        commands += [("check", folder), ("show", folder, "--html", tmp_path / "page.html")]
    told = within(400, *commands)
    assert told.returncode == 2 and "Traceback" not in told.stderr, told.stderr
    said = " ".join(told.stderr.split())
    assert said.count("at most 67,108,864 values in a row group, saw") == len(commands)
    for table, path in paths.items():
        say_rows(path, 1 << 40, 2)
        assert pq.ParquetFile(path).metadata.row_group(0).num_rows == 2
        assert len(read_group(path, table, 0)) == 2


def test_ids_of_a_row_group_that_nobody_reads_are_not_read(make_trace, tmp_path: Path) -> None:
    """Rule: 8,000,000 rows of `traces` are refused by the same bound before their ids are values."""
    folder = repeated_part(tmp_path / "in", evolve(make_trace(1), plan="", claims=Claims()), 1009, "traces")
    say_rows(folder / "traces" / "part-00000.parquet", 1009, 8_000_000)
    with pytest.raises(TraceError, match="at most 67,108,864 values in a row group, saw 80,000,000"):
        TraceStore.open(folder).trace_ids()


def test_one_trace_has_so_many_rows_as_values(make_trace, tmp_path: Path, monkeypatch) -> None:
    """Rule: of a row group that may be read, a trace with too many rows costs itself, not its neighbours."""
    from fencepost.mining.inputs.traces import Found, traces_of
    from fencepost.traces import canonical_rows as rows
    from fencepost.traces import tables

    lab.stored(tmp_path / "in", (make_trace(number, appends=30 if number == 1 else 3) for number in range(3)))
    monkeypatch.setattr(rows, "ROWS_MAX", 20)
    monkeypatch.setattr(tables, "ROWS_MAX", 20)
    told = list(traces_of((tmp_path / "in",)))
    assert [one.trace.trace_id for one in told if isinstance(one, Found)] == [0, 2]
    (other,) = [one for one in told if not isinstance(one, Found)]
    assert "trace 1: expected at most 20 operations and events" in other.reason


def test_a_small_frame_does_not_become_a_gigabyte(make_trace, tmp_path: Path) -> None:
    """Rule: what a frame decompresses to is bounded before it is decompressed; its rows before they are
    values."""
    (tmp_path / "in" / "traces").mkdir(parents=True)
    (tmp_path / "in" / "journal").mkdir()
    journal_of(tmp_path / "in" / "journal" / "worker-0.journal", bytes(1200 * MEGABYTE))
    told = within(400, ("check", tmp_path / "in", "--checks", "log"))
    assert told.returncode == 2 and "Traceback" not in told.stderr, told.stderr
    assert "once decompressed, and a run has at most 268,435,456" in told.stderr


def test_a_large_frame_is_decoded_row_by_row(make_trace, tmp_path: Path) -> None:
    """Rule: beyond 16 MiB the number of rows, the size of each and the records in all are bounded; what
    fits comes back as it was."""
    trace = make_trace(1)
    row = rows_of(evolve(trace, operations=()))
    long = evolve(trace.operations[0], argument='"' + "x" * 2_000_000 + '"')
    whole = evolve(trace, operations=(long,) * 10)
    path = journal_of(tmp_path / "whole", msgpack_of(whole))
    assert scan(path).frames[0].raw_length > WHOLE_BYTES
    (back,) = read_frames(path, scan(path).frames)
    assert trace_of(back) == whole
    many = msgspec.msgpack.encode(row.trace)
    crowd = b"\x93" + many + b"\xdd" + (30_000_000).to_bytes(4, "big") + b"\x90" * 30_000_000 + b"\x90"
    wide = evolve(trace.operations[0], argument='"' + "x" * (WHOLE_BYTES + 1) + '"')
    for name, raw, says in (
        ("crowd", crowd, f"at most {ROWS_MAX:,} operations"),
        ("wide", msgpack_of(evolve(trace, operations=(wide,))), "a row of 16,7"),
    ):
        path = journal_of(tmp_path / name, raw)
        with pytest.raises(TraceError, match=says):
            list(read_frames(path, scan(path).frames))
    with pytest.raises(TraceError, match="at most 1,000,000 operations"):
        encode_frame(evolve(row, operations=[()] * (ROWS_MAX + 1)))


def test_text_that_rows_share_is_counted_for_each(tmp_path: Path) -> None:
    """Rule: a long string that a million rows share is no million strings."""
    words = pa.DictionaryArray.from_arrays(pa.array([0] * 1_000, pa.int32()), pa.array(["x" * MEGABYTE]))
    few = pa.DictionaryArray.from_arrays(pa.array([0] * 100, pa.int32()), pa.array(["x" * MEGABYTE]))
    check_text(pa.table({"a": few}), where="f")
    with pytest.raises(TraceError, match=f"at most {TEXT_BYTES_MAX:,} bytes of text"):
        check_text(pa.table({"a": words}), where="f")


def test_a_line_is_bounded(tmp_path: Path) -> None:
    """Rule: a line without end is refused before it is decoded."""
    (tmp_path / "f").write_bytes(TRACE.encode() + b"\n" + b" " * (jsonlines.LINE_BYTES_MAX + 2))
    with pytest.raises(TraceError, match="f:2: expected lines of at most 16,777,216 bytes"):
        list(jsonlines.read_traces(tmp_path / "f"))


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ('{"loss":7}', "expected claims as JSON"),
        ('{"clock_uncertainty_ns":-5}', "expected clock_uncertainty_ns from 0, saw -5"),
        (
            '{"loss":[{"topic":"t","partition":0,"start":3,"end":2,"reason":""}]}',
            "saw start 3, end 2 for t-0",
        ),
    ],
)
def test_bad_claims_cost_one_trace(make_trace, tmp_path: Path, fencepost_run, bad: str, says: str) -> None:
    """Rule: one trace of thirty with bad claims is quarantined by name; the 29 others of its row group
    are judged (27 were not)."""
    store = lab.stored(tmp_path / "in", (make_trace(number) for number in range(30)))
    path = store.parts()[0].traces
    table = pq.read_table(path)
    claims = table["claims"].to_pylist()
    claims[2] = bad
    at = table.schema.get_field_index("claims")
    pq.write_table(table.set_column(at, table.schema.field(at), [claims]), path)
    code, out, err = fencepost_run("check", tmp_path / "in", "--checks", "log", "--json")
    summary = msgspec.json.decode(out.splitlines()[-1])
    assert summary["traces"] == 29 and "trace 2: " in err and says in err and code in (1, 3, 4)


class Full(SealingFiles):
    """A disk without room."""

    def create(self, path: Path):
        return open("/dev/full", "wb")


def test_a_full_disk_is_one_sentence_with_the_path(make_trace, tmp_path: Path, capfd) -> None:
    """Rule: sealing on a full disk says so once; no writer prints a traceback when it is forgotten."""
    store = lab.stored(tmp_path / "in", [make_trace(1)], sealed=False)
    with pytest.raises(EnvironmentError_, match=r"in: expected to write parts, saw No space left"):
        seal(store, files=Full())
    assert "Traceback" not in capfd.readouterr().err
    with pytest.raises(EnvironmentError_, match=r"/dev/full: expected room for traces, saw No space left"):
        jsonlines.write_traces(Path("/dev/full"), [make_trace(1)] * 500)


@pytest.fixture
def fencepost_run(capsys: pytest.CaptureFixture[str]):
    """A command line in this process: exit code, standard output, standard error."""

    def call(*arguments: object) -> tuple[int, str, str]:
        from fencepost.cli import run

        capsys.readouterr()
        code = int(run([str(one) for one in arguments]))
        told = capsys.readouterr()
        return code, told.out, told.err

    return call


def test_limits_are_meant(tmp_path: Path) -> None:
    """Canary: the limit of these tests really bites."""
    limit = f"resource.setrlimit(resource.RLIMIT_AS, ({400 * MEGABYTE}, -1))"
    code = f"import resource; {limit}; bytearray({800 * MEGABYTE})"
    assert resource.RLIMIT_AS is not None and os.name == "posix"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "MemoryError" in told.stderr


def test_columns_are_plain_unless_asked_for(make_trace, tmp_path: Path) -> None:
    """Rule: that strings are read as dictionaries, to count them, is nobody else's affair: a table has its
    schema's types."""
    store = lab.stored(tmp_path, [make_trace(1)])
    (part,) = store.parts()
    for table in ("traces", "operations", "events"):
        assert read_group(part.of(table), table, 0).schema.types == SCHEMAS[table].types
    coded = read_group(
        part.operations, "operations", 0, dictionary=["function", "records.list.element.topic"]
    )
    assert pa.types.is_dictionary(coded.schema.field("function").type)
    assert pa.types.is_dictionary(coded.schema.field("records").type.value_type.field("topic").type)
    assert coded.schema.field("outcome").type == pa.string()
