"""What is written to the log under test: as the leader, as a follower, once more after a lost answer; and
made durable.

Owns the batches and their producers. A batch that was sent twice is recognised, before and after a restart;
one that never got in is not. A follower takes what its leader sends.
"""

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from fencepost.impl.log.batch.record_batch import Record, encode_batch
from fencepost.machines.log.life import KEY, LogLife
from fencepost.machines.log.model import Known

KEYS = st.sampled_from(["a", "b", "c"])
PRODUCERS = st.sampled_from([None, 7, 8])
BATCH = st.lists(KEYS, min_size=1, max_size=3)
FIRST_SEQUENCES = st.sampled_from([0, 5])


class LogWriting(LogLife):
    """producer_epochs: of the next batch of each producer."""

    def __init__(self) -> None:
        super().__init__()
        self.producer_epochs = {7: 0, 8: 0}

    # ---- batches

    def make_batch(
        self, keys: list[str], *, tombstone: bool, producer: int | None, base: int, sequence: int
    ) -> list[Known]:
        """Records with new values. tombstone: the first of them."""
        batch = []
        for index, key in enumerate(keys):
            self.written += 1
            batch.append(
                Known(
                    offset=base + index,
                    key=key.encode(),
                    value=None if tombstone and index == 0 else b"%d" % self.written,
                    timestamp_ms=self.now_ms,
                    first=base,
                    last=base + len(keys) - 1,
                    producer_id=-1 if producer is None else producer,
                    producer_epoch=-1 if producer is None else self.producer_epochs[producer],
                    sequence=sequence,
                )
            )
        return batch

    def next_sequence(self, producer: int | None, *, unknown: int = 0) -> int:
        """What the producer sends next: after its last batch that the log knows, from 0 in a new epoch.
        unknown: where it is, if the log knows nothing."""
        if producer is None:
            return -1
        state = self.log.producers.producers.get(producer)
        if state is None or not state.batches:
            return unknown if state is None else 0
        return state.last_sequence + 1 if state.epoch == self.producer_epochs[producer] else 0

    def up(self) -> bool:
        """For preconditions."""
        return self.in_service

    # ---- as the leader

    @precondition(up)
    @rule(keys=BATCH, tombstone=st.booleans(), producer=PRODUCERS, ms=st.integers(0, 60))
    def append(self, keys: list[str], tombstone: bool, producer: int | None, ms: int) -> None:
        """Append one batch.

        Args:
            keys: one a record.
            tombstone: whether the last record has no value.
            producer: the producer's number; None: none.
            ms: virtual milliseconds that pass before it.
        """
        self.now_ms += ms
        batch = self.make_batch(
            keys,
            tombstone=tombstone,
            producer=producer,
            base=self.model.end,
            sequence=self.next_sequence(producer),
        )
        self.model.try_append(batch)
        if self.survive(lambda: self.log.append_as_leader(produced(batch), self.epoch, now_ms=self.now_ms)):
            self.acknowledge(batch[-1].offset + 1)

    @precondition(up)
    @rule(
        batches=st.lists(st.tuples(BATCH, st.booleans(), PRODUCERS), min_size=2, max_size=8),
        settle=st.booleans(),
    )
    def append_many(self, batches: list[tuple[list[str], bool, int | None]], settle: bool) -> None:
        """Several batches, so that there are several segments. settle: and then a new segment, and all is
        committed."""
        for keys, tombstone, producer in batches:
            if self.in_service:
                self.append(keys=keys, tombstone=tombstone, producer=producer, ms=len(keys))
        if settle and self.in_service:
            self.roll()
            self.model.high_watermark = self.model.end

    def acknowledge(self, end: int) -> None:
        """The log ends here now."""
        self.model.end = end
        if self.options.flush_messages and end - self.log.recovery_point >= self.options.flush_messages:
            raise AssertionError("flush.messages is due")
        self.model.durable = max(self.model.durable, self.log.recovery_point)

    @precondition(up)
    @rule(producer=st.sampled_from([7, 8]))
    def retry(self, producer: int) -> None:
        """The last batch once more: it is recognised."""
        last = self.model.last_of(producer)
        if last is None or self.model.lied or last.first < self.log.segments.first.base_offset:
            return
        batch = [replayed(last, offset) for offset in range(last.first, last.last + 1)]
        answers = []
        if self.survive(lambda: answers.append(self.log.append_as_leader(produced(batch), self.epoch))):
            assert (answers[0].duplicate, answers[0].base_offset, answers[0].last_offset) == (
                True,
                last.first,
                last.last,
            ), f"a batch was sent twice and not recognised: {answers}"

    @precondition(up)
    @rule(producer=st.sampled_from([7, 8]))
    def new_producer_epoch(self, producer: int) -> None:
        """The producer begins anew: its next batch has sequence 0."""
        self.producer_epochs[producer] += 1

    @precondition(up)
    @rule(lead=st.booleans())
    def new_epoch(self, lead: bool) -> None:
        """Another leader. lead: this one, which notes where its epoch begins (KAFKA-7415)."""
        self.epoch += 1
        log = self.log

        def elected() -> None:
            with log.in_service("become leader"):
                log.epochs.assign(self.epoch, log.log_end_offset)

        if lead:
            self.survive(elected)

    # ---- as a follower

    @precondition(up)
    @rule(
        batches=st.lists(st.tuples(BATCH, PRODUCERS, st.integers(0, 2)), min_size=1, max_size=4),
        elections=st.integers(0, 2),
        known_from=FIRST_SEQUENCES,
    )
    def follow(
        self, batches: list[tuple[list[str], int | None, int]], elections: int, known_from: int
    ) -> None:
        """What a leader sends in one answer: batches of several producers, of one epoch or two, with gaps
        where the topic is compacted. known_from: where a producer is of which this log knows nothing
        (KAFKA-6003)."""
        base, data, end = self.model.end, b"", self.model.end
        sequences = {one: self.next_sequence(one, unknown=known_from) for one in (7, 8)}
        for number, (keys, producer, gap) in enumerate(batches):
            if self.options.compact and number:
                base += gap
            if number == len(batches) - 1:
                self.epoch += elections
            batch = self.make_batch(
                keys,
                tombstone=gap == 2,
                producer=producer,
                base=base,
                sequence=-1 if producer is None else sequences[producer],
            )
            if producer is not None:
                sequences[producer] += len(keys)
            self.model.try_append(batch)
            data += encoded(batch, base_offset=base, leader_epoch=self.epoch)
            base = end = base + len(keys)
        if self.survive(lambda: self.log.append_as_follower(data)):
            self.acknowledge(end)

    @precondition(up)
    @rule(
        ahead=st.integers(0, 20),
        keys=st.lists(KEYS, min_size=2, max_size=3),
        inside=st.integers(1, 2),
        producer=PRODUCERS,
        sequence=FIRST_SEQUENCES,
    )
    def join(self, ahead: int, keys: list[str], inside: int, producer: int | None, sequence: int) -> None:
        """As a new replica of a leader whose log starts inside a batch, which comes whole (KAFKA-6975)."""
        logs, base = self.logs, self.model.end + ahead
        start = base + min(inside, len(keys) - 1)
        assert logs is not None
        self.model.may_cut(0)
        self.model.anywhere = True
        if not self.survive(lambda: logs.truncate_fully_and_start_at(KEY, start)):
            return
        self.model.restart_at(start)
        batch = self.make_batch(
            keys, tombstone=False, producer=producer, base=base, sequence=-1 if producer is None else sequence
        )
        self.model.anywhere = True
        self.model.try_append(batch)
        data = encoded(batch, base_offset=base, leader_epoch=self.epoch)
        if self.survive(lambda: self.log.append_as_follower(data)):
            self.model.anywhere = False
            self.model.durable = 0
            self.acknowledge(batch[-1].offset + 1)
            assert self.log.log_start_offset == start, (
                f"the log starts at {self.log.log_start_offset}, not at {start}"
            )

    # ---- making durable

    @precondition(up)
    @rule()
    def flush(self) -> None:
        """Make it durable."""
        if self.survive(self.log.flush):
            self.model.durable = self.model.end

    @precondition(up)
    @rule()
    def roll(self) -> None:
        """Begin a new segment."""
        if self.survive(self.log.roll):
            self.model.durable = max(self.model.durable, self.log.recovery_point)

    @precondition(up)
    @rule()
    def checkpoint(self) -> None:
        """Write recovery point, log start and the cleaner's offset."""
        assert self.logs is not None
        if not self.survive(self.logs.checkpoint):
            self.leave()


def replayed(record: Known, offset: int) -> Known:
    """A record of the same batch with the same sequence numbers; duplicates are known by those alone."""
    return Known(
        offset=offset, key=record.key, value=record.value, timestamp_ms=record.timestamp_ms,
        first=record.first, last=record.last, producer_id=record.producer_id,
        producer_epoch=record.producer_epoch, sequence=record.sequence,
    )  # fmt: skip


def produced(batch: list[Known]) -> bytes:
    """A batch as its producer sends it: offsets count from 0."""
    return encoded(batch, base_offset=0, leader_epoch=-1)


def encoded(batch: list[Known], *, base_offset: int, leader_epoch: int) -> bytes:
    """A batch as it is in a log."""
    first = batch[0]
    return encode_batch(
        [
            Record(one.offset - first.first + base_offset, one.timestamp_ms, one.key, one.value)
            for one in batch
        ],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=first.producer_id,
        producer_epoch=first.producer_epoch,
        base_sequence=first.sequence,
    )
