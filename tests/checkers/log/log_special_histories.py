"""Random small histories of logs with retention, compaction and transactions: a log that really lived, then
bent in a few places."""

from random import Random

from attrs import define, evolve, field
from log_histories import FAIL, OK, UNKNOWN, append, bend, read, trace

from fencepost.traces.operations import Function, Operation
from fencepost.traces.trace import Trace
from tests.checkers import lab

FEATURES = ("retention", "compaction", "transactions")
KEYS = ("a", "a", "b", None)


@define(kw_only=True)
class Slot:
    """A record that stands: its offset, value, append, the moment it entered."""

    offset: int
    value: int
    append: Operation
    moment: int
    # When its transaction ended (None: never); aborted.
    ended: int | None = 0
    aborted: bool = False


@define
class World:
    """A log as it really lived."""

    rng: Random
    features: frozenset[str]
    dense: bool
    operations: list[Operation] = field(factory=list)
    slots: list[Slot] = field(factory=list)
    # (moment, log start), rising.
    starts: list[tuple[int, int]] = field(factory=list)
    # The place among the operations of a transaction that the next append may be part of; -1: there is none.
    open: int = -1
    end: int = 0
    moment: int = 0

    def grow(self, appends: int) -> None:
        """Append a few batches, some in transactions, and move the log start now and then."""
        for n in range(appends):
            self.moment += self.rng.choice((0, 1, 1, 2, 3))
            self._append(n)
            if "retention" in self.features and self.rng.random() < 0.5:
                self.starts.append((self.moment, self.rng.randint(self.log_start(self.moment), self.end)))

    def _append(self, n: int) -> None:
        rng = self.rng
        values = [100 * (n + 1) + i for i in range(rng.choice((1, 1, 1, 2)))]
        if not self.dense:
            self.end += rng.choice((0, 0, 0, 1))
        outcome, acks = rng.choice(((OK, -1),) * 4 + ((UNKNOWN, -1), (OK, 1), (FAIL, -1)))
        lands = outcome is OK or (outcome is UNKNOWN and rng.random() < 0.6)
        fate = rng.choice((None, OK, OK, FAIL, UNKNOWN)) if "transactions" in self.features else None
        head = self.operations[self.open] if self.open >= 0 and rng.random() < 0.5 else None
        fate = fate if head is None else head.outcome
        if fate is FAIL and rng.random() < 0.7:
            outcome, lands = FAIL, True
        invoke = max(0, self.moment - rng.choice((0, 0, 1, 2)))
        complete = (
            None if outcome is UNKNOWN and rng.random() < 0.6 else self.moment + rng.choice((0, 0, 1, 2))
        )
        told = outcome is not FAIL and lands and (outcome is OK or rng.random() < 0.3)
        keyed = "compaction" in self.features
        made = append(
            n,
            values,
            invoke,
            complete,
            self.end if told else None,
            outcome=outcome,
            acks=acks,
            process=50 + n if head is None else head.process,
            key=rng.choice(KEYS) if keyed else None,
            argument="tombstone" if keyed and rng.random() < 0.2 else None,
        )
        self.operations.append(made)
        ended: int | None = 0
        before = [slot for slot in self.slots if head is not None and slot.append.process == head.process]
        aborted = before[0].aborted if before else fate is FAIL or (fate is UNKNOWN and rng.random() < 0.5)
        if head is not None:
            ended = max(self.moment, complete or 0, *(slot.ended or 0 for slot in before))
            closes = head.completion_time is not None
            self.operations[self.open] = evolve(
                head, completion_time=max(ended, head.completion_time or 0) if closes else None
            )
            for slot in before:
                slot.ended = ended
        elif fate is not None:
            begun = max(0, invoke - rng.choice((0, 1)))
            ended = max(self.moment, complete or 0) + rng.choice((0, 0, 1))
            self.operations.append(
                lab.operation(
                    20 + n,
                    Function.TXN,
                    begun,
                    None if fate is UNKNOWN and rng.random() < 0.5 else ended + rng.choice((0, 1)),
                    process=50 + n,
                    outcome=fate,
                )
            )
            self.open = len(self.operations) - 1
        if lands:
            for i, value in enumerate(values):
                self.slots.append(
                    Slot(
                        offset=self.end + i,
                        value=value,
                        append=made,
                        moment=self.moment,
                        ended=ended,
                        aborted=aborted,
                    )
                )
            self.end += len(values)

    def log_start(self, moment: int) -> int:
        """The log start at a moment."""
        return max([start for at, start in self.starts if at <= moment], default=0)

    def look(self, first_id: int) -> None:
        """A few reads of what was really there."""
        for n in range(self.rng.randint(1, 3)):
            self.operations.append(self._read(first_id + n))

    def _read(self, op_id: int) -> Operation:
        rng = self.rng
        moment = rng.randint(0, self.moment + 3)
        committed = "transactions" in self.features and rng.random() < 0.6
        there = [slot for slot in self.slots if slot.moment <= moment]
        end = there[-1].offset + 1 if there else 0
        start = self.log_start(moment)
        stable = min([s.offset for s in there if s.ended is not None and s.ended > moment], default=end)
        seen = [
            s for s in there if s.offset >= start and (not committed or (s.offset < stable and not s.aborted))
        ]
        if "compaction" in self.features:
            seen = [s for s in seen if not (self._replaced(s, there) and rng.random() < 0.7)]
        position = rng.randint(0, end)
        seen = [s for s in seen if s.offset >= position]
        seen = seen[: rng.randint(0, len(seen))] if rng.random() < 0.3 else seen
        retention = "retention" in self.features
        invoke, complete = max(0, moment - rng.choice((0, 0, 1, 2))), moment + rng.choice((0, 0, 1, 2))
        isolation = (
            "read_committed" if committed else rng.choice((None, "read_uncommitted", "read_uncommitted"))
        )
        strong = rng.random() < 0.6
        if rng.random() < 0.12:
            earliest = retention and rng.random() < 0.5
            return read(
                op_id,
                start if earliest else (stable if committed else end),
                [],
                invoke,
                complete,
                strong=strong,
                function=Function.LIST_OFFSETS,
                isolation=isolation,
                argument="earliest" if earliest else None,
            )
        return read(
            op_id,
            None if rng.random() < 0.1 else position,
            [(s.offset, s.value) for s in seen],
            invoke,
            complete,
            end if rng.random() < 0.7 else None,
            strong=strong,
            isolation=isolation,
            log_start_offset=start if retention and rng.random() < 0.7 else None,
            last_stable_offset=stable if committed and rng.random() < 0.7 else None,
        )

    def _replaced(self, slot: Slot, there: list[Slot]) -> bool:
        """May the cleaner have removed this record?"""
        newer = any(
            s.offset > slot.offset and s.append.key == slot.append.key is not None and not s.aborted
            for s in there
        )
        return slot.append.argument == "tombstone" or newer or slot.aborted


