"""The fields of the invariants' screen, and what a trace begins with.

Owns names and first values; each says in brackets whose it is. Must not know rules. `-1` is nothing, nobody,
never.
"""

import numpy as np

from fencepost.checkers.compiled import compiled_within
from fencepost.checkers.events.kernels.state import FIRST_FREE

BEFORE_ALL = int(np.iinfo(np.int64).min)

CONTROLLER_EPOCH, OWNER = FIRST_FREE, FIRST_FREE + 1
"""Of the run [CtrlFence]: the last write of /controller_epoch, and by whom."""
RUN_NEW = (-1, 0, 1, 0, -1, -1, -1)

OBEYED, ALIVE, REGISTERED, UNREGISTERED, BROKER_EPOCH = range(5)
"""Of a broker: highest controller epoch obeyed [CtrlFence]; whom it knows to be alive, positions of its znode
[InSync]; its broker epoch [Incarnation]."""
HOST_NEW = (-1, 0, -1, -1, -1)

DELETING, ASKED_TO_GO, HAS_REPLICAS, GONE = range(1, 5)
"""Of a topic: to be deleted at some time [InSync, Assign]; the request stands, it had replicas, its node went
[Deletion]."""
TOPIC_NEW = (-1, 0, 0, 0, 0)

(
    TOPIC,
    STATED,
    ZK_EPOCH,
    ZK_LEADER,
    ISR,
    STATED_AT,
    VERSIONS,
    COMMITTED,
    EXPOSED,
    EPOCHS,
    ASSIGNED,
    PENDING,
    ASKED,
    REFUSED,
    LAST_REPLICAS,
) = range(1, 16)
"""Of a partition: ZooKeeper's state and the ISR by version [EpochMono, CtrlFence, InSync, CommitSafe,
Assign]; the log that was exposed and the highest leader epoch that exposed [CommitSafe]; by leader epoch, see
below; rows of its assignment, of the entry that stands, those asked for, whether one was refused [Assign];
the row of the last replicas that were any [Deletion]."""
KEY_NEW = (-1, -1, 0, -1, -1, 0, -1, -1, -1, BEFORE_ALL, -1, -1, -1, -1, 0, -1)

LOG, START, BOUND, KNOWN_EPOCH, BELIEVED, FINAL, FINAL_START, FINAL_HIGH_WATERMARK, LEAST = range(9)
"""Of a replica: its log and where it starts [Replicas], the start that bounds its high watermark
[HighWatermarkBounds], the leader epoch it knows [EpochMono], the ISR it goes by [InSync], its final dump
[Replicas], and the least high watermark since its start [HighWatermarkKept]."""
REPLICA_NEW = (-1, 0, 0, -1, -1, -1, 0, 0, 0)

HIGHEST, LED, NAMED = 2, 3, 4
"""Of a leader epoch of a partition: the highest high watermark exposed [CommitSafe], who leads [EpochMono],
what its offsets name [LogMatch]."""
MEMBERS, FOUND_AT = 2, 2
"""Of a version: the ISR. Of an election: its position."""
ITEM_NEW = (-1, -1, -1, -1, -1)


@compiled_within
def within(some: int, others: int) -> bool:
    """Whether one set of brokers is part of another."""
    return bool(some & ~others == 0)
