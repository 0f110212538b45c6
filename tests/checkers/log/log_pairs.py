"""A second slow reference: every anomaly by its definition, over all pairs of statements, with clocks and
loss.

`anomalies` maps each anomaly that holds to the uncertainty that clears its hardest pair (infinity where none
does). Step 5 is not here: it has no pair. Values are unique.
"""

from itertools import combinations, pairwise

from log_claims import (
    ABORTED,
    COMMITTED,
    OPEN,
    before_end,
    claims_of,
    compacted,
    dense,
    fate_of,
    licence_of,
    told_for_good,
    transaction_of,
)
from log_exhaustive import firm, passed_over

from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.trace import Trace

INFINITE = float("inf")
Found = dict[str, float]


class History:
    """The statements of a trace about one log."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        operations = trace.operations
        self.appends = [op for op in operations if op.function is Function.APPEND]
        self.reads = [
            op for op in operations if op.function is not Function.APPEND and op.outcome is Outcome.OK
        ]
        self.sender = {record.value: op for op in self.appends for record in op.records}
        # (offset, value, epoch, lasting, operation): acknowledged or read
        self.told = [
            (
                op.offset + i,
                record.value,
                -1 if op.leader_epoch is None else op.leader_epoch,
                firm(op) or told_for_good(op, trace),
                op,
            )
            for op in self.appends
            if op.offset is not None and op.outcome is not Outcome.FAIL
            for i, record in enumerate(op.records)
        ]
        self.told += [(r.offset, r.value, r.leader_epoch, True, op) for op in self.reads for r in op.records]
        self.batches = self._batches()

    def lossy(self, offset: int) -> bool:
        claims = self.trace.claims
        return claims.content_by_epoch or any(r.start <= offset < r.end for r in claims.loss)

    def _batches(self) -> list[tuple[int, int, Operation | None]]:
        """(base, last, append) of everything that stands where no loss is allowed."""
        found = set()
        for offset, value, _, lasting, _op in self.told:
            sender = self.sender.get(value)
            if not lasting or self.lossy(offset):
                continue
            if sender is None or not self.stands(sender):
                found.add((offset, offset, -1))
            else:
                base = offset - [record.value for record in sender.records].index(value)
                found.add((base, base + len(sender.records) - 1, sender.op_id))
        by_id = {op.op_id: op for op in self.appends}
        return [(b, e, by_id.get(i)) for b, e, i in sorted(found) if not self.lossy(e)]

    def stands(self, append: Operation) -> bool:
        """May it stand in the log? Also if it failed with its transaction."""
        return append.outcome is not Outcome.FAIL or fate_of(append, self.trace) == ABORTED

    def writes(self, append: Operation) -> bool:
        """May its records replace older ones of their key?"""
        return append.outcome is not Outcome.FAIL and fate_of(append, self.trace) != ABORTED

    def shown_committed(self, append: Operation) -> bool:
        """Did a read_committed read show a record of its transaction of unknown outcome?"""
        mine = transaction_of(append, self.trace)
        if fate_of(append, self.trace) != OPEN:
            return False
        return any(
            transaction_of(self.sender[r.value], self.trace) is mine
            for op in self.reads
            if op.isolation == "read_committed"
            for r in op.records
            if r.value in self.sender and self.sender[r.value].outcome is not Outcome.FAIL
        )

    def slot(self, offset: int) -> tuple[int, int]:
        """The batch around an offset."""
        return next(((b, e) for b, e, _ in self.batches if b <= offset <= e), (offset, offset))

    def spared(self, offset: int) -> int:
        """The highest offset at or below this one where no loss is allowed."""
        while offset >= 0 and self.lossy(offset):
            offset -= 1
        return offset

    @property
    def overlapping(self) -> bool:
        """Do two batches claim one offset? Then what stands where, and so the bounds of real time, is
        ambiguous."""
        return any(b <= e for (_, e, _), (b, _, _) in zip(self.batches, self.batches[1:], strict=False))


TIMED = frozenset(
    {
        "append_inversion",
        "read_before_sent",
        "append_below_shown_end",
        "stale_read",
        "lost_write",
        "high_watermark_regressed",
        "open_transaction_read",
    }
)


def clearing(low: int, high: int, one_clock: bool) -> float:
    """The uncertainty that clears a pair whose lower bound is above its upper one; 0 if it is none."""
    if low <= high:
        return 0
    return INFINITE if one_clock else (low - high + 1) // 2


def anomalies(trace: Trace) -> Found:
    """Each anomaly that holds, and what clears it."""
    history = History(trace)
    found: Found = dict.fromkeys(sorted(_content(history)), INFINITE)
    excused = max(_skips(history), default=0)
    if excused > trace.claims.clock_uncertainty_ns:
        found["skipped_offset"] = max(found.get("skipped_offset", 0), excused)
    if trace.claims.check != "content":
        for name, severity in _times(history) + _side_times(history):
            if severity > trace.claims.clock_uncertainty_ns:
                found[name] = max(found.get(name, 0), severity)
    return found


def _content(h: History) -> set[str]:
    found = set()
    for (o1, v1, e1, lasting1, _), (o2, v2, e2, lasting2, _) in combinations(h.told, 2):
        plain = lasting1 and lasting2 and not h.lossy(o1) and not h.lossy(o2)
        if plain or (e1 == e2 and e1 >= 0):
            if o1 == o2 and v1 != v2:
                found.add("inconsistent_offsets")
            if v1 == v2 and o1 != o2 and not h.trace.claims.duplicates:
                found.add("duplicate")
        if plain and min(e1, e2) >= 0 and (o1 - o2) * (e1 - e2) < 0:
            found.add("epoch_regressed_in_log")
    for op in h.reads:
        found |= _one_read(h, op)
    return found | _torn(h)


def _one_read(h: History, op: Operation) -> set[str]:
    found = set()
    offsets = [record.offset for record in op.records]
    claims = claims_of(op, h.trace)
    stable = claims.stable if claims.committed else None
    ends = [end for end in (claims.end, stable) if end is not None]
    begin = max(-1 if claims.position is None else claims.position, claims.log_start or 0)
    if any(b <= a for a, b in pairwise(offsets)):
        found.add("unordered_read")
    if any(o < begin or any(o >= end for end in ends) for o in offsets):
        found.add("read_outside_bounds")
    if dense(h.trace) and passed_over(offsets, claims, licence_of(h.trace)):
        found.add("skipped_offset")
    end, start, last_stable = claims.said
    if end is not None and start is not None and start > end:
        found.add("log_start_above_end")
    if end is not None and last_stable is not None and last_stable > end:
        found.add("last_stable_above_end")
    for record in op.records:
        sender = h.sender.get(record.value)
        fate = fate_of(sender, h.trace) if sender else None
        if sender is None:
            found.add("phantom_record")
        elif (fate == ABORTED and claims.committed) or (
            sender.outcome is Outcome.FAIL and not (fate == ABORTED and op.isolation == "read_uncommitted")
        ):
            found.add("failed_append_visible")
    return found


def _skips(h: History) -> list[float]:
    """For each record that a read passed over, the uncertainty that excuses it; infinite where none does."""
    occupant = {o: h.sender.get(v) for o, v, _, lasting, _ in h.told if lasting and not h.lossy(o)}
    occupant |= {o: op for b, e, op in h.batches for o in range(b, e + 1) if op is not None}
    return [
        _excused_at(h, occupant, offset, op, claims.committed)
        for op in h.reads
        for claims in (claims_of(op, h.trace),)
        for offset in passed_over([r.offset for r in op.records], claims, licence_of(h.trace))
        if offset in occupant
    ]


def _excused_at(
    h: History, occupant: dict[int, Operation | None], offset: int, read: Operation, committed: bool
) -> float:
    append, timed = occupant[offset], h.trace.claims.check != "content"
    if append is None:
        return INFINITE
    fate = fate_of(append, h.trace)
    hidden = fate == ABORTED or (fate == OPEN and not h.shown_committed(append))
    if hidden and (committed or compacted(h.trace)):
        return 0
    if not compacted(h.trace):
        return INFINITE
    if append.argument == "tombstone":
        return 0
    if append.key is None or not h.writes(append):
        return INFINITE

    def against(lower: Operation) -> float:
        one_clock = lower.clock_id == read.clock_id
        return clearing(lower.invoke_time, read.completion_time or 0, one_clock) if timed else 0

    newer = [o for o, op in occupant.items() if o > offset and op and h.writes(op) and op.key == append.key]
    lows = [(b, op) for b, _, op in h.batches if op is not None]
    lows += [(e, op) for op in h.reads if (e := claims_of(op, h.trace).end) is not None and not h.lossy(e)]
    excuses = [max([0, *(against(op) for b, op in lows if b <= min(newer))])] if newer else []
    placed = {op.op_id for _, _, op in h.batches if op is not None}
    for op in h.appends:
        loose = op.op_id not in placed or h.trace.claims.duplicates
        if op.key == append.key and h.writes(op) and loose:
            excuses.append(against(op))
    return min(excuses, default=INFINITE)


def _torn(h: History) -> set[str]:
    for op in h.reads:
        end = claims_of(op, h.trace).end
        if end is not None and any(b < end <= e for b, e, _ in h.batches):
            return {"torn_batch"}
    if any(b < 0 for b, _, _ in h.batches):
        return {"torn_batch"}
    plain = [(o, v) for o, v, _, lasting, _ in h.told if lasting and not h.lossy(o)]
    for o1, v1 in plain:  # two records of one unacknowledged batch at the wrong distance
        for o2, v2 in plain:
            sender = h.sender.get(v1)
            if h.trace.claims.duplicates or sender is None or not h.stands(sender):
                continue
            if firm(sender) or told_for_good(sender, h.trace):
                continue
            values = [record.value for record in sender.records]
            if v2 in values and v1 != v2 and o1 - values.index(v1) != o2 - values.index(v2):
                return {"torn_batch"}
    at: dict[int, set[int]] = {}
    for b, _, op in h.batches:
        for i, record in enumerate(op.records if op else ()):
            at.setdefault(b + i, set()).add(record.value)
    direct = {offset: {v for o, v in plain if o == offset} for offset, _ in plain}
    for offset, values in at.items():
        if len(direct.get(offset, set())) < 2 and len(values | direct.get(offset, set())) > 1:
            return {"torn_batch"}
    return set()


def _times(h: History) -> list[tuple[str, float]]:
    pairs: list[tuple[str, Operation, Operation]] = []  # name, whose invocation, whose completion
    acked = [
        (h.spared(op.offset + len(op.records) - 1), op)
        for op in h.appends
        if firm(op) and op.offset is not None
    ]
    strong = [(end, op) for op in h.reads if (end := claims_of(op, h.trace).end) is not None]
    beside = [(c, op) for op in h.reads for c in _trusted_beside(h, op) if c is not None]
    shows = [(h.spared(end - 1), h.spared(end - 1), op) for end, op in [*strong, *beside] if end > 0]
    for op in h.reads:
        pairs += [("read_before_sent", h.sender[r.value], op) for r in op.records if r.value in h.sender]
        if op.records:
            reach = max(record.offset for record in op.records)
            spared = h.spared(reach)
            base, last = h.slot(spared)
            shows.append((base - 1, last, op) if spared == reach else (spared, spared, op))
    for base, _, op in h.batches:
        if op is not None:
            pairs += [("append_inversion", op, other) for last, other in acked if base <= last]
            pairs += [("append_below_shown_end", op, other) for below, _, other in shows if base <= below]
    for end, op in strong:
        if not h.lossy(end):
            pairs += [("high_watermark_regressed", op, other) for _, last, other in shows if last >= end]
            pairs += [(_stale_or_lost(h, other, strong), op, other) for last, other in acked if last >= end]
    return [
        (n, clearing(a.invoke_time, b.completion_time or 0, a.clock_id == b.clock_id)) for n, a, b in pairs
    ]


def _trusted_beside(h: History, op: Operation) -> tuple[int | None, int | None]:
    claims = claims_of(op, h.trace)
    return claims.log_start, claims.stable


def _side_times(h: History) -> list[tuple[str, float]]:
    """Log starts and last stable offsets: name, and what clears the pair."""
    found: list[tuple[str, float]] = []
    starts = [(c, op) for op in h.reads if (c := claims_of(op, h.trace).log_start) is not None]
    stables = [(c, op) for op in h.reads if (c := claims_of(op, h.trace).stable) is not None]
    shown = list(stables)
    for op in h.reads:
        if op.records and claims_of(op, h.trace).committed:
            shown.append((max(r.offset for r in op.records) + 1, op))

    def compare(name: str, offset: int, time: int, clock: int, upper: list[tuple[int, Operation]]) -> None:
        for claim, op in upper:
            if h.spared(claim - 1) >= offset:
                found.append((name, clearing(time, op.completion_time or 0, clock == op.clock_id)))

    for name, lower, upper in (
        ("log_start_regressed", starts, starts),
        ("last_stable_offset_regressed", stables, shown),
    ):
        for claim, op in lower:
            if not h.lossy(claim):
                compare(name, claim, op.invoke_time, op.clock_id, upper)
    for op in h.reads if h.trace.claims.check == "strong" else []:
        lowest = min((r.offset for r in op.records), default=None)
        if lowest is not None and not h.lossy(lowest):
            compare("read_below_log_start", lowest, op.invoke_time, op.clock_id, starts)
    for base, _, op in h.batches:
        committed = op is not None and (fate_of(op, h.trace) == COMMITTED or h.shown_committed(op))
        transaction = transaction_of(op, h.trace) if op is not None and committed else None
        for moment, clock in before_end(transaction, h.trace) if transaction is not None else []:
            compare("open_transaction_read", base, moment, clock, shown)
    return found


def _stale_or_lost(h: History, append: Operation, strong: list[tuple[int, Operation]]) -> str:
    assert append.offset is not None
    last = append.offset + len(append.records) - 1
    values = {record.value for record in append.records}
    shown = [op.completion_time or 0 for op in h.reads if values & {record.value for record in op.records}]
    ended = [op.invoke_time for end, op in strong if end <= last and not h.lossy(end)]
    others = [op for op in h.appends if op.key == append.key and op is not append and h.writes(op)]
    replaced = append.argument == "tombstone" or (
        append.key is not None and (others or h.trace.claims.duplicates)
    )
    open_ = fate_of(append, h.trace) == OPEN and not h.shown_committed(append)
    gone = last < licence_of(h.trace) or open_ or fate_of(append, h.trace) == ABORTED
    gone = gone or bool(compacted(h.trace) and replaced)
    return "stale_read" if gone or h.lossy(last) or max(ended) <= max(shown, default=-1) else "lost_write"
