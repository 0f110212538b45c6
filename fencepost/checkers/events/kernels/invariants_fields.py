"""The fields of the invariants' screen, and their initial values.

Owns names and initial values. Brackets name the invariant that uses a field. Must not know rules. `-1` means
none or never.
"""

import numpy as np

from fencepost.checkers.compiled import compiled_within
from fencepost.checkers.events.kernels.state import FIRST_FREE

BEFORE_ALL = int(np.iinfo(np.int64).min)

CONTROLLER_EPOCH, OWNER = FIRST_FREE, FIRST_FREE + 1
"""Of the run [CtrlFence]: the epoch in the last write of /controller_epoch, and the broker that wrote it."""
RUN_NEW = (-1, 0, 1, 0, -1, -1, -1)

OBEYED, ALIVE, REGISTERED, UNREGISTERED, BROKER_EPOCH = range(5)
"""Of a broker: the highest controller epoch that it obeyed [CtrlFence]; the brokers that it knows to be
alive, and the positions of its registration and its removal [InSync]; its broker epoch [Incarnation]."""
HOST_NEW = (-1, 0, -1, -1, -1)

DELETING, ASKED_TO_GO, HAS_REPLICAS, GONE = range(1, 5)
"""Of a topic: deletion was requested at some time [InSync, Assign]; the request is pending, the topic had
replicas, its node was removed [Deletion]."""
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
Assign]; the log that was exposed and the highest leader epoch that exposed it [CommitSafe]; the list of
leader epochs, see below; rows of its assignment, of the pending entry, of the requested ones, and whether one
was refused [Assign]; the row of the last non-empty replicas [Deletion]."""
KEY_NEW = (-1, -1, 0, -1, -1, 0, -1, -1, -1, BEFORE_ALL, -1, -1, -1, -1, 0, -1)

LOG, START, BOUND, KNOWN_EPOCH, BELIEVED, FINAL, FINAL_START, FINAL_HIGH_WATERMARK, LEAST = range(9)
"""Of a replica: its log and its log start [Replicas], the start that bounds its high watermark
[HighWatermarkBounds], the leader epoch that it knows [EpochMono], its ISR [InSync], its final dump
[Replicas], and the lowest high watermark since its start [HighWatermarkKept]."""
REPLICA_NEW = (-1, 0, 0, -1, -1, -1, 0, 0, 0)

HIGHEST, LED, NAMED = 2, 3, 4
"""Of a leader epoch of a partition: the highest exposed high watermark [CommitSafe], its leader [EpochMono],
the records at its offsets [LogMatch]."""
MEMBERS, FOUND_AT = 2, 2
"""Of a version: the ISR. Of an election: its position."""
ITEM_NEW = (-1, -1, -1, -1, -1)


@compiled_within
def within(some: int, others: int) -> bool:
    """Whether the bit set `some` is a subset of `others`."""
    return bool(some & ~others == 0)
