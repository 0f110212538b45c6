"""Names and causes of events as numbers.

Owns the codes. Must not know any rule. They are here and not in the vocabulary because the cache key of
compiled kernels depends on the content of this folder: a new name elsewhere must not recompile them.
"""

from fencepost.checkers.compiled import compiled_within
from fencepost.traces.events import Name

(
    APPENDED,
    HIGH_WATERMARK,
    CONTROL_REQUEST_APPLIED,
    REPLICA_LOG,
    LOG_RECOVERED,
    BECAME_FOLLOWER,
    PARTITION_STATE,
    LIVE_BROKERS,
    BECAME_LEADER,
    BROKER_ZNODE,
    PHASE,
    BROKER_REGISTERED,
    FAULT_BEGAN,
    BROKER_STARTED,
    ISR_PROPOSED,
    ASSIGNMENT,
    ISR_UPDATED,
    CONTROLLER_EPOCH,
    MARK,
    CONTROLLER_ELECTED,
    LOG_START,
    TRUNCATED,
    REASSIGNMENT,
    TOPIC_DELETION,
    LIVENESS_FAILED,
    LOG_DIRECTORY_FAILED,
    IMPLEMENTATION_ERROR,
) = range(27)
OTHER = 27

NAME_CODES = {
    Name.APPENDED: APPENDED,
    Name.HIGH_WATERMARK: HIGH_WATERMARK,
    Name.CONTROL_REQUEST_APPLIED: CONTROL_REQUEST_APPLIED,
    Name.REPLICA_LOG: REPLICA_LOG,
    Name.LOG_RECOVERED: LOG_RECOVERED,
    Name.BECAME_FOLLOWER: BECAME_FOLLOWER,
    Name.PARTITION_STATE: PARTITION_STATE,
    Name.LIVE_BROKERS: LIVE_BROKERS,
    Name.BECAME_LEADER: BECAME_LEADER,
    Name.BROKER_ZNODE: BROKER_ZNODE,
    Name.PHASE: PHASE,
    Name.BROKER_REGISTERED: BROKER_REGISTERED,
    Name.FAULT_BEGAN: FAULT_BEGAN,
    Name.BROKER_STARTED: BROKER_STARTED,
    Name.ISR_PROPOSED: ISR_PROPOSED,
    Name.ASSIGNMENT: ASSIGNMENT,
    Name.ISR_UPDATED: ISR_UPDATED,
    Name.CONTROLLER_EPOCH: CONTROLLER_EPOCH,
    Name.MARK: MARK,
    Name.CONTROLLER_ELECTED: CONTROLLER_ELECTED,
    Name.LOG_START: LOG_START,
    Name.TRUNCATED: TRUNCATED,
    Name.REASSIGNMENT: REASSIGNMENT,
    Name.TOPIC_DELETION: TOPIC_DELETION,
    Name.LIVENESS_FAILED: LIVENESS_FAILED,
    Name.LOG_DIRECTORY_FAILED: LOG_DIRECTORY_FAILED,
    Name.IMPLEMENTATION_ERROR: IMPLEMENTATION_ERROR,
}
"""Every other name is OTHER: no rule reads it."""

(
    NO_CAUSE,
    OTHER_CAUSE,
    LEADER,
    FOLLOWER,
    BY_HIGH_WATERMARK,
    FULL,
    EXPAND,
    REQUESTED,
    REPLICA_DELETED,
    FAILED_OVER,
    REFUSED,
    SHUTDOWN,
    POWER_LOSS,
    BIT_ROT,
) = range(14)
CAUSE_CODES = {
    "": NO_CAUSE,
    "leader": LEADER,
    "follower": FOLLOWER,
    "high_watermark": BY_HIGH_WATERMARK,
    "full": FULL,
    "expand": EXPAND,
    "requested": REQUESTED,
    "replica_deleted": REPLICA_DELETED,
    "failed_over": FAILED_OVER,
    "reassignment_refused": REFUSED,
    "controlled_shutdown": SHUTDOWN,
    "power_loss": POWER_LOSS,
    "bit_rot": BIT_ROT,
}


@compiled_within
def is_losing(cause: int) -> bool:
    """Whether a fault may remove records from a log."""
    return cause in (POWER_LOSS, BIT_ROT)
