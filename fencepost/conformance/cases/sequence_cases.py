"""Idempotent producers: producer ids, epochs and sequences (KIP-98)."""

import asyncio
from functools import partial
from typing import Any

from fencepost.conformance.batches import Batch, records
from fencepost.conformance.case import Facts, case, in_versions
from fencepost.conformance.cases.case_requests import LATEST, list_offset, produce
from fencepost.conformance.lab import FIND_COORDINATOR, Lab, Topic
from fencepost.wire.client import Link

INIT_PRODUCER_ID = 22
NO_TIMEOUT = (1 << 31) - 1
POLLS = 100
PATIENCE = frozenset(
    {
        "COORDINATOR_NOT_AVAILABLE",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "NOT_COORDINATOR",
        "CONCURRENT_TRANSACTIONS",
    }
)


async def _init_patiently(lab: Lab, link: Link, values: dict[str, Any], version: int | None = None) -> Any:
    """The plain answer, once the broker does not ask for patience: its first block of ids comes late."""
    wanted = {
        "transactional_id": None,
        "transaction_timeout": NO_TIMEOUT,
        "producer_id": -1,
        "producer_epoch": -1,
        **values,
    }
    for _ in range(POLLS):
        answer = await lab.ask(link, INIT_PRODUCER_ID, version, **wanted)
        if answer["error_code"] not in PATIENCE:
            break
        await asyncio.sleep(0.1)
    return answer


async def _producer_id(lab: Lab) -> int:
    answer = await _init_patiently(lab, await lab.link(), {})
    assert answer["error_code"] == "NONE", answer
    producer_id: int = answer["producer_id"]
    return producer_id


Sent = tuple[int, int, int]
"""Epoch, first sequence, number of records."""


async def _send(lab: Lab, topic: Topic, producer_id: int, sent: Sent, acks: int = -1) -> Facts:
    epoch, sequence, count = sent
    batch = Batch(records=records(*[b"v"] * count), producer=(producer_id, epoch, sequence))
    return await produce(lab, topic, batch.encoded(), acks=acks)


async def _series(series: tuple[Sent, ...], lab: Lab) -> Facts:
    topic, producer_id = await lab.topic(), await _producer_id(lab)
    answers = [await _send(lab, topic, producer_id, sent) for sent in series]
    return [answers, (await list_offset(lab, topic, LATEST))["offset"]]


LARGEST = (1 << 31) - 1
SERIES: dict[str, tuple[str, tuple[Sent, ...]]] = {
    "first_batch": ("Sequence 0.", ((0, 0, 2),)),
    "next_batch": ("Sequences 0 to 1, then 2.", ((0, 0, 2), (0, 2, 1))),
    "duplicate_of_the_last": ("Sequences 0 to 1, twice.", ((0, 0, 2), (0, 0, 2))),
    "duplicate_of_the_first_of_five": (
        "Five batches, then the first again.",
        (*((0, each, 1) for each in range(5)), (0, 0, 1)),
    ),
    "duplicate_of_the_first_of_six": (
        "Six batches, then the first again: brokers keep five.",
        (*((0, each, 1) for each in range(6)), (0, 0, 1)),
    ),
    "gap": ("Sequence 0, then 2.", ((0, 0, 1), (0, 2, 1))),
    "older_sequence_with_other_bounds": ("Sequences 0 to 2, then 1 to 2.", ((0, 0, 3), (0, 1, 2))),
    "overlap": ("Sequences 0 to 1, then 1 to 2.", ((0, 0, 2), (0, 1, 2))),
    "does_not_begin_with_0": ("Sequence 5 from an unknown producer.", ((0, 5, 1),)),
    "new_epoch_begins_with_0": ("Sequence 0 of epoch 0, then sequence 0 of epoch 1.", ((0, 0, 1), (1, 0, 1))),
    "new_epoch_does_not_begin_with_0": (
        "Sequence 0 of epoch 0, then sequence 1 of epoch 1.",
        ((0, 0, 1), (1, 1, 1)),
    ),
    "old_epoch": ("Sequence 0 of epoch 1, then sequence 0 of epoch 0.", ((1, 0, 1), (0, 0, 1))),
    "first_epoch_is_5": ("Sequence 0 of epoch 5 from an unknown producer.", ((5, 0, 1),)),
    "wraps_around": ("The largest sequence, then 0.", ((0, LARGEST, 1), (0, 0, 1))),
    "wraps_within_a_batch": (
        "Sequences from the largest but one over to 0, then 1.",
        ((0, LARGEST - 1, 3), (0, 1, 1)),
    ),
    "goes_on_after_a_refusal": ("Sequence 0, 2 (refused), 1.", ((0, 0, 1), (0, 2, 1), (0, 1, 1))),
}

