"""The batch format by its documentation: the log reads and writes it so, and each planted fault shows."""

from collections.abc import Callable
from typing import Any

import pytest

from fencepost.impl.log import validation
from fencepost.impl.log.batch import header, record_batch, record_walk
from tests.selfcheck.log import batch_comparison
from tests.selfcheck.log.batch_comparison import complaints
from tests.selfcheck.log.batch_format import crc32c

BATCHES = 600


def test_the_log_reads_and_writes_what_is_documented() -> None:
    """Rule (STYLE 15): whole batches, damaged ones, and badly written ones under a right checksum."""
    assert list(complaints(7, BATCHES)) == []


def test_the_checksum_is_crc32c() -> None:
    """Rule: RFC 3720, appendix B.4."""
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(bytes(range(32))) == 0x46DD794E
    assert crc32c(b"123456789") == 0xE3069283


def nothing(*_: Any, **__: Any) -> None:
    """Do nothing."""


WHOLE = batch_comparison.whole_batches
PLANTED: list[tuple[Any, str, Callable[..., Any]]] = [
    (header, "_check", nothing),
    (validation, "_check_claims", nothing),
    (record_walk, "_null", nothing),
    (record_batch, "_encode_headers", lambda headers: b"\x00"),
    (batch_comparison, "whole_batches", lambda data, below: WHOLE(data, below=below + 1)),
    (batch_comparison, "is_batch_to", lambda *_: True),
    (
        batch_comparison,
        "encode_batch",
        lambda made, **more: record_batch.encode_batch(made, **{**more, "codec": "none"}),
    ),
]


@pytest.mark.parametrize(("where", "name", "fault"), PLANTED, ids=[one[1] for one in PLANTED])
def test_a_fault_shows(
    where: Any, name: str, fault: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule (STYLE 12): nothing is trusted until it has failed on purpose."""
    monkeypatch.setattr(where, name, fault)
    monkeypatch.setattr(header, "_checked_header", header._checked_header.__wrapped__)
    assert next(complaints(7, BATCHES), None) is not None
