"""What a disk says of a replica's log, as an event of the trace.

Owns the event DURABLE. Must not know how a disk knows it (sim/disk_logs.py).
"""

import msgspec

from fencepost.sim.disk_logs import LogOnDisk
from fencepost.traces.events import Event, Name


def durable_event(log: LogOnDisk, time: int, node: int, cause: str, *, gaps: bool) -> Event:
    """The event.

    Args:
        log: what the disk holds.
        time: nanoseconds since the run began.
        node: the broker.
        cause: power_loss or bit_rot.
        gaps: whether gaps between the offsets of this log are normal.

    Returns:
        the event.
    """
    said = {
        "asked": log.asked,
        "written": log.written,
        "recovery_point": log.recovery_point,
        "rolled": log.rolled,
        "clean": log.clean,
    }
    return Event(
        time=time,
        name=Name.DURABLE,
        node=node,
        topic=log.topic,
        partition=log.partition,
        end_offset=log.end_over_gaps if gaps else log.end,
        cause=cause,
        detail=msgspec.json.encode(said).decode(),
    )
