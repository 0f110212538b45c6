"""Requests that are well formed and mean harm: every field takes its ends, against a real broker core.

Each request ends in an answer, in none where Kafka has none, or in the end of its connection; the broker
lives, and serves the next client. tools/fuzz/guided goes on for as long as it is told to.
"""

import random

from kio.schema.metadata.v1.request import MetadataRequest
from wire_core import request_bytes, sent
from wire_hostile import Attacked, hostile_request

from fencepost.wire.connection import Close
from fencepost.wire.versions import APIS
from tests.selfcheck.amounts import amount

ROUNDS = amount(1, 4)


def test_no_value_of_any_field_harms_the_broker():
    """Every API at every version, ROUNDS times each, in one order."""
    attacked = Attacked()
    rng = random.Random(20_261_122)
    outcomes = {"answered": 0, "closed": 0, "nothing": 0}
    for _ in range(ROUNDS):
        for api in APIS.values():
            for version in range(max(api.lowest, api.lowest_decoded), api.highest + 1):
                actions = attacked.exchange(request_bytes(7, hostile_request(api.key, version, rng)))
                answered, closed = sent(actions), [each for each in actions if isinstance(each, Close)]
                outcomes["answered" if answered else "closed" if closed else "nothing"] += 1
                assert not any(
                    "failed here" in each.reason or "cannot be written" in each.reason for each in closed
                )
    assert sent(attacked.exchange(request_bytes(8, MetadataRequest(topics=None)))), (
        "it serves the next client"
    )
    assert attacked.halts == []
    assert outcomes["answered"] > 5 * (outcomes["closed"] + outcomes["nothing"]), outcomes
