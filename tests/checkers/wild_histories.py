"""Random histories in which everything happens at once: several logs, producers, consumers, groups and
transactions, retention and compaction; as it could have happened, then bent in a few places. For comparisons
that need breadth; the judges' own folders have narrower ones."""

from random import Random
from typing import Any

from attrs import define, evolve, field

from fencepost.traces.operations import Function, Operation, Outcome, Position, Record
from fencepost.traces.trace import Claims, LossRange, Trace
from tests.checkers import lab

OK, FAIL, UNKNOWN = Outcome.OK, Outcome.FAIL, Outcome.UNKNOWN
LOGS = (("t", 0), ("t", 1), ("u", 0))
KEYS = ("a", "b", None)
Log = tuple[str, int]


@define(kw_only=True)
class Slot:
    """A record that stands."""

    # None for a gap.
    value: int | None
    epoch: int
    # A read_committed reader is not shown it.
    hidden: bool = False


@define
class World:
    """What is there, and what clients saw of it."""

    random: Random
    now: int = 10
    value: int = 100
    epoch: int = 0
    generation: int = 1
    # The first value of the transaction that goes on.
    own: int = 1 << 30
    # Of each log in this generation.
    owner: dict[Log, int] = field(factory=dict)
    slots: dict[Log, list[Slot]] = field(factory=lambda: {log: [] for log in LOGS})
    starts: dict[Log, int] = field(factory=lambda: dict.fromkeys(LOGS, 0))
    committed: dict[Log, int] = field(factory=lambda: dict.fromkeys(LOGS, -1))
    # When each process may begin its next operation.
    free: dict[int, int] = field(factory=dict)
    session: dict[int, int] = field(factory=dict)
    # Where each consumer goes on.
    at: dict[tuple[int, Log], int] = field(factory=dict)
    operations: list[Operation] = field(factory=list)
    features: frozenset[str] = frozenset()

    def some(self, *choices: Any) -> Any:
        """One of these."""
        return self.random.choice(choices)

    def likely(self, chance: float) -> bool:
        """Whether it happens."""
        return self.random.random() < chance

    def log(self) -> Log:
        """One of the logs, the first most often."""
        return self.some(LOGS[0], LOGS[0], LOGS[0], LOGS[1], LOGS[2])

    def add(self, process: int, function: Function, *, done: bool = True, **more: Any) -> Operation:
        """An operation that takes effect now; done: its end was heard of."""
        self.now += self.some(0, 0, 1, 2, 3)
        invoke = max(self.free.get(process, 0), self.now - self.some(0, 1, 4))
        self.now = max(self.now, invoke)
        complete = self.now + self.some(0, 1, 1, 4)
        self.free[process] = complete
        end, session = complete if done else None, self.session.get(process, 0)
        made = lab.operation(
            len(self.operations), function, invoke, end, process=process, session=session, **more
        )
        self.operations.append(made)
        return made

    def append(self, process: int, *, fate: Outcome | None = None) -> Operation:
        """An append. fate: of the transaction that it is part of."""
        log = self.log()
        values = [self.value + n for n in range(self.some(1, 1, 1, 2, 3))]
        self.value += 10
        if "repeated" in self.features and self.likely(0.3):
            values[0] = self.random.randint(100, self.value) // 10 * 10
        outcome = fate if fate is not None else self.some(OK, OK, OK, OK, UNKNOWN, FAIL)
        acks = self.some(-1, -1, -1, -1, 1, 0)
        lands = (
            outcome is OK or (outcome is UNKNOWN and self.likely(0.6)) or (fate is FAIL and self.likely(0.6))
        )
        slots = self.slots[log]
        if "sparse" in self.features and self.likely(0.3):
            slots.append(Slot(value=None, epoch=self.epoch))
        base = len(slots)
        for _ in range(lands * (2 if "twice" in self.features and self.likely(0.3) else 1)):
            slots += [Slot(value=value, epoch=self.epoch, hidden=fate is FAIL) for value in values]
        told = lands and acks != 0 and (outcome is OK or self.likely(0.3))
        keyed, idempotent = "compaction" in self.features, "idempotence" in self.features
        return self.add(
            process,
            Function.APPEND,
            outcome=outcome,
            acks=acks,
            topic=log[0],
            partition=log[1],
            offset=base if told else None,
            done=outcome is not UNKNOWN or self.likely(0.4),
            records=tuple(Record(topic=log[0], partition=log[1], offset=-1, value=value) for value in values),
            leader_epoch=self.epoch if told and "epochs" in self.features and self.likely(0.8) else None,
            key=self.some(*KEYS) if keyed else None,
            argument="tombstone" if keyed and self.likely(0.2) else None,
            producer_id=process if idempotent else None,
            producer_epoch=0 if idempotent else None,
            log_start_offset=self.starts[log] if "retention" in self.features and self.likely(0.3) else None,
        )

    def seen(self, log: Log, position: int, *, committed: bool) -> list[Record]:
        """The next few records from a position on."""
        epochs, found = "epochs" in self.features, []
        upto = len(self.slots[log]) if self.likely(0.6) else position + self.random.randint(0, 3)
        for offset, slot in enumerate(self.slots[log][:upto]):
            compacted = "compaction" in self.features and self.likely(0.2)
            if (
                offset < max(position, self.starts[log])
                or slot.value is None
                or compacted
                or (committed and slot.hidden)
            ):
                continue
            epoch = slot.epoch if epochs and self.likely(0.8) else -1
            found.append(
                Record(topic=log[0], partition=log[1], offset=offset, value=slot.value, leader_epoch=epoch)
            )
        return found

    def claims(self, log: Log, *, committed: bool) -> dict[str, int | None]:
        """What a reply may claim beside its records."""
        end, retention = len(self.slots[log]), "retention" in self.features
        return {
            "end_offset": end if self.likely(0.6) else None,
            "last_stable_offset": end if committed and self.likely(0.5) else None,
            "log_start_offset": self.starts[log] if retention and self.likely(0.6) else None,
        }

    def read(self, process: int) -> Operation:
        """A poll from named offsets of one log, or of several."""
        committed = "transactions" in self.features and self.likely(0.5)
        isolation = "read_committed" if committed else self.some(None, "read_uncommitted")
        if self.likely(0.3):
            positions, records = [], []
            for log in self.random.sample(LOGS, 2):
                position = self.random.randint(0, len(self.slots[log]))
                records += self.seen(log, position, committed=committed)
                positions.append(
                    Position(
                        topic=log[0],
                        partition=log[1],
                        offset=position,
                        **self.claims(log, committed=committed),
                    )
                )
            return self.add(
                process,
                Function.POLL,
                isolation=isolation,
                positions=tuple(positions),
                records=tuple(records),
                strong=self.likely(0.4),
            )
        log = self.log()
        position = self.random.randint(0, len(self.slots[log]))
        return self.add(
            process,
            Function.POLL,
            isolation=isolation,
            topic=log[0],
            partition=log[1],
            offset=position,
            strong=self.likely(0.5),
            records=tuple(self.seen(log, position, committed=committed)),
            **self.claims(log, committed=committed),
        )

    def listed(self, process: int) -> Operation:
        """The end of a log, or where it begins."""
        log, earliest = self.log(), "retention" in self.features and self.likely(0.4)
        return self.add(
            process,
            Function.LIST_OFFSETS,
            topic=log[0],
            partition=log[1],
            strong=self.likely(0.7),
            offset=self.starts[log] if earliest else len(self.slots[log]),
            argument="earliest" if earliest else None,
        )

    def consume(self, process: int) -> Operation:
        """A poll that goes on where the consumer was; of a member of the group if there is one."""
        records = []
        grouped = "groups" in self.features and self.likely(0.97)
        for log in (log for log in LOGS[:2] if not grouped or self.owner.get(log) == process):
            position = self.at.get((process, log), 0)
            found = self.seen(log, position, committed=self.likely(0.95))[: self.random.randint(0, 3)]
            self.at[process, log] = found[-1].offset + 1 if found else position
            records += found
        return self.add(process, Function.POLL, records=tuple(records), **self.member(process))

    def member(self, process: int) -> dict[str, Any]:
        """The columns of a group's member."""
        if "groups" not in self.features:
            return {}
        stale = self.likely(0.03)
        return {"group": "g", "member": f"m{process}", "generation": self.generation - stale}

    def move(self, process: int) -> Operation:
        """An assign, a subscribe, a join or a crash."""
        grouped = (Function.JOIN,) * 4 * ("groups" in self.features)
        function = self.some(
            *grouped, Function.ASSIGN, Function.ASSIGN, Function.SUBSCRIBE, Function.JOIN, Function.CRASH
        )
        logs = [log for log in LOGS if self.likely(0.5)]
        if function is Function.CRASH:
            self.session[process] = self.session.get(process, 0) + self.some(0, 1)
            return self.add(process, function, outcome=UNKNOWN, done=self.likely(0.5))
        seeks = function is Function.ASSIGN and self.likely(0.4)
        for log in LOGS:
            if seeks or self.likely(0.4):
                self.at[process, log] = 0
        more: dict[str, Any] = {"argument": "seek_to_beginning"} if seeks else {}
        if function is Function.JOIN:
            if self.likely(0.7):
                self.generation, self.owner = self.generation + 1, {}
            logs = [log for log in logs if self.owner.get(log, process) == process or self.likely(0.05)]
            self.owner.update(dict.fromkeys(logs, process))
            more = self.member(process)
        positions = tuple(
            Position(topic=log[0], partition=log[1], offset=self.some(-1, -1, 0, 2)) for log in logs
        )
        outcome = self.some(OK, OK, OK, OK, UNKNOWN, FAIL)
        return self.add(
            process,
            function,
            positions=positions,
            outcome=outcome,
            done=outcome is not UNKNOWN or self.likely(0.5),
            **more,
        )

    def commit(self, process: int) -> Operation:
        """A commit of where the member is, or of anywhere."""
        log, outcome = self.some(*LOGS[:2]), self.some(OK, OK, OK, UNKNOWN, FAIL)
        offset = self.at.get((process, log), 0) if self.likely(0.8) else self.random.randint(0, 5)
        if outcome is OK or (outcome is UNKNOWN and self.likely(0.5)):
            self.committed[log] = offset
        more = {"group": "g", "member": f"m{process}", "generation": self.generation, "outcome": outcome}
        if self.likely(0.2):
            more["positions"] = (Position(topic=log[0], partition=log[1], offset=offset),)
        else:
            more |= {"topic": log[0], "partition": log[1], "offset": offset}
        return self.add(process, Function.COMMIT, done=outcome is not UNKNOWN or self.likely(0.5), **more)

    def fetch(self, process: int) -> Operation:
        """What the group has committed."""
        log = self.some(*LOGS[:2])
        offset = self.committed[log]
        return self.add(
            process,
            Function.FETCH_COMMITTED,
            group="g",
            topic=log[0],
            partition=log[1],
            offset=None if offset < 0 else offset,
        )

    def transaction(self, process: int) -> None:
        """A few appends and polls of one process as one."""
        fate, first, self.own = self.some(OK, OK, FAIL, UNKNOWN), len(self.operations), self.value
        self.add(process, Function.TXN, outcome=fate)
        for _ in range(self.random.randint(1, 3)):
            if self.likely(0.6):
                self.append(process, fate=fate)
            else:
                self.some(self.consume, self.consume, self.read, self.move)(process)
        head = evolve(
            self.operations[first],
            completion_time=self.now if fate is not UNKNOWN or self.likely(0.7) else None,
        )
        begun = [
            evolve(o, completion_time=min(o.completion_time or self.now, self.now))
            for o in self.operations[first + 1 :]
        ]
        self.operations[first:], self.own = [head, *begun], 1 << 30

    def change(self) -> None:
        """What no client does: a new leader, a log start that moves."""
        self.epoch += self.some(0, 1)
        log = self.log()
        if "retention" in self.features:
            self.starts[log] = self.random.randint(self.starts[log], len(self.slots[log]))
        if "loss" in self.features:
            del self.slots[log][-self.some(1, 1, 2) :]
            self.starts[log] = min(self.starts[log], len(self.slots[log]))


