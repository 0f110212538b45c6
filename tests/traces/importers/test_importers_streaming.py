"""Foreign histories are read while they are understood: in pieces of any size, in memory that their length
does not touch."""

import gc
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from fencepost.traces.errors import TraceError
from fencepost.traces.importers import import_file, import_text, window

PAIR = (
    "{:type :invoke, :f :write, :value 1, :process 0}\n{:type :ok, :f :write, :value 1, :process 0, "
    ':error "\\u00e4 \\"}"}'
)
HISTORIES = [
    PAIR,
    f"; a comment [\n[{PAIR}\n] ; the end\n",
    f"({PAIR.replace(':value 1', ':value [1 -2 1.5e3 nil #{3 4}]')} #_ {{:a 1}})",
    '[{"type": "invoke", "f": "cas", "value": [12345, 1.5e2], "process": 3},\n {"type": "ok", "f": "cas", '
    '"value": [12345, 1.5e2], "process": 3,'
    ' "error": "\\u00e4 ]"}]',
    '{"type": "invoke", "f": "read", "process": 0}\n\n{"type": "ok", "f": "read", "value": 1234567, '
    '"process": 0}\n',
    "INFO  jepsen.util - 0\t:invoke\t:write\t[1 2]\n\nINFO  jepsen.util - 0\t:ok\t:write\t[1 2]\n",
    "{:type :invoke, :f :send, :value [[:send 0 1]], :process 0}\n{:type :ok, :f :send, :value [[:send 0 [0 "
    "1]]], :process 0}",
]
REFUSED = [
    f"[{PAIR}\n",
    f"[{PAIR}]\n\n{{",
    f"{PAIR}\n{{:type :smash, :f :write, :process 0}}",
    f"{PAIR}\n\n{{:type :ok :f ,}}",
    f'{PAIR}\n"no end',
    '{"type": "invoke", "f": "read", "process": 0}\n{"type": "ok", "f": "read", "value": 1e999, "process": '
    "0}\n",
    '[{"type": "invoke", "f": "read", "process": 0},\n\n {"type": "ok" "f": "read"}]',
    '[{"type": "invoke", "f": "read", "process": 0}',
    '[{"type": "invoke", "f": "read", "process": 0}] 7',
    "0\t:invoke\t:write\t1\nWARN what is this",
    "INFO  jepsen.util - 0\t:invoke\t:write\t1\n\nINFO  jepsen.util - 0\t:ok\t:write\t[1\n",
]


def answer(text: str) -> object:
    """The operations, or the words of the refusal."""
    try:
        return import_text(text, where="h").operations
    except TraceError as error:
        return str(error)


@pytest.mark.parametrize("text", [*HISTORIES, *REFUSED])
def test_pieces_of_any_size_mean_the_same(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule: wherever the text is cut while it is read, it means the same, and is refused with the same line
    and words."""
    whole = answer(text)
    assert isinstance(whole, str) == (text in REFUSED)
    for size in (1, 2, 3, 5, 8, 13, 40):
        monkeypatch.setattr(window, "CHUNK", size)
        assert answer(text) == whole


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_files_mean_what_their_text_means(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule: a file is read in pieces of bytes; characters of several bytes, and the two of a line's end, may
    be cut."""
    monkeypatch.setattr(window, "CHUNK", 3)
    path = tmp_path / "h.edn"
    text = HISTORIES[1].replace("\\u00e4", "ä€𝄞")
    path.write_bytes(text.replace("\n", ending).encode())
    assert import_file(path).operations == import_text(text, where="h").operations


def _edn(padding: str) -> Iterator[str]:
    for n in range(200):
        yield (
            f"{{:type :invoke, :f :write, :value {n}, :process 0}}\n{{:type :ok, :f :write, :value {n}, "
            f':process 0, :exception "{padding}"}}\n'
        )


def _json(padding: str) -> Iterator[str]:
    for n in range(200):
        yield f'{"[" if n == 0 else ","}{{"type": "invoke", "f": "write", "value": {n}, "process": 0}},'
        yield f'{{"type": "ok", "f": "write", "value": {n}, "process": 0, "exception": "{padding}"}}'
    yield "]"


def _log(padding: str) -> Iterator[str]:
    for n in range(200):
        yield (
            f"INFO jepsen.util - 0 :invoke :write {n}\nINFO jepsen.util - 0 :ok :write "
            f"{n}{' ' * len(padding)}\n"
        )


@pytest.mark.parametrize("lines", [_edn, _json, _log])
def test_memory_does_not_follow_the_length_of_the_text(lines, tmp_path: Path) -> None:
    """Rule: a history of six million characters, all of them in one line or not, is read in the memory of its
    operations and a few pieces."""
    path = tmp_path / "h.txt"
    with path.open("w") as file:
        file.writelines(lines("x y " * 7_500))
    assert path.stat().st_size > 6_000_000
    gc.collect()
    tracemalloc.start()
    try:
        trace = import_file(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(trace.operations) == 200
    assert peak < 1_500_000


def test_an_entry_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule: a bracket that nobody closes does not fill the memory: the entry is refused where it begins."""
    monkeypatch.setattr(window, "CHUNK", 16)
    monkeypatch.setattr(window, "LONGEST_ENTRY", 100)
    text = f"{PAIR}\n" + "[" + "1 " * 400
    assert "expected entries of at most 100 characters" in str(answer(text))
