"""Transactions: both versions (KIP-98, KIP-890), and what operators ask about them (KIP-664).

The first version is asked with EndTxn 3 and Produce 11, the second with EndTxn 5 and Produce 12; the facts
are errors, epochs and offsets.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from attrs import define

from fencepost.conformance.batches import TRANSACTIONAL, Batch, records
from fencepost.conformance.case import Facts, case
from fencepost.conformance.cases.case_requests import fetch_answer, produce
from fencepost.conformance.lab import FIND_COORDINATOR, OFFSET_FETCH, Lab, Topic, parts_of
from fencepost.wire.client import Link

INIT_PRODUCER_ID, ADD_PARTITIONS, ADD_OFFSETS, END, COMMIT_OFFSETS = 22, 24, 25, 26, 28
DESCRIBE_PRODUCERS, DESCRIBE, LIST = 61, 65, 66
PRODUCE_OF, END_OF, OFFSETS_OF = {1: 11, 2: 12}, {1: 3, 2: 5}, {1: 3, 2: 5}
"""Versions of Produce, EndTxn and TxnOffsetCommit, by version of transactions."""
POLLS, WAIT_S = 100, 0.1
"""Ten seconds until a coordinator serves, or a marker is written."""
WAITING = frozenset(
    {
        "COORDINATOR_NOT_AVAILABLE",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "NOT_COORDINATOR",
        "CONCURRENT_TRANSACTIONS",
        "NOT_ENOUGH_REPLICAS",
    }
)
"""Answers after which a client asks again."""
COMMITTED_ONLY = 1
AskBoth = Callable[[Lab, int], Awaitable[Facts]]
"""Of a lab and the version of transactions."""


@define
class Writer:
    """A transactional producer by hand."""

    lab: Lab
    name: str
    coordinator: Link
    version: int
    producer_id: int = -1
    epoch: int = -1
    sequence: int = 0

    async def again(self, link: Link, key: int, version: int | None, /, **values: Any) -> Any:
        """The first answer that is not about patience. link: whom to ask; key, version: of the request;
        values: its fields."""
        for _ in range(POLLS):
            answer = await self.lab.ask(link, key, version, **values)
            if _error(answer) not in WAITING:
                break
            await asyncio.sleep(WAIT_S)
        return answer

    @property
    def own(self) -> dict[str, Any]:
        """What its requests begin with."""
        return {"transactional_id": self.name, "producer_id": self.producer_id, "producer_epoch": self.epoch}

    async def init(self, **values: Any) -> Facts:
        """Error and epoch, which are this producer's from now on."""
        wanted = {"transaction_timeout": 60_000, "producer_id": -1, "producer_epoch": -1, **values}
        answer = await self.again(self.coordinator, INIT_PRODUCER_ID, 4, transactional_id=self.name, **wanted)
        if answer["error_code"] == "NONE":
            self.producer_id, self.epoch, self.sequence = answer["producer_id"], answer["producer_epoch"], 0
        return [answer["error_code"], answer["producer_epoch"]]

    async def add(self, topic: str, version: int = 3, partition: int = 0) -> Facts:
        """AddPartitionsToTxn: the error of the partition."""
        values = {f"v3_and_below_{name}": value for name, value in self.own.items()}
        topics = [{"name": topic, "partitions": [partition]}]
        answer = await self.again(
            self.coordinator, ADD_PARTITIONS, version, v3_and_below_topics=topics, **values
        )
        return _error(answer)

    async def write(self, topic: Topic, version: int | None = None) -> Facts:
        """One record: error and offset. topic: where; version: of Produce, None for that of this version of
        transactions."""
        chosen = PRODUCE_OF[self.version] if version is None else version
        batch = Batch(
            records=records(b"v"),
            producer=(self.producer_id, self.epoch, self.sequence),
            attributes=TRANSACTIONAL,
        )
        for _ in range(POLLS):
            answer = await produce(
                self.lab, topic, batch.encoded(), version=chosen, transactional_id=self.name
            )
            if answer["error"] not in WAITING:
                break
            await asyncio.sleep(WAIT_S)
        if answer["error"] == "NONE":
            self.sequence += 1
        return answer

    async def end(self, *, commit: bool, take: bool = True) -> Facts:
        """EndTxn: the error, and the next epoch where the version has one. take: go on with that."""
        answer = await self.again(self.coordinator, END, END_OF[self.version], committed=commit, **self.own)
        if self.version == 1:
            return answer["error_code"]
        facts = [answer["error_code"], answer["producer_epoch"], answer["producer_id"] == self.producer_id]
        if take and answer["error_code"] == "NONE":
            self.producer_id, self.epoch, self.sequence = answer["producer_id"], answer["producer_epoch"], 0
        return facts

    async def begun(self, topic: Topic) -> None:
        """A transaction with one record."""
        if self.version == 1:
            await self.add(topic.name)
        await self.write(topic)


