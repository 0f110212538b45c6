"""Which record a copy is of, and where a copier goes on."""

from fencepost.torture.copying import _next, name_of, source_of


def test_a_copy_names_its_record():
    """Rule: each attempt has an identity of its own, and all of them name the record."""
    source = ("a-b-0", 17)
    assert name_of(source, 1) != name_of(source, 2)
    assert source_of(name_of(source, 1)) == source_of(name_of(source, 2)) == source
    assert source_of(b"0-1-2") is None and source_of(b"") is None and source_of(b"copy 1 of t-0/x") is None


def test_offsets_are_those_after_the_last_record_of_each_partition():
    """Rule: a commit has the next offset to read."""
    rows = _next((("t-0", 4), ("t-1", 0), ("t-0", 9)))
    assert rows == [{"topic": "t", "partition": 0, "offset": 10}, {"topic": "t", "partition": 1, "offset": 1}]