for _name, (_what, _sent) in SERIES.items():
    case(f"sequences.{_name}", f"{_what} And the end of the log after it.")(partial(_series, _sent))


@case("sequences.acks_1", "Sequence 0 twice, with acks=1.")
async def acks_1(lab: Lab) -> Facts:
    topic, producer_id = await lab.topic(), await _producer_id(lab)
    return [await _send(lab, topic, producer_id, (0, 0, 1), acks=1) for _ in range(2)]


@case("sequences.of_one_partition_only", "Sequence 0 in each of two partitions, then 1 in the first.")
async def two_partitions(lab: Lab) -> Facts:
    topic, producer_id = await lab.topic(partitions=2), await _producer_id(lab)
    leaders = await lab.leaders(topic.name)
    batch = Batch(producer=(producer_id, 0, 0)).encoded()
    second = (topic.name, await lab.link(leaders[1]))
    return [
        await produce(lab, topic, batch),
        await produce(lab, second, batch, partition=1),
        await _send(lab, topic, producer_id, (0, 1, 1)),
    ]


@case("sequences.id_that_was_never_given", "Sequence 0 of a producer id that no broker has given out.")
async def never_given(lab: Lab) -> Facts:
    return await _send(lab, await lab.topic(), 1 << 60, (0, 0, 1))


async def _init(version: int, lab: Lab) -> Facts:
    link = await lab.link()
    answers = [await _init_patiently(lab, link, {}, version) for _ in range(2)]
    ids = {answer["producer_id"] for answer in answers}
    return [lab.facts(answers), len(ids), min(ids) >= 0]


in_versions(
    "init_producer_id.v%d_gives_ids", "Two producer ids in version %d: whether they differ.", range(5), _init
)


async def _init_with(values: dict[str, Any], lab: Lab) -> Facts:
    answer = await _init_patiently(lab, await lab.link(), {"transaction_timeout": 60_000, **values})
    return [answer["error_code"], answer["producer_epoch"]]


case("init_producer_id.empty_transactional_id", "A producer id for the transactional id of no characters.")(
    partial(_init_with, {"transactional_id": ""})
)
case("init_producer_id.timeout_0", "A producer id with a transaction time-out of 0 and no transactional id.")(
    partial(_init_with, {"transaction_timeout": 0})
)
case("init_producer_id.epoch_without_id", "Producer id -1 with epoch 3.")(
    partial(_init_with, {"producer_epoch": 3})
)
case(
    "init_producer_id.known_id_without_transactional_id",
    "A new epoch for producer id 7, epoch 3, without a transactional id.",
)(partial(_init_with, {"producer_id": 7, "producer_epoch": 3}))


@case("init_producer_id.transactional", "A producer id for a fresh transactional id, from its coordinator.")
async def transactional(lab: Lab) -> Facts:
    name, link = lab.fresh("txn"), await lab.link()
    for _ in range(POLLS):
        found = await lab.ask(link, FIND_COORDINATOR, key=name, key_type=1)
        if found["error_code"] not in PATIENCE:
            break
        await asyncio.sleep(0.1)
    if found["error_code"] != "NONE":
        return [found["error_code"]]
    values = {"transactional_id": name, "transaction_timeout": 60_000}
    answer = await _init_patiently(lab, await lab.link(found["node_id"]), values)
    return [answer["error_code"], answer["producer_epoch"]]
