"""What is read from the log under test: everything after every step, a stretch of it, the record of a
timestamp.

Owns the comparison of a log in service with the model: records, ends, epochs, producers. Nothing here changes
the log.
"""

from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from fencepost.impl.log.batch.record_batch import BatchHeader, CorruptBatchError, read_headers, read_records
from fencepost.machines.log.life import LogLife

READ_BYTES = 150
"""Of one read: about two small batches, so that a read often ends inside of the log."""


class LogReading(LogLife):
    """Rules that look."""

    def up(self) -> bool:
        """For preconditions."""
        return self.in_service

    @precondition(up)
    @invariant()
    def agrees(self) -> None:
        """The log is what the model says."""
        log, model = self.log, self.model
        assert (log.log_end_offset, log.log_start_offset) == (model.end, model.start)
        batches: list[tuple[BatchHeader, bytes]] = []
        try:
            if not self.survive(lambda: batches.extend(log.batches(check_crc=True))):
                return
        except CorruptBatchError as error:
            raise AssertionError(f"a batch in the log is bad: {error}") from error
        headers = [header for header, _ in batches]
        found = [
            self.known(header, record) for header, data in batches for record in read_records(data, header)
        ]
        first = log.segments.first.base_offset
        wrong = model.complaints(found, first=first, end=log.log_end_offset, at_least=model.end)
        assert not wrong, wrong
        self.producers_agree(headers, first)
        if not model.lied:
            self.epochs_agree(headers)

    def producers_agree(self, headers: list[BatchHeader], first: int) -> None:
        """The log remembers of each producer what its batches say. The last batch of each is there, empty if
        need be, unless it was deleted.

        Args:
            headers: of the batches, in order.
            first: the log start.
        """
        log, model = self.log, self.model
        last = {
            header.producer_id: header
            for header in headers
            if header.producer_id >= 0 and not header.is_control
        }
        for producer in (7, 8):
            state, promised = log.producers.producers.get(producer), model.last_of(producer)
            ahead = state is not None and any(
                batch.last_offset >= log.log_end_offset for batch in state.batches
            )
            assert not ahead, f"producer ahead of the log: {state}"
            if promised is None or promised.first < first or model.lied:
                continue
            assert state is not None, f"producer {producer} is forgotten, and {promised} is in the log"
            assert state.last_sequence == promised.last_sequence, (
                f"of producer {producer} the log knows {state}, and its last batch is {promised}"
            )
            stands = last.get(producer)
            assert stands is not None and stands.last_offset == promised.last, (
                f"the last batch of producer {producer} is gone: {promised}"
            )

    def epochs_agree(self, headers: list[BatchHeader]) -> None:
        """Each batch's epoch is the one that the cache has for its offset."""
        entries, start = self.log.epochs.entries, self.log.log_start_offset
        for header in headers:
            began = [entry for entry in entries if entry[1] <= max(header.base_offset, start)]
            if header.last_offset >= start:
                assert began and began[-1][0] == header.leader_epoch, (
                    f"epochs {entries} contradict a batch: {header}"
                )

    @precondition(up)
    @rule(back=st.integers(0, 40), bound_back=st.integers(-3, 20))
    def read(self, back: int, bound_back: int) -> None:
        """Read from before the end up to a bound.

        Args:
            back: how far before the end to begin, in records.
            bound_back: how far before the end to stop; below 0 it is beyond the end.
        """
        log, model = self.log, self.model
        start, bound = max(model.end - back, log.log_start_offset), max(0, model.end - bound_back)
        answers: list[bytes] = []
        if not self.survive(lambda: answers.append(log.read(start, max_bytes=READ_BYTES, end_offset=bound))):
            return
        headers = list(read_headers(answers[0]))
        got = [self.known(header, one) for header in headers for one in read_records(answers[0], header)]
        assert all(one in model.ever.get(one.offset, []) for one in got), got
        late = [header for header in headers if header.last_offset >= min(bound, model.end)]
        beyond = [header.last_offset for header in late if header.base_offset not in model.displaced]
        assert not beyond, f"read beyond the end {model.end} or the bound {bound}: {beyond}"
        if model.lied:
            return
        assert all(model.records.get(one.offset) == one for one in got), got
        expected = model.records.get(start)
        if expected is not None and start not in model.removable and expected.last < min(bound, model.end):
            assert start in [one.offset for one in got], f"{expected} is not in what was read"

    @precondition(lambda self: self.in_service and not self.model.lied)
    @rule(back_ms=st.integers(-10, 400))
    def look_up(self, back_ms: int) -> None:
        """The first record as late as a timestamp."""
        wanted, log = self.now_ms - back_ms, self.log

        def looking() -> None:
            found = log.find_timestamp(wanted, end_offset=log.log_end_offset)
            start = log.log_start_offset
            late = [one.offset for one in self.found() if one.timestamp_ms >= wanted and one.offset >= start]
            assert (found.offset if found else None) == min(late, default=None), (found, late)

        self.survive(looking)
