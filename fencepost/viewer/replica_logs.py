"""The replicas' logs over the whole run, as blocks: records of one epoch that came together and went
together.

Owns: which records a replica held at each step, and how they went. Must not know roles, judges or drawing.

A block lives from `born` to `died`. What cuts a log in the middle of a block splits it, so that every block
is whole or gone at any step, and a page needs no replay: it shows the blocks with born <= step < died.

A trace does not record what is synced. It shows it afterwards: what a log has lost when it is opened again
was in the page cache only.
"""

from collections.abc import Sequence
from enum import IntEnum

from attrs import define, evolve, field

from fencepost.model.replication.replica_log import UNKNOWN_EPOCH
from fencepost.traces.events import Event, Name
from fencepost.viewer.tracks import Tracks

Partition = tuple[str, int]
ReplicaKey = tuple[Partition, int]
"""A partition and a broker."""
MOST_UNNAMED = 100_000
"""Records of one block that no event named. A page cannot show more, and each takes memory; a record of a
cluster in use begins at offsets far beyond."""


class Gone(IntEnum):
    """How the records of a block went. NOT: they did not, as far as the trace goes."""

    NOT = 0
    TRUNCATED = 1
    LOST = 2
    """Missing when the log was opened again: only the page cache had held them, or the replica was
    deleted."""
    STARTED_OVER = 3
    """A full truncation: the leader's log begins beyond this one's end."""
    BELOW_START = 4
    """The log start offset passed them."""
    OVERWRITTEN = 5
    """An append went to an offset that the log had already."""


@define(kw_only=True)
class Block:
    """Records at offsets base, base + 1, ... with one leader epoch."""

    base: int
    # UNKNOWN_EPOCH for records that a start found and no event named.
    epoch: int
    # A value id for each record.
    values: tuple[int, ...]
    # The step of the append.
    born: int
    # The step at which the records were removed; None while they are there.
    died: int | None = None
    # How they were removed.
    gone: Gone = Gone.NOT

    @property
    def end(self) -> int:
        """The offset after the last record."""
        return self.base + len(self.values)


@define
class BlockLog:
    """One replica's blocks."""

    # In offset order.
    alive: list[Block] = field(factory=list)
    # In the order in which they went.
    dead: list[Block] = field(factory=list)
    end_offset: int = 0
    log_start_offset: int = 0

    def append(self, step: int, offset: int, epoch: int, values: Sequence[int]) -> None:
        """Records at `offset`. Earlier records there are gone; a gap below is unknown. step: of the append;
        epoch: the leader epoch; values: a value id for each record."""
        if offset < self.end_offset:
            self.cut(step, offset, Gone.OVERWRITTEN)
        elif offset > self.end_offset:
            self.grow(step, offset)
        if values:
            self.alive.append(Block(base=offset, epoch=epoch, values=tuple(values), born=step))
        self.end_offset = offset + len(values)

    def grow(self, step: int, end_offset: int) -> None:
        """Records that no event named are found up to `end_offset`; more than MOST_UNNAMED are a gap."""
        missing = end_offset - self.end_offset
        if missing > MOST_UNNAMED:
            self.skip_to(end_offset)
        elif missing > 0:
            self.alive.append(
                Block(base=self.end_offset, epoch=UNKNOWN_EPOCH, values=(0,) * missing, born=step)
            )
            self.end_offset = end_offset

    def cut(self, step: int, end_offset: int, gone: Gone) -> None:
        """Everything from `end_offset` on goes."""
        end_offset = max(end_offset, 0)
        while self.alive and self.alive[-1].end > end_offset:
            block = self.alive.pop()
            kept = end_offset - block.base
            if kept > 0:
                self.alive.append(evolve(block, values=block.values[:kept]))
                block = evolve(block, base=end_offset, values=block.values[kept:])
            self._bury(block, step, gone)
        self.end_offset = min(self.end_offset, end_offset)

    def resize(self, step: int, end_offset: int, gone: Gone) -> None:
        """The log ends at `end_offset` now."""
        self.cut(step, end_offset, gone)
        self.grow(step, end_offset)

    def start_over(self, step: int, offset: int) -> None:
        """The log is empty and begins at `offset`."""
        self.cut(step, 0, Gone.STARTED_OVER)
        self.end_offset = self.log_start_offset = offset

    def begin_at(self, step: int, log_start_offset: int) -> None:
        """Records below the log start offset are no longer part of the log. step: of the change;
        log_start_offset: the new one."""
        self.log_start_offset = max(log_start_offset, 0)
        while self.alive and self.alive[0].base < log_start_offset:
            block = self.alive.pop(0)
            below = log_start_offset - block.base
            if below < len(block.values):
                self.alive.insert(0, evolve(block, base=log_start_offset, values=block.values[below:]))
                block = evolve(block, values=block.values[:below])
            self._bury(block, step, Gone.BELOW_START)

    def skip_to(self, end_offset: int) -> None:
        """Compaction left a gap after the last record: the log ends further on, without records."""
        self.end_offset = max(self.end_offset, end_offset)

    @property
    def blocks(self) -> list[Block]:
        """All of them, by the step at which they came."""
        return sorted([*self.dead, *self.alive], key=lambda block: (block.born, block.base))

    def _bury(self, block: Block, step: int, gone: Gone) -> None:
        if block.born == step:
            return  # it came and went at one step: it was never visible
        self.dead.append(evolve(block, died=step, gone=gone))


