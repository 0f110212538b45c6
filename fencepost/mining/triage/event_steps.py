"""Each event as a step: its name, and its unusual relations to what was known before, without
names, numbers and times.

Owns the words of steps, over whole columns of a row group. Must not know findings, groups, bugs.

An event says who did what with which epoch and offset. What matters about a number is its relation to the
last one of its kind: a leader epoch below ZooKeeper's, a broker epoch of an earlier process, an offset below
the high watermark. So each number is compared with the latest fact about the same thing, and the relation
becomes a word of the step. The usual relation is left out. Protections guard such relations, so a step that
no healthy run shows is interesting. No relation is specific to one known bug: all of them are computed for
every event that has both sides.
"""

import re
from collections.abc import Callable
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from attrs import define, field, frozen

from fencepost.checkers.sorting import FEW, GAPS
from fencepost.mining.triage.subjects import relations
from fencepost.traces.events import Name

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
MOST_BROKERS = 62
"""Sets of brokers are bits of an integer; a broker above is in no set, so that no relation is said of it."""
TOLD = (
    Name.CONTROL_REQUEST_REFUSED,
    Name.FETCH_REFUSED,
    Name.FOLLOWER_FAILED,
    Name.LIVENESS_FAILED,
    Name.LOG_DIRECTORY_FAILED,
    Name.IMPLEMENTATION_ERROR,
    Name.GROUP_PHASE,
    Name.TRANSACTION_PHASE,
    Name.MARKER_WRITTEN,
)
"""Events of which the detail is a reason in words, or JSON with one, and belongs to the step."""
WHY = r'(?s)^\{.*"why":"([^"]*)".*$'
"""A reason in JSON."""
COMMIT = r'(?s)^\{.*"commit":(true|false).*$'
"""How a transaction ended, in JSON: a record of an aborted one may not be shown."""
PLACES = r'(?s)^\{.*"at":\["[^"]* ([^" ]+)"(?:,"[^"]* ([^" ]+)")?(?:,"[^"]* ([^" ]+)")?.*$'
"""Where an error of the implementation was raised, the innermost three functions (ClusterFuzz takes three
too): two bugs may fail one assertion."""
DOCUMENT = r"(?s)^\{.*$"
"""Any other JSON: how a cluster looked when a wait was given up is no part of the step's words."""
RUN = (Name.REPLICA_LOG, Name.REQUEST, Name.CONNECTION, Name.RECORD_TEXTS, Name.ASKED)
"""Rows that are no step of the protocol: final dumps, what a proxy saw, and names for people."""
REPLICA = (
    *(Name.BECAME_LEADER, Name.BECAME_FOLLOWER, Name.APPENDED, Name.TRUNCATED, Name.HIGH_WATERMARK),
    *(Name.ISR_PROPOSED, Name.ISR_UPDATED, Name.ISR_REFUSED, Name.LOG_START, Name.FETCH_REFUSED),
    *(Name.FOLLOWER_FAILED, Name.LOG_RECOVERED, Name.COMPACTED),
)
"""What a replica does: the step says what the broker was to the partition, by ZooKeeper."""


@frozen(kw_only=True, eq=False)
class Steps:
    """The steps of a row group, in the order of its rows; one value per row in each array."""

    # Number of the trace, from 0.
    trace: Ints
    # Index of the step's words in `words`; -1 for a row that is no step.
    code: Ints
    # A number for (trace, topic, partition); -1: none.
    partition: Ints
    # Index in `topics`; -1: none.
    topic: Ints
    # The partition's own number.
    number: Ints
    # The broker; -1: none.
    node: Ints
    # Nanoseconds.
    time: Ints
    # Index in the order of Name; -1: unknown.
    name: Ints
    words: tuple[str, ...]
    topics: tuple[str, ...]
    # Numbers of traces, and what is in a state at their end that cannot stay so (subjects.py).
    left: tuple[tuple[int, str], ...]