def _error(answer: Any) -> str:
    """The error of an answer, or of the first row in it."""
    if "error_code" in answer:
        return str(answer["error_code"])
    rows = answer.get("results_by_topic_v3_and_below")
    if rows:
        return str(rows[0]["results_by_partition"][0]["partition_error_code"])
    return str(next(iter(parts_of(answer)))["error_code"])


async def writer(lab: Lab, version: int = 1, name: str = "") -> Writer:
    """One that has its epoch. Raises NotSpokenError where the broker does not speak the version."""
    lab.run.checked(END, END_OF[version])
    name, link = name or lab.fresh("txn"), await lab.link()
    made = Writer(lab, name, link, version)
    found = await made.again(link, FIND_COORDINATOR, 2, key=name, key_type=1)
    assert found["error_code"] == "NONE", found["error_code"]
    made.coordinator = await lab.link(found["node_id"])
    first = await made.init()
    assert first[0] == "NONE", first
    return made


async def seen(lab: Lab, topic: Topic) -> Facts:
    """What a reader of committed records is answered, once nothing is open any more: the ends of the log, and
    the first offsets of the aborted transactions. lab: of the case; topic: the one that is read."""
    for _ in range(POLLS):
        (part,) = parts_of(await fetch_answer(lab, topic, 0, isolation_level=COMMITTED_ONLY))
        if part["last_stable_offset"] == part["high_watermark"]:
            break
        await asyncio.sleep(WAIT_S)
    aborted = [each["first_offset"] for each in part["aborted_transactions"] or ()]
    return {"end": part["high_watermark"], "stable": part["last_stable_offset"], "aborted": aborted}


def _both(name: str, asked: str) -> Callable[[AskBoth], AskBoth]:
    """Register a case for each version of transactions."""

    def register(ask: AskBoth) -> AskBoth:
        for version in (1, 2):

            async def of(lab: Lab, version: int = version) -> Facts:
                return await ask(lab, version)

            case(f"transactions.v{version}_{name}", f"{asked} Version {version} of transactions.")(of)
        return ask

    return register


@_both("commits", "A transaction of two records, committed; then what a reader of committed records sees.")
async def _commits(lab: Lab, version: int) -> Facts:
    topic, mine = await lab.topic(), await writer(lab, version)
    added = await mine.add(topic.name) if version == 1 else "added by the leader"
    written = [await mine.write(topic), await mine.write(topic)]
    return [added, written, await mine.end(commit=True), await seen(lab, topic)]


@_both("aborts", "A transaction of one record, aborted, and one that commits; then what a reader sees.")
async def _aborts(lab: Lab, version: int) -> Facts:
    topic, mine = await lab.topic(), await writer(lab, version)
    await mine.begun(topic)
    facts = [await mine.end(commit=False)]
    await mine.begun(topic)
    return [*facts, await mine.end(commit=True), await seen(lab, topic)]


