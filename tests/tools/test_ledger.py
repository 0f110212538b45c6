"""tools/ledger: what was finished stays, and a file that is another one's is refused in one sentence."""

from pathlib import Path

import pytest
from attrs import frozen

from fencepost.traces.errors import FencepostError
from tools.ledger import Ledger, digest


@frozen(kw_only=True)
class Row:
    """Of a sweep."""

    name: str
    count: int = 0


def opened(path: Path, **asked: str | int) -> Ledger[Row]:
    return Ledger.open(path, Row, key=lambda row: row.name, of="a sweep", asked=asked)


def test_rows_are_kept_and_the_last_word_counts(tmp_path: Path) -> None:
    """Rule: what one sitting finished the next one has; of two rows with one key the later one counts."""
    path = tmp_path / "folder" / "ledger.jsonl"
    first = opened(path, seeds=3)
    assert not path.exists(), "who only looks writes nothing"
    for row in (Row(name="a"), Row(name="b", count=1), Row(name="a", count=2)):
        first.add(row)
    again = opened(path, seeds=3)
    assert again.rows == first.rows == {"a": Row(name="a", count=2), "b": Row(name="b", count=1)}
    assert path.read_bytes().count(b"\n") == 4


def test_a_line_that_was_cut_costs_one_row(tmp_path: Path) -> None:
    """Rule: a process that was killed leaves half a line, also half a header; what is added later is no part
    of it."""
    path = tmp_path / "ledger.jsonl"
    opened(path).add(Row(name="a"))
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"name":"to')
    ledger = opened(path)
    assert set(ledger.rows) == {"a"}
    ledger.add(Row(name="b"))
    assert set(opened(path).rows) == {"a", "b"}
    path.write_bytes(whole[:7])
    opened(path).add(Row(name="c"))
    assert set(opened(path).rows) == {"c"}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"name":"a","count":1}\n', "line 1: expected the header"),
        (b"\x00\xff\n", "line 1: expected the header"),
        (
            b'{"ledger":9,"of":"a sweep","asked":{}}\n',
            "line 1: expected a ledger of version 1, saw version 9",
        ),
        (b'{"ledger":1,"of":"a record","asked":{}}\n', "expected a ledger of a sweep, saw one of a record"),
        (b'{"ledger":1,"of":"a sweep","asked":{"seeds":4}}\n', "expected seeds=3, saw seeds=4"),
        (b'{"ledger":1,"of":"a sweep","asked":{"seeds":3}}\n{"name":1}\n', "line 2: expected a row"),
        (b'{"ledger":1,"of":"a sweep","asked":{"seeds":3}}\n\n', "line 2: expected a row"),
    ],
    ids=["no header", "bytes", "another version", "foreign", "another question", "damaged", "empty line"],
)
def test_a_foreign_or_damaged_file_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    """Rule: one sentence that says where and what to do; the file stays as it was."""
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(content)
    with pytest.raises(FencepostError) as refused:
        opened(path, seeds=3)
    said = str(refused.value)
    assert words in said and str(path) in said and "\n" not in said
    assert path.read_bytes() == content


def test_a_digest_is_of_names_and_content(tmp_path: Path) -> None:
    """Rule: a file that is renamed, or changed, makes another digest; the order of folders does not."""
    one, other = tmp_path / "a.py", tmp_path / "b.py"
    one.write_text("x"), other.write_text("y")
    before = digest([one, other], tmp_path)
    assert digest([other, one], tmp_path) == before
    other.write_text("z")
    assert digest([one, other], tmp_path) != before
    assert digest([one], tmp_path) != digest([one.rename(tmp_path / "c.py")], tmp_path)