ALL = (
    "retention",
    "compaction",
    "transactions",
    "idempotence",
    "epochs",
    "groups",
    "consumers",
    "sparse",
    "twice",
    "repeated",
    "loss",
)


def wild(seed: int, often: tuple[str, ...] = ()) -> Trace:
    """The history of a seed. often: features that most have."""
    random = Random(f"wild {seed}")
    chance = random.choice((0.1, 0.3, 0.5))
    features = frozenset(name for name in ALL if random.random() < (0.7 if name in often else chance))
    world = World(random, features=features)
    for _ in range(random.randint(3, 22)):
        _step(world)
    operations = world.operations
    for _ in range(random.choice((0, 0, 1, 1, 2, 3, 5))):
        at = random.randrange(len(operations))
        operations[at] = bent(random, operations[at])
    clocks, uncertain = random.choice(((1, 0), (1, 0), (1, 2), (3, 0), (3, 1), (3, 4)))
    operations = [evolve(o, clock_id=o.process % clocks) for o in operations]
    low = random.randint(0, 3)
    loss = tuple(
        LossRange(topic=log[0], partition=log[1], start=low, end=low + random.randint(1, 3), reason="test")
        for log in LOGS if random.random() < 0.3
    ) if random.random() < 0.2 else ()  # fmt: skip
    return lab.trace(
        operations,
        trace_id=seed,
        unique_values="repeated" not in features,
        concurrent_processes="transactions" in features or random.random() < 0.1,
        claims=Claims(
            check=random.choice(("default", "default", "session", "strong", "strong", "content")),
            loss=loss,
            content_by_epoch=random.random() < 0.1,
            duplicates="twice" in features and random.random() < 0.8,
            dense="sparse" not in features and random.random() < 0.5,
            clock_uncertainty_ns=uncertain,
            retention="retention" in features and random.random() < 0.9,
            compacted=("t",) if "compaction" in features and random.random() < 0.9 else (),
            assumption_broken="a test" if random.random() < 0.02 else "",
        ),
    )