@_both("open_is_not_stable", "An open transaction: how far a reader of committed records gets.")
async def _open_is_not_stable(lab: Lab, version: int) -> Facts:
    topic, mine = await lab.topic(), await writer(lab, version)
    await mine.begun(topic)
    (part,) = parts_of(await fetch_answer(lab, topic, 0, isolation_level=COMMITTED_ONLY))
    facts = [part["high_watermark"], part["last_stable_offset"]]
    return [*facts, await mine.end(commit=True)]


@_both("commit_of_nothing", "EndTxn(commit) before anything was added.")
async def _commit_of_nothing(lab: Lab, version: int) -> Facts:
    return await (await writer(lab, version)).end(commit=True)


@_both("abort_of_nothing", "EndTxn(abort) before anything was added, and again in the epoch of the answer.")
async def _abort_of_nothing(lab: Lab, version: int) -> Facts:
    mine = await writer(lab, version)
    return [await mine.end(commit=False), await mine.end(commit=False)]


async def _ended_twice(lab: Lab, version: int, first: bool, second: bool) -> Facts:
    topic, mine = await lab.topic(), await writer(lab, version)
    await mine.begun(topic)
    facts = [await mine.end(commit=first, take=False)]
    return [*facts, await mine.end(commit=second, take=False)]


@_both("committed_twice", "EndTxn(commit) twice in the same epoch.")
async def _committed_twice(lab: Lab, version: int) -> Facts:
    return await _ended_twice(lab, version, True, True)


@_both("aborted_twice", "EndTxn(abort) twice in the same epoch.")
async def _aborted_twice(lab: Lab, version: int) -> Facts:
    return await _ended_twice(lab, version, False, False)


@_both("committed_then_aborted", "EndTxn(commit), then EndTxn(abort) in the same epoch.")
async def _committed_then_aborted(lab: Lab, version: int) -> Facts:
    return await _ended_twice(lab, version, True, False)


@_both("aborted_then_committed", "EndTxn(abort), then EndTxn(commit) in the same epoch.")
async def _aborted_then_committed(lab: Lab, version: int) -> Facts:
    return await _ended_twice(lab, version, False, True)


@_both("next_after_a_commit", "After a commit: EndTxn(commit), then EndTxn(abort), with nothing added.")
async def _next_after_a_commit(lab: Lab, version: int) -> Facts:
    topic, mine = await lab.topic(), await writer(lab, version)
    await mine.begun(topic)
    await mine.end(commit=True)
    return [await mine.end(commit=True), await mine.end(commit=False)]


@_both("late_end", "EndTxn(commit) of the last transaction arrives in the next one (KAFKA-17754).")
async def _late_end(lab: Lab, version: int) -> Facts:
    topic, mine = await lab.topic(), await writer(lab, version)
    await mine.begun(topic)
    late = Writer(lab, mine.name, mine.coordinator, version, mine.producer_id, mine.epoch)
    await mine.end(commit=True)
    await mine.begun(topic)
    return [await late.end(commit=True), await mine.end(commit=False), await seen(lab, topic)]


@_both("late_batch", "A record in the epoch of a transaction that has ended.")
async def _late_batch(lab: Lab, version: int) -> Facts:
    topic, mine = await lab.topic(), await writer(lab, version)
    await mine.begun(topic)
    late = Writer(lab, mine.name, mine.coordinator, version, mine.producer_id, mine.epoch, mine.sequence)
    await mine.end(commit=True)
    await seen(lab, topic)
    return await late.write(topic)


@_both("fenced", "A second producer of the id; then the first one writes, and ends.")
async def _fenced(lab: Lab, version: int) -> Facts:
    topic, first = await lab.topic(), await writer(lab, version)
    await first.begun(topic)
    second = await writer(lab, version, first.name)
    await seen(lab, topic)
    facts = [second.epoch, (await first.write(topic))["error"], await first.end(commit=True)]
    return [*facts, await seen(lab, topic)]