NAMES = tuple(name.value for name in Name)
CODE_OF = {name: number for number, name in enumerate(Name)}


def steps_of(events: pa.Table, trace_ids: Ints) -> Steps:
    """The steps of a row group's events. events: its rows; trace_ids: of its traces, in order; the rows of
    each trace are together."""
    return _Reading(events, trace_ids).steps()


def coded(column: Any) -> tuple[Ints, list[str]]:
    """Codes and words of a string column, plain or coded."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    one: Any = column.unify_dictionaries().combine_chunks()
    if isinstance(one, pa.ChunkedArray):
        one = one.chunk(0) if one.num_chunks else pa.array([], one.type)
    codes = one.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, [word or "" for word in one.dictionary.to_pylist()]


def plain(text: str) -> str:
    """A reason without numbers and names, so that the same reason is one word."""
    return _NUMBERS.sub("#", _NAMES_IN_TEXT.sub("NAME", text)).strip()


_NUMBERS = re.compile(r"\d+")
_NAMES_IN_TEXT = re.compile(r"(?<![\w.-])[A-Za-z_](?=[\w.#-]*\d)[\w.#-]*\w")
"""Names of members, groups and partitions: words with letters and digits."""


def in_order(keys: Ints) -> Ints:
    """The rows sorted by their keys, in their own order within. Keys of 16 bits, as most of a row group are,
    are sorted in linear time."""
    low = int(keys.min(initial=0))
    if int(keys.max(initial=0)) - low < 1 << 16:
        return np.argsort((keys - low).astype(np.uint16), kind="stable")
    return np.argsort(keys, kind="stable")


def ranked(numbers: Ints) -> tuple[Ints, Ints]:
    """The distinct numbers in order, and the rank of each; without a sort if most numbers of their range
    could be among so many."""
    low = int(numbers.min(initial=0))
    span = int(numbers.max(initial=0)) - low + 1
    if span > GAPS * len(numbers) + FEW:
        distinct, rank = np.unique(numbers, return_inverse=True)
        return distinct, rank.reshape(-1)
    present = np.zeros(span, np.bool_)
    present[numbers - low] = True
    return np.flatnonzero(present) + low, (np.cumsum(present) - 1)[numbers - low]


@frozen(eq=False)
class _Key:
    """What rows are about."""

    # The rows sorted by it, in their own order within.
    order: Ints
    # Of the key, in that order.
    values: Ints

    @classmethod
    def of(cls, key: Ints) -> Self:
        """Sort the rows by a column of keys."""
        order = in_order(key)
        return cls(order, key[order])


@define(eq=False)
class _Reading:
    """The columns of a row group and what is known at each row."""

    events: pa.Table
    trace_ids: Ints
    # Word -> rows that say it, in the order in which words are added.
    flags: list[tuple[str, Flags]] = field(factory=list)
    left: list[tuple[int, str]] = field(factory=list)
    columns: dict[str, Ints] = field(factory=dict)

    def int(self, name: str) -> Ints:
        """A column of integers."""
        if name not in self.columns:
            self.columns[name] = self.events.column(name).to_numpy().astype(np.int64, copy=False)
        return self.columns[name]

    def bits(self, name: str) -> Ints:
        """A column of lists of brokers as sets: bit n is broker n."""
        array: Any = self.events.column(name).combine_chunks()
        if isinstance(array, pa.ChunkedArray):
            if not array.num_chunks:
                return np.zeros(len(self.events), np.int64)
            array = array.chunk(0)
        offsets, flat = array.offsets.to_numpy().astype(np.int64), array.values.to_numpy()
        flat = flat.astype(np.int64)
        known = (flat >= 0) & (flat <= MOST_BROKERS)
        powers = np.where(known, np.left_shift(1, np.clip(flat, 0, MOST_BROKERS)), 0)
        sums = np.concatenate(([0], np.cumsum(powers)))  # a broker is in a list only once
        found: Ints = sums[offsets[1:]] - sums[offsets[:-1]]
        return found

    def say(self, word: str, rows: Flags) -> None:
        """These rows' steps get the word."""
        self.flags.append((word, rows))

    def steps(self) -> Steps:
        """All of it."""
        size = len(self.events)
        ids = self.int("trace_id")
        order = np.argsort(self.trace_ids, kind="stable")
        trace = order[np.searchsorted(self.trace_ids, ids, sorter=order)] if size else ids
        names, words = coded(self.events.column("name"))
        known = np.array([CODE_OF.get(Name(word), -1) if word in NAMES else -1 for word in words] or [-1])
        name = known[names] if size else names
        topics, topic_words = coded(self.events.column("topic"))
        number = self.int("partition")
        has = (topics >= 0) & (number >= 0)
        key = np.where(
            has, (trace * (topics.max(initial=0) + 2) + topics) * (number.max(initial=0) + 2) + number, -1
        )
        partition = ranked(key)[1] - int(bool(size) and bool((key < 0).any()))
        node = self.int("node")
        if size:
            self._relations(trace, name, partition, node)
        causes, cause_words = coded(self.events.column("cause"))
        said = np.isin(name, [CODE_OF[each] for each in TOLD])
        details, reasons = self._reasons(said)
        base = joined(name, causes, details)
        values, codes = np.unique(base, return_inverse=True)
        said_so = [_base(int(one), cause_words, reasons) for one in values]
        texts = list(dict.fromkeys(said_so))  # causes that differ in numbers and names only are one
        place = {text: number for number, text in enumerate(texts)}
        codes, texts = self._with_flags(np.array([place[text] for text in said_so], np.int64)[codes], texts)
        code = np.where((name < 0) | np.isin(name, [CODE_OF[each] for each in RUN]), -1, codes)
        return Steps(
            trace=trace,
            code=code,
            partition=partition,
            topic=topics,
            number=number,
            node=node,
            time=self.int("time"),
            name=name,
            words=tuple(texts),
            topics=tuple(topic_words),
            left=tuple(self.left),
        )

    def _reasons(self, said: Flags) -> tuple[Ints, list[str]]:
        """A code of the reason in each row that has one, -1 in the others."""
        codes = np.full(len(said), -1, np.int64)
        rows = np.flatnonzero(said)
        detail: Any = self.events.column("detail")
        text = detail.take(pa.array(rows)).cast(pa.string())
        for pattern, kept in (*((WHY, r"\1"), (COMMIT, r"commit \1"), (PLACES, r"\1 \2 \3")), (DOCUMENT, "")):
            text = pc.replace_substring_regex(text, pattern, kept)
        whys, texts = coded(text)
        reasons = sorted({plain(text) for text in texts} | {""})
        place = np.searchsorted(reasons, [plain(text) for text in texts] or [""])
        codes[rows] = np.where(whys >= 0, place[np.maximum(whys, 0)], 0)
        return codes, reasons

    def _with_flags(self, codes: Ints, texts: list[str]) -> tuple[Ints, list[str]]:
        """The words of flags after each step's own."""
        said = [(word, rows) for word, rows in self.flags if rows.any()]
        assert len(said) < 63, "the flags of a row are bits of an integer"
        masks = np.zeros(len(codes), np.int64)
        for bit, (_, rows) in enumerate(said):
            masks |= rows.astype(np.int64) << bit
        distinct, mask = np.unique(masks, return_inverse=True)
        pairs, found = ranked(codes * (len(distinct) + 1) + mask)
        words = []
        for pair in pairs.tolist():
            code, place = divmod(pair, len(distinct) + 1)
            bits = int(distinct[place])
            words.append(
                ", ".join([texts[code], *(word for bit, (word, _) in enumerate(said) if bits >> bit & 1)])
            )
        return found, words

    # ---- what was known

    def latest(self, key: _Key, source: Flags, *, before: bool = True) -> Ints:
        """For each row the latest source row of the same key before it (before: not itself), -1 for none.
        Rows of key -1 have none."""
        order, values = key.order, key.values
        at = np.where(source[order], np.arange(len(order)), -1)
        latest = np.maximum.accumulate(at)
        if before:
            latest = np.concatenate(([-1], latest[:-1]))
        inside = np.maximum(latest, 0)
        same = (latest >= 0) & (values >= 0) & (values[inside] == values)
        found = np.full(len(order), -1, np.int64)
        found[order] = np.where(same, order[inside], -1)
        return found

    def _relations(self, trace: Ints, name: Ints, partition: Ints, node: Ints) -> None:
        is_ = {each: name == CODE_OF[each] for each in Name}

        def any_of(*names: Name) -> Flags:
            found = np.zeros(len(name), bool)
            for each in names:
                found |= is_[each]
            return found

        of_trace, of_partition = _Key(np.arange(len(trace)), trace), _Key.of(partition)
        state = self.latest(of_partition, is_[Name.PARTITION_STATE])
        assigned = self.latest(of_partition, is_[Name.ASSIGNMENT])
        hosts = trace * (MOST_BROKERS + 2) + np.clip(node, 0, MOST_BROKERS)
        hosts = np.where((node < 0) | (node > MOST_BROKERS), -1, hosts)
        replica = np.where(
            (partition >= 0) & (hosts >= 0),
            partition * (MOST_BROKERS + 2) + np.clip(node, 0, MOST_BROKERS),
            -1,
        )
        of_replica = _Key.of(replica)
        self._epochs(of_trace, is_, _Key.of(hosts), of_replica, state, any_of)
        self._members(of_trace, is_, state, assigned, node, any_of)
        self._offsets(is_, of_replica, any_of)
        self._controllers(of_trace, is_, node)
        found = relations(self.events, trace, name, CODE_OF)
        self.flags += found.words
        self.left = found.left

    def _compare(self, label: str, value: Ints, known: Ints, rows: Flags) -> None:
        """`label` below, or above, what is known. Rows without both sides say nothing."""
        both = rows & (value >= 0) & (known >= 0)
        self.say(f"{label} behind", both & (value < known))
        self.say(f"{label} ahead", both & (value > known))

    def _epochs(
        self,
        trace: _Key,
        is_: dict[Name, Flags],
        hosts: _Key,
        replica: _Key,
        state: Ints,
        any_of: Callable[..., Flags],
    ) -> None:
        epoch, everywhere = self.int("leader_epoch"), np.ones(len(self.events), bool)
        writes = is_[Name.PARTITION_STATE]
        known = _at(epoch, state)
        self._compare("leader epoch", epoch, known, ~writes)
        self.say("leader epoch kept", writes & (known >= 0) & (epoch == known))
        self.say("leader epoch goes back", writes & (known >= 0) & (epoch < known))
        self.say("leader epoch jumps", writes & (known >= 0) & (epoch > known + 1))
        roles = any_of(Name.BECAME_LEADER, Name.BECAME_FOLLOWER)
        own = self.latest(replica, roles | any_of(Name.BROKER_STARTED))
        self.say("in the same epoch again", roles & (own >= 0) & (_at(epoch, own) == epoch))
        self.say("in an older epoch than before", roles & (own >= 0) & (_at(epoch, own) > epoch))
        control = self.int("controller_epoch")
        now = _at(control, self.latest(trace, is_[Name.CONTROLLER_EPOCH]))
        self._compare("controller epoch", control, now, everywhere & ~is_[Name.CONTROLLER_EPOCH])
        applied = is_[Name.CONTROL_REQUEST_APPLIED]
        obeyed = self.latest(hosts, applied)
        self.say(
            "controller epoch below an obeyed one", applied & (obeyed >= 0) & (_at(control, obeyed) > control)
        )
        process = self.int("broker_epoch")
        registered = self.latest(hosts, is_[Name.BROKER_ZNODE] & (process >= 0))
        self._compare("broker epoch", process, _at(process, registered), everywhere & ~is_[Name.BROKER_ZNODE])
        self.say("gone", is_[Name.BROKER_ZNODE] & (process < 0))
        version = self.int("zk_version")
        self._compare("version", version, _at(version, state), any_of(Name.ISR_UPDATED))

    def _members(
        self,
        trace: _Key,
        is_: dict[Name, Flags],
        state: Ints,
        assigned: Ints,
        node: Ints,
        any_of: Callable[..., Flags],
    ) -> None:
        isr, replicas, leader = self.bits("isr"), self.bits("replicas"), self.int("leader")
        writes = is_[Name.PARTITION_STATE]
        alive = self._alive(trace, is_, node)
        held, before = _at(isr, state, 0), _at(leader, state)
        wanted = _at(replicas, assigned, 0)
        changes = any_of(Name.PARTITION_STATE, Name.ISR_PROPOSED, Name.ISR_UPDATED)
        self.say("ISR empty", changes & (isr == 0))
        self.say("ISR of one", writes & (isr != 0) & (isr & (isr - 1) == 0))
        self.say("ISR with somebody gone", changes & (isr & ~alive != 0))
        self.say("ISR adds somebody gone", changes & (state >= 0) & (isr & ~held & ~alive != 0))
        self.say("ISR with somebody unassigned", changes & (wanted != 0) & (isr & ~wanted != 0))
        self.say("ISR grows", writes & (state >= 0) & (isr & ~held != 0))
        self.say("ISR shrinks", writes & (state >= 0) & (held & ~isr != 0))
        self.say("ISR other than ZooKeeper's", any_of(Name.BECAME_LEADER) & (state >= 0) & (isr != held))
        self.say("no leader", writes & (leader < 0))
        self.say("new leader", writes & (state >= 0) & (leader >= 0) & (leader != before))
        elected = writes & (state >= 0) & (leader >= 0) & (leader != before)
        self.say("from outside of the ISR", elected & ~_has(held, leader))
        self.say("leader gone", writes & (leader >= 0) & ~_has(alive, leader))
        by = any_of(*REPLICA) & (state >= 0)
        self.say("by the leader", by & (before == node))
        self.say("out of the ISR", by & (before != node) & ~_has(held, node) & _has(wanted, node))
        self.say("unassigned", by & (wanted != 0) & ~_has(wanted, node))
        self.say(
            "of another leader",
            any_of(Name.BECAME_FOLLOWER, Name.TRUNCATED) & by & (leader >= 0) & (leader != before),
        )
        self.say("taken out", any_of(Name.REASSIGNMENT, Name.ASSIGNMENT) & (replicas == 0))
        self.say(
            "by an operator", any_of(Name.REASSIGNMENT, Name.ASSIGNMENT, Name.TOPIC_DELETION) & (node < 0)
        )

    def _alive(self, trace: _Key, is_: dict[Name, Flags], node: Ints) -> Ints:
        """The brokers that had a znode at each row, as sets."""
        of_broker = is_[Name.BROKER_ZNODE] & (node >= 0) & (node <= MOST_BROKERS)
        there = self.int("broker_epoch") >= 0
        found = np.zeros(len(self.events), np.int64)
        for broker in np.unique(node[of_broker]).tolist():
            latest = self.latest(trace, of_broker & (node == broker), before=False)
            found |= np.where((latest >= 0) & there[np.maximum(latest, 0)], 1 << broker, 0)
        return found

    def _offsets(self, is_: dict[Name, Flags], replica: _Key, any_of: Callable[..., Flags]) -> None:
        offset, end, mark = self.int("offset"), self.int("end_offset"), self.int("high_watermark")
        counts = pc.list_value_length(self.events.column("values")).to_numpy().astype(np.int64)
        appended = is_[Name.APPENDED]
        cut = is_[Name.TRUNCATED]
        knows_end = any_of(
            Name.APPENDED, Name.TRUNCATED, Name.BECAME_LEADER, Name.BECAME_FOLLOWER, Name.LOG_RECOVERED
        )
        ends = np.where(appended, np.maximum(offset + counts, end), offset)
        known = _at(ends, self.latest(replica, knows_end))
        marks = _at(mark, self.latest(replica, mark >= 0))
        self.say("past the log end", appended & (known >= 0) & (offset > known))
        self.say("below the log end", appended & (known >= 0) & (offset < known))
        self.say("nothing", cut & (offset >= end))
        self.say("below the high watermark", cut & (mark >= 0) & (offset < mark))
        self.say("to the high watermark", cut & (mark >= 0) & (offset == mark) & (offset < end))
        self.say("high watermark goes back", (mark >= 0) & (marks >= 0) & (mark < marks) & ~cut)
        self.say(
            "high watermark beyond the log",
            (mark >= 0)
            & (known >= 0)
            & (mark > known)
            & ~any_of(Name.APPENDED, Name.TRUNCATED, Name.LOG_RECOVERED, Name.LOG_START),
        )
        recovered = is_[Name.LOG_RECOVERED]
        self.say("shorter than before", recovered & (known >= 0) & (offset < known))
        start = self.int("log_start_offset")
        self.say("log start beyond the high watermark", (start >= 0) & (mark >= 0) & (start > mark))
        starts = any_of(Name.BECAME_LEADER, Name.BECAME_FOLLOWER)
        self.say("high watermark below the end", starts & (mark >= 0) & (offset >= 0) & (mark < offset))
        begins = _at(offset, self.latest(replica, is_[Name.BECAME_LEADER]))
        self.say("empty", recovered & (offset == 0))
        self.say("below its epoch's start", is_[Name.HIGH_WATERMARK] & (begins >= 0) & (mark < begins))

    def _controllers(self, trace: _Key, is_: dict[Name, Flags], node: Ints) -> None:
        leader = self.int("leader")
        znode = self.latest(trace, is_[Name.CONTROLLER_ZNODE])
        named = _at(leader, znode)
        by = is_[Name.CONTROLLER_ELECTED] | is_[Name.PARTITION_STATE] | is_[Name.CONTROLLER_RESIGNED]
        state_by_controller = by & (node >= 0) & (znode >= 0)
        self.say(
            "not the one in /controller",
            state_by_controller & (named >= 0) & (named != node) & ~self._by_leader(is_, node),
        )
        self.say("gone", is_[Name.CONTROLLER_ZNODE] & (leader < 0))

    def _by_leader(self, is_: dict[Name, Flags], node: Ints) -> Flags:
        """Writes of a partition's state by its leader, which changes the ISR."""
        found: Flags = is_[Name.PARTITION_STATE] & (self.int("leader") == node)
        return found