def _step(world: World) -> None:
    process, roll = world.random.randint(1, 3 if "groups" in world.features else 4), world.random.random()
    if "groups" in world.features and roll < 0.6:
        world.some(world.move, world.consume, world.consume, world.commit, world.commit, world.fetch)(process)
    elif "transactions" in world.features and roll < 0.6:
        world.transaction(process)
    elif "consumers" in world.features and roll < 0.75:
        world.some(world.consume, world.consume, world.consume, world.move)(process)
    else:
        world.some(world.append, world.append, world.append, world.read, world.read, world.listed)(process)
    if world.likely(0.2):
        world.change()


NUMBERS = (
    *("offset", "end_offset", "last_stable_offset", "log_start_offset", "leader_epoch", "generation"),
    *("invoke_time", "completion_time", "process"),
)


def bent(random: Random, operation: Operation) -> Operation:
    """The operation with one statement changed a little."""
    records, positions = list(operation.records), list(operation.positions)
    kind = random.choice(("number", "number", "number", "record", "record", "position", "outcome", "strong"))
    if kind == "number":
        name = random.choice([name for name in NUMBERS if getattr(operation, name) is not None])
        changed = max(0, getattr(operation, name) + random.choice((-6, -2, -1, 1, 2, 6)))
        operation = evolve(operation, **{name: changed})
        if operation.completion_time is not None and operation.completion_time < operation.invoke_time:
            operation = evolve(operation, completion_time=operation.invoke_time)
    elif kind == "record" and records:
        at, what = random.randrange(len(records)), random.choice(("drop", "move", "value", "swap", "twice"))
        if what == "drop":
            del records[at]
        elif what == "move" and operation.function is not Function.APPEND:
            records[at] = evolve(records[at], offset=max(0, records[at].offset + random.choice((-1, 1, 2))))
        elif what == "value":
            records[at] = evolve(records[at], value=random.choice((100, 110, 120, 999)))
        elif what == "swap":
            records[0], records[at] = records[at], records[0]
        else:
            records.append(records[at])
        operation = evolve(operation, records=tuple(records))
    elif kind == "position" and positions:
        at = random.randrange(len(positions))
        positions[at] = evolve(
            positions[at], offset=max(-1, positions[at].offset + random.choice((-1, 1, 2)))
        )
        operation = evolve(operation, positions=tuple(positions))
    elif kind == "outcome" and operation.completion_time is not None:
        operation = evolve(operation, outcome=random.choice((OK, UNKNOWN, FAIL)))
    elif kind == "strong":
        operation = evolve(operation, strong=not operation.strong)
    return operation
