"""The skip rule of the streaming form: possible excuses for a read that passed over a record, as far as they
are known by then.

Owns the known log start, the newest offset of each key, and the skips that wait. A later claim of a log start
may explain a skip, and so may control records of a transaction that begins later. The rule accepts every
excuse that may prove true, so it misses some skips and never adds one.
"""

from attrs import Factory, define

from fencepost.checkers.log.streaming.memory import Sent, Slot
from fencepost.checkers.log.streaming.streaming_findings import StreamFindings
from fencepost.checkers.operation_columns import NONE
from fencepost.checkers.statements import ISOLATIONS, READ_COMMITTED, TOMBSTONE
from fencepost.checkers.verdict import Finding
from fencepost.traces.operations import Operation
from fencepost.traces.trace import Claims

MOST_UNPLACED = 64
"""The most appends of one key that are kept while their offset is not known."""


@define(kw_only=True)
class KeyState:
    """What is known about a key."""

    # The highest offset with a record of it.
    newest: int = -1
    # Appends of it that were invoked, did not fail, and have no known offset.
    unplaced: set[int] = Factory(set)
    # There were more of those than are kept, so any record of this key may be gone.
    crowded: bool = False


@define(kw_only=True)
class StreamSkips:
    """The skips of one log."""

    # Receives the findings.
    findings: StreamFindings
    # The claims of the trace.
    claims: Claims
    # Whether the topic is compacted.
    compacted: bool
    # Whether each value was sent once.
    unique: bool
    # The most keys that are kept.
    horizon: int
    # The highest claimed log start so far: retention may have removed records below it.
    licence: int = 0
    # Whether a transaction has begun; its control records may fill holes.
    transactional: bool = False
    # Of the skips that a later log start may explain, the one at the highest offset.
    waiting: tuple[int, Finding] | None = None
    # The first skip over an offset that is not known to hold a record, but must if offsets are dense.
    dense: Finding | None = None
    # Of such skips that a later log start may explain, the one at the highest offset.
    dense_waiting: tuple[int, Finding] | None = None
    # What is known about each key.
    keys: dict[str, KeyState] = Factory(dict)
    # An append of a key was shown at a second, higher offset (a finding of its own). That may excuse skips
    # that were reported before.
    moved: bool = False

    def final(self) -> Finding | None:
        """A waiting skip that nothing has explained, if the stream ends now."""
        if self.waiting is not None and self.waiting[0] >= self.licence:
            return self.waiting[1]
        if self.transactional or self.compacted:
            return None
        if self.dense_waiting is not None and self.dense_waiting[0] >= self.licence:
            return self.dense_waiting[1]
        return self.dense

    def claim(self, log_start: int | None) -> None:
        """A client was shown this log start."""
        if self.claims.retention and log_start is not None:
            self.licence = max(self.licence, log_start)

    def sent(self, operation: Operation) -> None:
        """An append was invoked."""
        if not self.compacted or operation.key is None:
            return
        if operation.key not in self.keys and len(self.keys) >= self.horizon:
            return  # an unknown key is an excuse
        state = self.keys.setdefault(operation.key, KeyState())
        if len(state.unplaced) < MOST_UNPLACED:
            state.unplaced.add(operation.op_id)
        else:
            state.crowded = True

    def placed(self, operation: Operation, last: int) -> None:
        """The offset of an append is known, with its last record at `last`; or (-1) it failed."""
        state = self.keys.get(operation.key) if operation.key is not None else None
        if state is not None:
            self.moved |= operation.op_id not in state.unplaced and last > state.newest
            state.unplaced.discard(operation.op_id)
            state.newest = max(state.newest, last)

    def passed(
        self,
        read: Operation,
        first: int,
        stop: int,
        *,
        waits: bool,
        slots: dict[int, Slot],
        sends: dict[int, Sent],
    ) -> None:
        """A read went from offset `first` (its start, or the one after its last record) to `stop`. waits: a
        log start that is claimed later may explain it."""
        near = stop - first < len(slots)
        held = [
            o for o in (range(first, stop) if near else sorted(slots)) if first <= o < stop and o in slots
        ]
        wrong = [o for o in held if not self._excused(read, slots[o], o, sends)]
        for offset, by in (
            (wrong[-1], (read, slots[wrong[-1]].by)) if wrong else (NONE, ()),
            (stop - 1, (read,)),
        ):
            if offset < 0:
                continue
            finding = self.findings.made(
                "skipped_offset", offset, by, f"offset {offset} before {stop}", f"a jump to {stop}"
            )
            if len(by) == 1 and not self.claims.dense:
                continue
            self._keep(offset, finding, held=len(by) == 2, waits=waits)

    def _keep(self, offset: int, finding: Finding, *, held: bool, waits: bool) -> None:
        """Report a skip now, or keep it until no later excuse is possible."""
        if not waits and held:
            self.findings.found.setdefault("skipped_offset", finding)
        elif not waits:
            self.dense = self.dense or finding
        elif held and (self.waiting is None or offset > self.waiting[0]):
            self.waiting = (offset, finding)
        elif not held and (self.dense_waiting is None or offset > self.dense_waiting[0]):
            self.dense_waiting = (offset, finding)

    def _excused(self, read: Operation, slot: Slot, offset: int, sends: dict[int, Sent]) -> bool:
        """Whether the record at this offset may be gone, or invisible to this read."""
        committed = read.isolation == ISOLATIONS[READ_COMMITTED]
        if not self.compacted and not committed:
            return False
        sent = sends.get(slot.value)
        if sent is None or not self.unique:
            return True
        append = sent.operation
        if sent.transactional or not self.compacted:
            return sent.transactional
        state = self.keys.get(append.key) if append.key is not None else None
        if append.argument == TOMBSTONE or (append.key is not None and state is None):
            return True
        if state is None:
            return False
        exact = (
            self.claims.check != "content"
            and not self.claims.clock_uncertainty_ns
            and not self.claims.duplicates
        )
        return not exact or state.crowded or bool(state.unplaced) or state.newest > offset
