"""What the coverage-guided fuzzer kept (tools/fuzz/guided) harms no broker: it is replayed, oldest world
first."""

import base64
from pathlib import Path

import msgspec
from kio.schema.metadata.v1.request import MetadataRequest
from wire_core import request_bytes, sent
from wire_hostile import Attacked

from fencepost.wire.connection import Close

CORPUS = Path(__file__).parent / "fuzz_corpus.jsonl"
FEWEST = 100
"""Inputs: an empty file would pass for a good one."""


def test_no_input_of_the_corpus_harms_the_broker():
    """Each input is a connection of its own; the broker lives, and serves the next client."""
    inputs = [base64.b64decode(msgspec.json.decode(line)) for line in CORPUS.read_bytes().splitlines()]
    assert len(inputs) >= FEWEST
    attacked = Attacked()
    for data in inputs:
        closed = [each.reason for each in attacked.exchange(data) if isinstance(each, Close)]
        assert not any("failed here" in reason or "cannot be written" in reason for reason in closed), closed
    assert attacked.halts == []
    assert sent(attacked.exchange(request_bytes(8, MetadataRequest(topics=None))))