def _at(values: Ints, rows: Ints, otherwise: int = -1) -> Ints:
    """The values at other rows; where there is none (-1), `otherwise`."""
    return np.where(rows >= 0, values[np.maximum(rows, 0)], otherwise)


def _has(sets: Ints, members: Ints) -> Flags:
    """Whether each set has the member; -1 is in none."""
    inside = (members >= 0) & (members <= MOST_BROKERS)
    found: Flags = inside & ((sets >> np.clip(members, 0, MOST_BROKERS)) & 1 == 1)
    return found


_CAUSES, _REASONS = 1 << 20, 1 << 20


def joined(name: Ints, causes: Ints, details: Ints) -> Ints:
    """One number for name, cause and reason."""
    return ((name + 1) * _CAUSES + causes + 1) * _REASONS + details + 1


def _base(joined: int, causes: list[str], reasons: list[str]) -> str:
    """The words of name, cause and reason."""
    rest, detail = divmod(joined, _REASONS)
    name, cause = divmod(rest, _CAUSES)
    words = NAMES[name - 1] if name else ""
    if cause:
        words += f" {plain(causes[cause - 1])}" if causes[cause - 1] else ""
    if detail:
        words += f" ({reasons[detail - 1]})" if reasons[detail - 1] else ""
    return words
