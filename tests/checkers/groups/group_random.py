"""Random histories of a consumer group on one partition log: a right coordinator with rebalances, crashes,
lost answers; and planted faults."""

from random import Random

from attrs import evolve
from group_histories import OK, UNKNOWN, append, commit, crash, fetch, got, join, trace

from fencepost.traces.operations import Function, Operation
from fencepost.traces.trace import Trace

RECORDS = 12


class Coordinator:
    """What a right coordinator knows; `operations` is what clients saw. owner: who has the partition in the
    current generation."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.operations: list[Operation] = [append(1000 + n, n) for n in range(RECORDS)]
        self.op_id, self.generation, self.committed = 0, 0, -1
        self.owner, self.position, self.members = "", 0, 0

    def next_id(self) -> int:
        self.op_id += 1
        return self.op_id

    def rebalance(self, *, crashed: bool) -> None:
        """The next generation: one member has the partition, another has another one."""
        if crashed and self.owner:
            self.operations.append(crash(self.next_id(), self.owner))
        if crashed or not self.owner or self.random.random() < 0.5:
            self.members += 1
            self.owner = f"m{self.members}"
        self.generation += 1
        self.operations.append(join(self.next_id(), self.owner, self.generation, 0))
        if self.random.random() < 0.5:
            self.operations.append(join(self.next_id(), f"m{self.members + 500}", self.generation, 1))
        self.read_back()
        self.position = max(self.committed, 0)

    def read_back(self) -> None:
        """Somebody asks for the committed offset."""
        self.operations.append(fetch(self.next_id(), None if self.committed < 0 else self.committed))

    def poll(self) -> None:
        """The owner gets the next few records."""
        upto = min(RECORDS, self.position + self.random.randint(1, 3))
        if self.position < upto:
            self.operations.append(
                got(self.next_id(), self.owner, self.generation, *range(self.position, upto))
            )
            self.position = upto

    def commit(self) -> None:
        """The owner commits where it is; the answer may be lost, and then nobody knows."""
        lost = self.random.random() < 0.2
        if not lost or self.random.random() < 0.5:
            self.committed = self.position
        more = {"outcome": UNKNOWN, "at": (10 * (self.op_id + 1), None)} if lost else {}
        self.operations.append(commit(self.next_id(), self.owner, self.generation, self.position, **more))


def healthy(seed: int) -> Trace:
    """What a right group shows."""
    random = Random(seed)
    group = Coordinator(random)
    group.rebalance(crashed=False)
    for _ in range(random.randint(3, 15)):
        roll = random.random()
        if roll < 0.4:
            group.poll()
        elif roll < 0.7:
            group.commit()
        elif roll < 0.8:
            group.read_back()
        else:
            group.rebalance(crashed=roll < 0.9)
    return trace(*group.operations, trace_id=seed)


def _chosen(random: Random, found: list[int]) -> int | None:
    return random.choice(found) if found else None


def assigned_twice(random: Random, operations: list[Operation]) -> list[Operation] | None:
    """Another member is given the partition in the same generation."""
    at = _chosen(
        random,
        [
            n
            for n, o in enumerate(operations)
            if o.function is Function.JOIN and o.positions[0].partition == 0
        ],
    )
    return None if at is None else [*operations, evolve(operations[at], op_id=9000, member="m9", process=9)]


def stale_commit(random: Random, operations: list[Operation]) -> list[Operation] | None:
    """A commit of the first generation is acknowledged after the second one is known, and is read back."""
    joins = [o for o in operations if o.function is Function.JOIN and o.generation == 2]
    if not joins:
        return None
    return [*operations, commit(9000, "m1", 1, 3), fetch(9001, 3)]


def forgotten(random: Random, operations: list[Operation]) -> list[Operation] | None:
    """An acknowledged commit is forgotten: the next fetch answers as if nothing were committed."""
    commits = [o for o in operations if o.function is Function.COMMIT and o.outcome is OK]
    return [*operations, fetch(9000, None)] if commits else None


def invented(random: Random, operations: list[Operation]) -> list[Operation] | None:
    """An offset is read back that nobody committed."""
    return [*operations, fetch(9000, 77)]


def went_back(random: Random, operations: list[Operation]) -> list[Operation] | None:
    """A new generation: a later member gets records below what everybody had committed before it joined."""
    commits = [o for o in operations if o.function is Function.COMMIT]
    highest = max((o.offset for o in commits if o.outcome is OK), default=0)
    if (
        highest < 1
        or any(o.offset < 1 for o in commits)
        or not any(0 in {r.offset for r in o.records} for o in operations if o.function is Function.POLL)
    ):
        return None
    last = max(o.generation or 0 for o in operations)
    settled = [commit(9000, operations[-1].member, last, highest)]
    return [*operations, *settled, join(9001, "m9", last + 1, 0), got(9002, "m9", last + 1, 0)]


def passed_over(random: Random, operations: list[Operation]) -> list[Operation] | None:
    """A new group member goes over the record at 1, and nobody had committed beyond it."""
    return [o for o in operations if o.function is Function.APPEND] + [
        got(9000, "m1", 1, 0),
        got(9001, "m1", 1, 2),
    ]


def lower_generation(random: Random, operations: list[Operation]) -> list[Operation] | None:
    """A member joins a generation below one that is known."""
    highest = max(o.generation or 0 for o in operations)
    return [*operations, join(9000, "m9", highest - 1, 1)] if highest > 1 else None


PLANTS = {
    "partition_assigned_twice": assigned_twice,
    "stale_commit_accepted": stale_commit,
    "committed_offset_lost": forgotten,
    "committed_offset_unexplained": invented,
    "reprocessed_after_commit": went_back,
    "processing_gap": passed_over,
    "generation_regressed": lower_generation,
}