@_both("another_producer_id", "EndTxn of a producer id that the transactional id never had.")
async def _another_producer_id(lab: Lab, version: int) -> Facts:
    mine = await writer(lab, version)
    mine.producer_id += 1_000_000
    return await mine.end(commit=False)


@_both("offsets", "Offsets of a group in a transaction: before its end, and after a commit.")
async def _offsets(lab: Lab, version: int) -> Facts:
    topic, mine, (group, link) = await lab.topic(), await writer(lab, version), await lab.group()
    facts: list[Any] = []
    if version == 1:
        added = await mine.again(mine.coordinator, ADD_OFFSETS, 3, group_id=group, **mine.own)
        facts.append(added["error_code"])
    part = {
        "partition_index": 0,
        "committed_offset": 7,
        "committed_leader_epoch": -1,
        "committed_metadata": "m",
    }
    asked = {
        "group_id": group,
        "generation_id": -1,
        "member_id": "",
        "group_instance_id": None,
        "topics": [{"name": topic.name, "partitions": [part]}],
    }
    answer = await mine.again(link, COMMIT_OFFSETS, OFFSETS_OF[version], **asked, **mine.own)
    facts += [_error(answer), await _stable(lab, link, group, topic.name), await mine.end(commit=True)]
    for _ in range(POLLS):
        found = await _stable(lab, link, group, topic.name)
        if found[0] != "UNSTABLE_OFFSET_COMMIT":
            break
        await asyncio.sleep(WAIT_S)
    return [*facts, found]


async def _stable(lab: Lab, link: Link, group: str, name: str) -> Facts:
    topics = [{"name": name, "partition_indexes": [0]}]
    answer = await lab.ask(link, OFFSET_FETCH, 7, group_id=group, topics=topics, require_stable=True)
    found = [(each["error_code"], each["committed_offset"]) for each in parts_of(answer)]
    return list(found[0]) if answer["error_code"] == "NONE" and found else [answer["error_code"], -1]


# ---- the first version only


async def _not_added(lab: Lab, version: int) -> Facts:
    mine = await writer(lab)
    return (await mine.write(await lab.topic(), version))["error"]


@case("transactions.write_before_add_v9", "A record for a partition that was not added, Produce 9.")
async def not_added_9(lab: Lab) -> Facts:
    return await _not_added(lab, 9)


@case("transactions.write_before_add_v11", "A record for a partition that was not added, Produce 11.")
async def not_added_11(lab: Lab) -> Facts:
    return await _not_added(lab, 11)


@case("transactions.add_unknown_partition", "AddPartitionsToTxn of partition 7 of a topic with one.")
async def add_unknown(lab: Lab) -> Facts:
    topic, mine = await lab.topic(), await writer(lab)
    return await mine.add(topic.name, partition=7)


@case("transactions.add_in_an_old_epoch", "AddPartitionsToTxn 1 and 3 in an epoch that was fenced.")
async def add_old(lab: Lab) -> Facts:
    topic, first = await lab.topic(), await writer(lab)
    await writer(lab, 1, first.name)
    return [await first.add(topic.name, 1), await first.add(topic.name, 3)]


@case("transactions.add_twice", "AddPartitionsToTxn of the same partition twice.")
async def add_twice(lab: Lab) -> Facts:
    topic, mine = await lab.topic(), await writer(lab)
    return [await mine.add(topic.name), await mine.add(topic.name)]


@case("transactions.timeout_too_long", "InitProducerId with a transaction time-out above the broker's.")
async def timeout_too_long(lab: Lab) -> Facts:
    return await (await writer(lab)).init(transaction_timeout=(1 << 31) - 1)


@case("transactions.timeout_of_0", "InitProducerId with a transactional id and a time-out of 0.")
async def timeout_of_0(lab: Lab) -> Facts:
    return await (await writer(lab)).init(transaction_timeout=0)


