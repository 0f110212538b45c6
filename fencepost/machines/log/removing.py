"""What is removed from the log under test: truncation, retention, deletion by request, compaction.

Owns what may go, and what must. Whatever interrupts a removal, it takes what it may and nothing else; one
that has returned has taken all that was due.
"""

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from fencepost.impl.log.log_options import UNLIMITED
from fencepost.machines.log.life import DELETE_RETENTION_MS, DELETED, KEY, LogLife


class LogRemoving(LogLife):
    """Rules that take away."""

    def up(self) -> bool:
        """For preconditions."""
        return self.in_service

    # ---- truncation

    @precondition(up)
    @rule(back=st.integers(-1, 12))
    def truncate(self, back: int) -> None:
        """Cut so many offsets before the end (or all of them; or beyond the end, which cuts nothing)."""
        committed = self.model.high_watermark if self.options.compact else 0  # what superseded a record stays
        logs, offset = self.logs, max(self.log.log_start_offset, self.model.end - back, committed)
        assert logs is not None
        end = self.model.batch_start(offset)
        if end < self.log.segments.first.base_offset:
            return
        self.model.may_cut(end)
        if self.survive(lambda: logs.truncate_to(KEY, offset)):
            self.model.cut(self.log.log_end_offset)
            assert self.model.lied or end <= self.log.log_end_offset <= offset
            beyond = [entry for entry in self.log.epochs.entries if entry[1] >= self.log.log_end_offset]
            assert not beyond, f"epochs of what was cut: {beyond}, and the log ends at {self.model.end}"
        self.drop_if_offline()

    @precondition(up)
    @rule(ahead=st.integers(-3, 20))
    def truncate_fully(self, ahead: int) -> None:
        """Drop everything and go on elsewhere."""
        logs, offset = self.logs, max(0, self.model.end + ahead)
        assert logs is not None
        self.model.may_cut(0)
        self.model.anywhere = True
        if self.survive(lambda: logs.truncate_fully_and_start_at(KEY, offset)):
            self.model.restart_at(offset)

    @precondition(up)
    @rule()
    def delete_and_recreate(self) -> None:
        """The topic is deleted and created anew: another log, of the same name."""
        logs, files = self.logs, self.files
        assert logs is not None
        self.model.may_cut(0)
        self.model.anywhere = True
        self.epoch += 1

        def deleting() -> None:
            logs.forget(KEY)
            number = sum(name.startswith(f"{KEY}.") for name in files.list(""))
            doomed = f"{KEY}.{number}{DELETED}"
            files.rename(str(KEY), doomed)
            files.sync_directory("")
            for name in files.list(doomed):
                files.remove(f"{doomed}/{name}")
            logs.open(KEY, self.options)

        if self.survive(deleting):
            self.model.restart_at(0)
        else:
            self.leave()

    # ---- retention

    @precondition(up)
    @rule(share=st.integers(0, 4))
    def commit(self, share: int) -> None:
        """The high watermark moves up: by no, one, ... all quarters of what is missing."""
        self.model.high_watermark += (self.model.end - self.model.high_watermark) * share // 4

    @precondition(up)
    @rule(ms=st.integers(0, 100))
    def retain(self, ms: int) -> None:
        """Remove what is committed, as far as whole segments go."""
        self.now_ms += ms
        self.model.deletable_below = max(self.model.deletable_below, self.model.start)
        if self.options.delete:
            self.model.deletable_below = max(self.model.deletable_below, self.model.high_watermark)
        retention = self.parts.retention(self.log)
        if self.survive(
            lambda: retention.apply(high_watermark=self.model.high_watermark, now_ms=self.now_ms)
        ):
            self.model.start = self.log.log_start_offset
            self.model.durable = max(self.model.durable, self.log.recovery_point)
            if not self.model.lied:
                due = self.due()
                assert not due, f"the oldest segment is {due}, and still there"

    def due(self) -> str:
        """Why the oldest segment should have gone; "" if it should not."""
        log, options = self.log, self.options
        oldest, segments = log.segments.first, log.segments.all
        end = segments[1].base_offset if len(segments) > 1 else log.log_end_offset
        if end > self.model.high_watermark or not oldest.size:
            return ""
        if end <= log.log_start_offset:
            return "below the log start"
        if not options.delete:
            return ""
        if (
            options.retention_ms != UNLIMITED
            and oldest.largest_timestamp_ms < self.now_ms - options.retention_ms
        ):
            return "too old"
        rest = sum(segment.size for segment in segments[1:])
        return "too much" if options.retention_bytes != UNLIMITED and rest >= options.retention_bytes else ""

    @precondition(up)
    @rule(ms=st.integers(0, 150), restart=st.sampled_from(["", "crash", "stop"]))
    def maintain(self, ms: int, restart: str) -> None:
        """The background work of a broker whose followers have all there is; and perhaps a restart after
        it."""
        if self.survive(self.log.roll):
            self.model.durable = max(self.model.durable, self.log.recovery_point)
            self.model.high_watermark = self.model.end
        if self.in_service and self.options.compact:
            self.compact(ms=ms)
        if self.in_service:
            self.retain(ms=ms)
        if self.in_service and restart:
            (self.crash_and_restart if restart == "crash" else self.stop_and_restart)()

    @precondition(up)
    @rule(share=st.integers(1, 4))
    def delete_records(self, share: int) -> None:
        """Move the log start up to a part of what is committed."""
        start = self.log.log_start_offset
        offset = start + max(0, self.model.high_watermark - start) * share // 4
        if self.survive(lambda: self.log.advance_log_start_offset(offset)):
            self.model.start = self.log.log_start_offset
            self.model.deletable_below = max(self.model.deletable_below, offset)

    # ---- compaction

    @precondition(lambda self: self.in_service and self.options.compact)
    @rule(ms=st.integers(0, 150))
    def compact(self, ms: int) -> None:
        """Keep the latest record of each key."""
        self.now_ms += ms
        logs, model = self.logs, self.model
        assert logs is not None
        below = min(model.high_watermark, self.log.segments.active.base_offset)
        model.may_compact(below, self.now_ms, DELETE_RETENTION_MS)
        model.compacted(below, self.now_ms)
        cleaner = self.parts.cleaner(self.log)

        def last_offset() -> int:
            return max((header.last_offset for header, _ in self.log.batches()), default=-1)

        def cleaning() -> None:
            before = last_offset()
            done = cleaner.clean(
                first_dirty_offset=logs.first_dirty.get(KEY, 0),
                high_watermark=model.high_watermark,
                now_ms=self.now_ms,
            )
            logs.first_dirty[KEY] = done.first_dirty_offset
            present = {one.offset for one in self.found()}
            stale = {
                one
                for one in model.superseded(done.first_dirty_offset)
                if one in present and one >= max(model.start, model.lost_start)
            }
            assert model.lied or not stale, f"superseded and still there: {sorted(stale)}"
            after = last_offset()
            assert model.lied or after == before, f"the last batch ended at {before}, and ends at {after}"

        self.survive(cleaning)
