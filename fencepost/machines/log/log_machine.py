"""A Hypothesis state machine that does to a log whatever a broker and a disk can do to it, and compares with
a plain mapping after every step.

What it holds the log to:

- What was flushed is there after any crash; what was not is a clean prefix; nothing is invented; what was cut
  stays cut.
- After an error of the disk the log refuses work until it is opened anew.
- Retention and compaction remove what they may and nothing else, whatever interrupts them, and leave nothing
  that is due.
- A batch that was sent twice is recognised, before and after a restart; one that never got in is not.
- What can be made again out of the batches (indexes, snapshots, epochs, checkpoints) is made again when it is
  lost.

`LogMachine` needs nothing but a file system and a process that can die; `DiskMachine` has the faults of
the simulated disk on top.
"""

from fencepost.machines.log.reading import LogReading
from fencepost.machines.log.removing import LogRemoving
from fencepost.machines.log.writing import LogWriting


class LogMachine(LogWriting, LogRemoving, LogReading):
    """Rules for any file system. `parts` can be replaced in a subclass, which is how planted bugs get in."""