@case(
    "transactions.init_with_its_epoch", "InitProducerId of a producer that names its id and epoch (KIP-360)."
)
async def init_with_its_epoch(lab: Lab) -> Facts:
    mine = await writer(lab)
    named = {"producer_id": mine.producer_id, "producer_epoch": mine.epoch}
    return [
        await mine.init(**named),
        await mine.init(**named),
        await mine.init(producer_epoch=mine.epoch + 7, producer_id=mine.producer_id),
    ]


# ---- what operators ask


async def _described(mine: Writer, name: str | None = None) -> Facts:
    answer = await mine.lab.ask(
        mine.coordinator, DESCRIBE, 0, transactional_ids=[mine.name if name is None else name]
    )
    (state,) = answer["transaction_states"]
    topics = [[each["topic"], each["partitions"]] for each in state["topics"]]
    names = ("error_code", "transaction_state", "producer_epoch")
    return mine.lab.facts([[state[each] for each in names], topics])


@case("transactions.described", "DescribeTransactions of an open transaction, and of one that has ended.")
async def described(lab: Lab) -> Facts:
    topic, mine = await lab.topic(), await writer(lab)
    await mine.begun(topic)
    facts = [await _described(mine)]
    await mine.end(commit=True)
    await seen(lab, topic)
    for _ in range(POLLS):
        found = await _described(mine)
        if found[0][1] == "CompleteCommit":
            break
        await asyncio.sleep(WAIT_S)
    return [*facts, found]


@case("transactions.described_unknown", "DescribeTransactions of an id that nobody has.")
async def described_unknown(lab: Lab) -> Facts:
    mine = await writer(lab)
    states = set()
    for broker in sorted(lab.run.brokers):
        answer = await lab.ask(await lab.link(broker), DESCRIBE, 0, transactional_ids=[mine.name + "-not"])
        states.add(answer["transaction_states"][0]["error_code"])
    return sorted(states - {"NOT_COORDINATOR"})


@case("transactions.described_empty_id", "DescribeTransactions of the id of no characters.")
async def described_empty(lab: Lab) -> Facts:
    return (await _described(await writer(lab), ""))[0][0]


@case("transactions.listed", "ListTransactions with filters that let an open transaction through, or not.")
async def listed(lab: Lab) -> Facts:
    topic, mine = await lab.topic(), await writer(lab)
    await mine.begun(topic)
    filters: tuple[dict[str, Any], ...] = (
        {"producer_id_filters": [mine.producer_id]},
        {"producer_id_filters": [mine.producer_id], "state_filters": ["Ongoing", "Odd"]},
        {"producer_id_filters": [mine.producer_id], "state_filters": ["CompleteCommit"]},
    )
    facts = []
    for each in filters:
        wanted = {"state_filters": [], "producer_id_filters": [], **each}
        answer = await lab.ask(mine.coordinator, LIST, 0, **wanted)
        states = [state["transaction_state"] for state in answer["transaction_states"]]
        facts.append([answer["error_code"], answer["unknown_state_filters"], states])
    return [*facts, await mine.end(commit=False)]


@case("transactions.producers_described", "DescribeProducers of a log with an open transaction, and later.")
async def producers_described(lab: Lab) -> Facts:
    topic, mine = await lab.topic(), await writer(lab)
    facts = []
    await mine.begun(topic)
    for ends in (True, False):
        asked = [{"name": topic.name, "partition_indexes": [0, 3]}]
        answer = await lab.ask(topic.leader, DESCRIBE_PRODUCERS, 0, topics=asked)
        names = ("producer_epoch", "last_sequence", "current_txn_start_offset")
        facts.append(
            [
                [part["error_code"], [[each[name] for name in names] for each in part["active_producers"]]]
                for part in answer["topics"][0]["partitions"]
            ]
        )
        if ends:
            facts.append(await mine.end(commit=True))
            await seen(lab, topic)
    return facts
