"""The results of a watch, micro-batch by micro-batch.

Owns the reported counts and the exit code. Must not know Spark, files, the terminal.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec
from attrs import define, field, frozen

from fencepost.checkers.verdict import Decision
from fencepost.mining.watch.out import Row
from fencepost.traces.errors import ExitCode, strongest

_UNKNOWN = (Decision.UNKNOWN.value, Decision.ASSUMPTION_BROKEN.value)


@frozen(kw_only=True)
class MicroBatch:
    """The result of one micro-batch."""

    number: int
    # How many arrived.
    files: int
    operations: int
    # Operations fed to the logs that they concern.
    judged: int
    # Rows of the tables.
    findings: list[Row]
    logs: list[Row]
    verdicts: list[Row]
    quarantine: list[Row]
    # Seconds from the oldest file's arrival until its findings were written.
    lag_s: float


@define
class Watched:
    """The results of a watch since it was started."""

    # The folder of the results.
    out: str
    # Counts since the start.
    batches: int = 0
    files: int = 0
    operations: int = 0
    judged: int = 0
    findings: int = 0
    quarantined: int = 0
    logs_ended: int = 0
    # These include earlier runs from the same checkpoint.
    findings_in_all: int = 0
    quarantined_in_all: int = 0
    # Lag of the latest micro-batch, seconds.
    lag_s: float = 0.0
    # Findings by anomaly, and ended logs by decision.
    anomalies: Counter[str] = field(factory=Counter)
    decisions: Counter[str] = field(factory=Counter)
    # Traces of which a check of transactions does not know something, of those that ended.
    unknown_checks: int = 0
    interrupted: bool = False
    # Counts of each trace under way, as last reported: logs, waiting operations, undecided logs.
    _under_way: dict[tuple[Any, ...], tuple[int, int, int]] = field(factory=dict)

    @property
    def held(self) -> int:
        """Moments of operations that wait, because something earlier may still come."""
        return sum(held for held, _, _ in self._under_way.values())

    @property
    def logs_under_way(self) -> int:
        """Logs that are being judged."""
        return sum(logs for _, logs, _ in self._under_way.values())

    @property
    def undecided(self) -> int:
        """Logs of which something is not known: their memory ran over the horizon, a part is missing or late,
        or the trace contradicts itself."""
        ended = sum(self.decisions[name] for name in _UNKNOWN) + self.unknown_checks
        return ended + sum(count for _, _, count in self._under_way.values())

    def add(self, batch: MicroBatch, status: Iterable[Row]) -> None:
        """Count a micro-batch."""
        self.batches += 1
        self.files += batch.files
        self.operations += batch.operations
        self.judged += batch.judged
        self.findings += len(batch.findings)
        self.quarantined += len(batch.quarantine)
        self.logs_ended += len(batch.logs)
        self.lag_s = batch.lag_s
        self.anomalies.update(row[5] for row in batch.findings)
        self.decisions.update(row[4] for row in batch.logs)
        self.unknown_checks += sum(row[3] in _UNKNOWN for row in batch.verdicts)
        for source, trace_id, part, shard, held, logs, undecided, _ in status:
            key = (source, trace_id, part, shard)
            if held or logs or undecided:
                self._under_way[key] = (held, logs, undecided)
            else:
                self._under_way.pop(key, None)

    @property
    def exit_code(self) -> ExitCode:
        """As everywhere, of what arrived since the start; nothing new is nothing found."""
        codes = {ExitCode.NOTHING_FOUND}
        if self.interrupted:
            codes.add(ExitCode.INTERRUPTED)
        if self.quarantined and not self.operations:
            codes.add(ExitCode.USAGE)
        if self.findings:
            codes.add(ExitCode.FINDINGS)
        if self.quarantined:
            codes.add(ExitCode.QUARANTINED)
        if self.undecided:
            codes.add(ExitCode.UNDECIDED)
        return strongest(codes)

    def to_row(self) -> dict[str, Any]:
        """As a JSON object."""
        names = (
            "out",
            "batches",
            "files",
            "operations",
            "judged",
            "logs_under_way",
            "logs_ended",
            "held",
            "findings",
            "findings_in_all",
            "quarantined",
            "quarantined_in_all",
            "undecided",
            "lag_s",
            "interrupted",
        )
        return {
            **{name: getattr(self, name) for name in names},
            "anomalies": dict(sorted(self.anomalies.items())),
            "decisions": dict(sorted(self.decisions.items())),
        }


def batch_of(number: int, messages: Iterable[tuple[str, bytes]]) -> tuple[MicroBatch, list[Row]]:
    """The micro-batch from the groups' reports, sorted, so that a micro-batch that runs again writes the
    same; and the status of each group. number: of the micro-batch; told: (kind, payload) of the groups."""
    rows: dict[str, list[Row]] = {
        kind: [] for kind in ("finding", "log", "verdict", "quarantine", "status", "file")
    }
    for kind, payload in messages:
        rows[kind].append(tuple(msgspec.msgpack.decode(payload)))
    modified = [row[1] for row in rows["file"]]
    now_us = int(datetime.now(UTC).timestamp() * 1_000_000)
    batch = MicroBatch(
        number=number,
        files=len(rows["file"]),
        operations=sum(row[2] for row in rows["file"]),
        judged=sum(row[7] for row in rows["status"]),
        findings=sorted(rows["finding"], key=repr),
        logs=sorted(rows["log"]),
        verdicts=sorted(rows["verdict"], key=repr),
        quarantine=sorted(set(rows["quarantine"])),
        lag_s=max(0, now_us - min(modified, default=now_us)) / 1_000_000,
    )
    return batch, sorted(rows["status"])