def special_trace(
    rng: Random,
    *,
    clocks: int = 1,
    profiles: tuple[str, ...] = ("default",),
    features: tuple[str, ...] | None = None,
) -> Trace:
    """A small history with one or more of FEATURES, bent in up to three places."""
    chosen = frozenset(
        features
        if features is not None
        else [f for f in FEATURES if rng.random() < 0.5] or [rng.choice(FEATURES)]
    )
    world = World(rng, chosen, rng.random() < 0.4)
    world.grow(rng.randint(1, 4 if chosen != frozenset(FEATURES) else 3))
    world.look(30)
    operations = world.operations
    for _ in range(rng.choice((0, 1, 2, 3))):
        i = rng.randrange(len(operations))
        operations[i] = _bent(rng, operations[i])
    rng.shuffle(operations)
    operations = [evolve(op, op_id=10 + i, clock_id=rng.randrange(clocks)) for i, op in enumerate(operations)]
    return trace(
        *operations,
        dense=world.dense,
        check=rng.choice(profiles),
        retention="retention" in chosen and rng.random() < 0.9,
        compacted=("t",) if "compaction" in chosen and rng.random() < 0.9 else (),
    )


def _bent(rng: Random, op: Operation) -> Operation:
    """The operation with one statement changed a little; most changes as of any history, some of what only
    these say."""
    step = rng.choice((-2, -1, 1, 2))
    what = rng.choice(
        ("log_start_offset", "last_stable_offset", "isolation", "key", "argument", "plain", "plain")
    )
    if what in ("log_start_offset", "last_stable_offset") and getattr(op, what) is not None:
        return evolve(op, **{what: max(0, getattr(op, what) + step)})
    if what == "isolation" and op.isolation is not None:
        return evolve(op, isolation=rng.choice(("read_committed", "read_uncommitted")))
    if what == "key" and op.key is not None:
        return evolve(op, key=rng.choice(("a", "b", "c")))
    if what == "argument" and op.argument == "tombstone":
        return evolve(op, argument=None)
    return op if op.function is Function.TXN else bend(rng, op, False)
