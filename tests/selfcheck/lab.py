"""Runs of our own implementation that are looked at from inside: what the simulated network carried, and what
the brokers' memory holds at the end. Nothing of it is in the product.
"""

import os

from attrs import define, field

from fencepost.campaign.swarm.swarm import swarm
from fencepost.impl.log.dump.segment_walk import Parsed, SegmentBatch, walk_segment
from fencepost.impl.log.log_directory import LogDirectory
from fencepost.impl.log.values import runs_in_batch
from fencepost.run.simulated.run import Run
from fencepost.sim.disk import Disk
from fencepost.sim.randomness import Randomness

SEEDS = int(os.environ.get("FENCEPOST_SELFCHECK_SEEDS", "50"))
"""Runs in all. `make selfcheck` sets it."""
FIRST_SEED = 880_000
AT_ONCE = 10
"""Runs of one test."""
OTHERS = ("transactions", "groups", "storage", "truncation")
"""Profiles of two runs in five; the others are of `everything`."""


def chunks():
    """(profile, seed) of each run, by test."""
    drawn = [
        (OTHERS[place // 5 % len(OTHERS)] if place % 5 in (1, 3) else "everything", FIRST_SEED + place)
        for place in range(SEEDS)
    ]
    return [drawn[start : start + AT_ONCE] for start in range(0, SEEDS, AT_ONCE)]


@define(eq=False)
class Watched:
    """A run with all that its network was given to carry: (time, source, target, message)."""

    run: Run
    carried: list = field(factory=list)
    trace: object = None

    def __attrs_post_init__(self):
        network = self.run.cluster.world.network
        sent = network.send

        def send(source, target, message, cause=()):
            self.carried.append((self.run.cluster.now, source, target, message))
            return sent(source, target, message, cause)

        network.send = send
        self.trace = self.run.run()


def watched(profile, seed):
    """The run of this seed."""
    return Watched(Run(swarm(seed, profile)))


@define
class Bytes:
    """Batches that a message carries, as a source for the reader of segments."""

    data: bytes

    def read_at(self, position, size):
        """Up to `size` bytes."""
        return self.data[position : position + size]

    def size(self):
        """All of them."""
        return len(self.data)


def records_in(data):
    """(offset, value id) of each record of whole batches."""
    found = []
    for item in walk_segment(Bytes(data), "a message", Parsed()):
        if isinstance(item, SegmentBatch):
            for base, values in runs_in_batch(item.data, item.header):
                found += list(enumerate(values, base))
    return found


def copy_of(disk):
    """Another disk with the same content, as a process reads it now."""
    made = Disk(node=disk.node, randomness=Randomness(0))
    _copy(disk, made, "")
    return made


def _copy(disk, made, path):
    seen = disk.look(path)
    if isinstance(seen, bytes):
        made.open(path).append(seen)
        return
    if path:
        made.make_directory(path)
    for name in seen or ():
        _copy(disk, made, f"{path}/{name}" if path else name)


def loaded(disk, core):
    """The logs as a fresh broker opens them from a copy of these files."""
    options = {key: partition.log.options for key, partition in core.replicas.partitions.items()}
    return LogDirectory.start(copy_of(disk), options).logs
