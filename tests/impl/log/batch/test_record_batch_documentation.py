"""docs/reference/log-format.md says what the code does."""

import re
from pathlib import Path
from struct import calcsize

from fencepost.impl.log import layout
from fencepost.impl.log.batch.compression import CODECS
from fencepost.impl.log.batch.header import CRC_START, HEADER_SIZE, MAGIC

TEXT = (Path(__file__).parents[4] / "docs" / "reference" / "log-format.md").read_text()
TYPES = {"int8": "b", "int16": "h", "int32": "i", "uint32": "I", "int64": "q"}


def test_the_fields_of_a_batch_are_documented():
    """Each field stands at the byte where the one before it ends; the first record where the header ends."""
    fields = re.findall(r"^\| (\d+) \| ([a-zA-Z ]+) \| ?(\w*) \|", TEXT, flags=re.M)
    at = 0
    for byte, name, kind in fields[:-1]:
        assert int(byte) == at, name
        at += calcsize(f">{TYPES[kind]}")
    assert fields[-1] == (str(HEADER_SIZE), "records", "") and at == HEADER_SIZE
    assert f"everything from byte {CRC_START} on" in TEXT and f"| 16 | magic | int8 | {MAGIC} |" in TEXT


def test_the_codecs_are_documented():
    """By id and name."""
    assert re.findall(r"^\| (\d) \| `(\w+)` \|", TEXT, flags=re.M) == [
        (str(number), codec) for number, codec in enumerate(CODECS)
    ]


def test_the_file_names_are_documented():
    """Every name that a broker gives a file that lasts."""
    names = (
        layout.EPOCH_CHECKPOINT,
        layout.CLEAN_SHUTDOWN,
        layout.HIGH_WATERMARKS,
        layout.RECOVERY_POINTS,
        layout.LOG_STARTS,
    )
    kinds = (layout.LOG, layout.INDEX, layout.TIME_INDEX, layout.SNAPSHOT)
    assert all(f"    {name} " in TEXT or f"{name} " in TEXT for name in (*names, *kinds))
