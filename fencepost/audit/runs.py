"""The records of a replica's segments, as value ids, and the dump of replicas as events.

Owns which records a dump has: those that can be read. Must not know what is wrong with the others, which is
for the audit to report.
"""

from collections.abc import Iterable, Iterator, Mapping

from fencepost.audit.directories import ReplicaFiles
from fencepost.audit.source import Place, opened
from fencepost.audit.survey import Survey
from fencepost.impl.log.batch.header import CorruptBatchError
from fencepost.impl.log.dump.segment_walk import Parsed, SegmentBatch, walk_segment
from fencepost.impl.log.values import runs_in_batch
from fencepost.traces.events import Event, Name

Run = tuple[int, int, tuple[int, ...]]
"""Leader epoch, base offset and value ids of neighbouring records of one epoch."""


def runs_of_files(paths: Iterable[Place]) -> Iterator[Run]:
    """The runs of each batch that can be read, in order. paths: the segments of one replica."""
    parsed = Parsed()
    for path in paths:
        with opened(path) as source:
            for item in walk_segment(source, path, parsed):
                if not isinstance(item, SegmentBatch):
                    continue
                try:
                    runs = runs_in_batch(item.data, item.header)
                except CorruptBatchError:
                    continue
                for base, values in runs:
                    yield item.header.leader_epoch, base, values


Recorded = Mapping[tuple[str, int, int], tuple[int, int]]
"""(high watermark, log start) that brokers recorded last, by topic in the trace, partition and broker."""


def dumps_of(
    found: Survey, names: Mapping[str, str], time: int, recorded: Recorded | None = None
) -> Iterator[Event]:
    """The dump of every replica's log, as events of this time.

    Args:
        found: the directories; brokers are named by their numbers.
        names: the topic in the trace by the directories' name, where they differ.
        time: of the trace, in nanoseconds.
        recorded: a broker checkpoints these every so often only. The file may have a high watermark from
            before the log was cut, or of an earlier topic of the same name; so what was recorded counts where
            there is something.

    Returns:
        a REPLICA_LOG for each run of records of one epoch, and for an empty log one without records.
    """
    for (topic, partition), (replicas, _) in sorted(found.partitions.items()):
        for files in replicas:
            runs = _joined(runs_of_files(segment.path for segment in files.segments))
            place = names.get(topic, topic), partition, int(files.broker)
            high_watermark, start = (recorded or {}).get(place, (files.high_watermark or 0, 0))
            start = max(start, _start(files))
            end = max([start, *(base + len(values) for _, base, values in runs)])
            for epoch, base, values in runs or [(-1, start, ())]:
                yield Event(
                    time=time,
                    name=Name.REPLICA_LOG,
                    topic=place[0],
                    partition=partition,
                    node=place[2],
                    leader_epoch=epoch,
                    offset=base,
                    values=values,
                    end_offset=end,
                    high_watermark=min(high_watermark, end),
                    log_start_offset=start,
                )


def _start(files: ReplicaFiles) -> int:
    first = files.segments[0].base_offset if files.segments else 0
    return max(first, files.log_start or 0)


def _joined(runs: Iterable[Run]) -> list[Run]:
    """Neighbouring runs of one epoch as one."""
    found: list[tuple[int, int, list[int]]] = []
    for epoch, base, values in runs:
        if found and found[-1][0] == epoch and found[-1][1] + len(found[-1][2]) == base:
            found[-1][2].extend(values)
        else:
            found.append((epoch, base, list(values)))
    return [(epoch, base, tuple(values)) for epoch, base, values in found]