@define
class ReplicaLogs:
    """logs: of each replica. facts: tracks by replica and name: high_watermark, log_end, log_start, clean."""

    logs: dict[ReplicaKey, BlockLog] = field(factory=dict)
    facts: Tracks[tuple[ReplicaKey, str]] = field(factory=Tracks)

    def apply(self, step: int, event: Event) -> None:
        """Move on by one event. Events that say nothing of a log are ignored."""
        if event.topic is None or event.node < 0 or event.name not in _CHANGES:
            return
        key = (event.topic, event.partition), event.node
        log = self.logs.get(key)
        if log is None:
            log = self.logs[key] = BlockLog()
        if event.name is Name.APPENDED:
            log.append(step, event.offset, event.leader_epoch, event.values)
            log.skip_to(event.end_offset)
        elif event.name is Name.TRUNCATED and event.cause == "full":
            log.start_over(step, event.offset)
        elif event.name is Name.TRUNCATED:
            log.resize(step, event.offset, Gone.TRUNCATED)
        elif event.name is Name.LOG_RECOVERED:
            log.resize(step, event.offset, Gone.LOST)
        if event.name in (Name.LOG_START, Name.LOG_RECOVERED) and event.log_start_offset >= 0:
            log.begin_at(step, event.log_start_offset)
        self._note(step, key, event, log)

    def _note(self, step: int, key: ReplicaKey, event: Event, log: BlockLog) -> None:
        self.facts.set((key, "log_end"), step, log.end_offset)
        self.facts.set((key, "log_start"), step, log.log_start_offset)
        if event.name in _SAYS_HIGH_WATERMARK and event.high_watermark >= 0:
            self.facts.set((key, "high_watermark"), step, event.high_watermark)
        if event.name is Name.COMPACTED:
            self.facts.set((key, "clean"), step, event.offset)


_SAYS_HIGH_WATERMARK = frozenset(
    {Name.HIGH_WATERMARK, Name.LOG_RECOVERED, Name.BECAME_LEADER, Name.BECAME_FOLLOWER, Name.LOG_START}
)
"""Events that say the replica's high watermark as it is after them; TRUNCATED says it as it was before."""
_CHANGES = _SAYS_HIGH_WATERMARK | {Name.APPENDED, Name.TRUNCATED, Name.COMPACTED}
