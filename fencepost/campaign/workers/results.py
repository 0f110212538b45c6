"""What a campaign is asked, what one run of it answered, and what it came to.

Owns: the values that cross the pipe between driver and worker, and the sums over them.
Must not know: processes, files, the terminal.
"""

from collections import Counter

import msgspec
from attrs import Factory, define, field, frozen
from attrs.validators import in_

from fencepost.campaign.marks.marks import NAMES
from fencepost.campaign.marks.real_marks import REAL_NAMES
from fencepost.checkers.verdict import Decision, Finding
from fencepost.systems.named import SIMULATION
from fencepost.traces.anomalies import names_by_rank
from fencepost.traces.errors import ExitCode, strongest

MOST_SEEDS_NAMED = 1_000
"""Failing, broken and disagreeing seeds that a result names; beyond, they are only counted."""


@frozen(kw_only=True)
class Job:
    """What all runs of a campaign share."""

    profile: str = "default"
    # Planted in every run.
    bugs: tuple[str, ...] = ()
    # JSON of a plan that every seed runs ("": the swarm makes one per seed).
    plan: str = ""
    # Judges by name, None for the default ones.
    checks: tuple[str, ...] | None = None
    # Kinds that the swarm draws from, () for all of the profile's.
    faults: tuple[str, ...] = ()
    # The first seed of a campaign that is steered (driver/steering.py), -1 for one that is not.
    steer_from: int = -1
    # What is broken (systems/named.py). In another system than the simulation a seed determines the plan, but
    # not the run.
    system: str = SIMULATION
    # Options of a system, by the names of systems/named.py.
    system_options: dict[str, str] = Factory(dict)
    # Of a real system: what the campaign has to find (swarm/real_systems.py: CONTROLS).
    control: str = ""
    # Whether runs ask their brokers about state that no client sees (plan.asking).
    asking: bool = True
    # Of a real system: runs before it is started anew. A finding does that, too.
    runs_per_cluster: int = 25

    @property
    def real(self) -> bool:
        """Whether the runs take real time."""
        return self.system != SIMULATION


@frozen(kw_only=True)
class Orders:
    """The first line that a worker reads: what it needs to know once."""

    job: Job
    # The folder of traces, "" keeps none.
    out: str
    # Of its journal.
    name: str


@frozen(kw_only=True)
class Task:
    """What a worker does next."""

    seed: int
    # Run (and keep and judge), recheck (run again, digest only), judge (a stored run).
    kind: str = field(default="run", validator=in_(("run", "recheck", "judge")))
    # Of its plan, "": the job's.
    profile: str = ""


@frozen(kw_only=True)
class RunResult:
    """What one task came to."""

    seed: int
    kind: str = "run"
    digest: str = ""
    # None for a recheck or a crash.
    decision: Decision | None = None
    anomaly: str | None = None
    findings: tuple[Finding, ...] = ()
    reason: str = ""
    # The exception of a run that did not end ("" if it did).
    crash: str = ""
    operations: int = 0
    events: int = 0
    # Real time it took.
    wall_ms: int = 0
    # What the run reached (marks/marks.py).
    marks: tuple[str, ...] = ()
    # The worker began a new journal, the old one may be sealed.
    rotated: bool = False

    @property
    def convicted(self) -> bool:
        """Whether the run has a finding."""
        return self.decision is Decision.ILLEGAL

    @property
    def undecided(self) -> bool:
        """Whether it was neither convicted nor found in order."""
        return self.decision not in (Decision.OK, Decision.ILLEGAL)

    def to_json(self) -> bytes:
        """One line of JSON, without its end."""
        return msgspec.json.encode(self)

    @classmethod
    def from_json(cls, line: bytes) -> "RunResult":
        """Read one line. Raises msgspec.DecodeError."""
        return msgspec.json.decode(line, type=cls)


@frozen(kw_only=True)
class CampaignResult:
    """What a campaign came to."""

    # Number of seeds asked for.
    seeds: int
    # Seeds judged, those of earlier sittings included.
    finished: int = 0
    # Seeds run in this sitting.
    ran: int = 0
    operations: int = 0
    events: int = 0
    # Failing runs by the name of their worst anomaly.
    anomalies: dict[str, int] = Factory(dict)
    # (seed, anomaly), lowest seeds first.
    failing: tuple[tuple[int, str], ...] = ()
    # Seeds whose run was too weak to mean anything.
    broken: tuple[int, ...] = ()
    # Seeds that a judge could not decide.
    undecided: tuple[int, ...] = ()
    # (seed, why) of runs that did not end.
    crashed: tuple[tuple[int, str], ...] = ()
    # Number of runs that were run twice.
    rechecked: int = 0
    # Seeds whose second run had another digest.
    disagreeing: tuple[int, ...] = ()
    # Number of runs that reached each mark.
    marks: dict[str, int] = Factory(dict)
    # Marks that the profile could reach and no run did.
    never_reached: tuple[str, ...] = ()
    parts: int = 0
    # Real time of this sitting, in seconds.
    wall_s: float = 0.0
    interrupted: bool = False

    @property
    def runs_per_second(self) -> float:
        """Of this sitting."""
        return self.ran / self.wall_s if self.wall_s > 0 else 0.0

    @property
    def findings(self) -> int:
        """Runs with a finding."""
        return sum(self.anomalies.values())

    @property
    def exit_codes(self) -> set[ExitCode]:
        """Those that apply. A run that crashed, was too weak or did not repeat is not Ok."""
        codes = set()
        if self.interrupted:
            codes.add(ExitCode.INTERRUPTED)
        if self.findings:
            codes.add(ExitCode.FINDINGS)
        if self.broken or self.undecided or self.crashed or self.disagreeing:
            codes.add(ExitCode.UNDECIDED)
        return codes

    @property
    def exit_code(self) -> ExitCode:
        """The strongest of them."""
        return strongest(self.exit_codes)


@define(kw_only=True)
class Tally:
    """The sums while a campaign runs. Each set is filled by `add` and never shrinks."""

    finished: int = 0
    operations: int = 0
    events: int = 0
    anomalies: Counter[str] = Factory(Counter)
    failing: dict[int, str] = Factory(dict)
    broken: set[int] = Factory(set)
    undecided: set[int] = Factory(set)
    crashed: dict[int, str] = Factory(dict)
    disagreeing: set[int] = Factory(set)
    rechecked: int = 0
    ran: int = 0
    marks: Counter[str] = Factory(Counter)

    def add(self, result: RunResult) -> None:
        """Count one judged or crashed run."""
        self.finished += 1
        self.operations += result.operations
        self.events += result.events
        self.marks.update(result.marks)
        if result.crash:
            self.crashed[result.seed] = result.crash
        elif result.decision is Decision.ILLEGAL:
            name = result.anomaly or "unnamed"
            self.anomalies[name] += 1
            self.failing[result.seed] = name
        elif result.decision is Decision.ASSUMPTION_BROKEN:
            self.broken.add(result.seed)
        elif result.decision is not Decision.OK:
            self.undecided.add(result.seed)

    def result(
        self, *, seeds: int, wall_s: float, parts: int, interrupted: bool, possible: tuple[str, ...] = ()
    ) -> CampaignResult:
        """The sums as a value. possible: marks that could be reached."""
        return CampaignResult(
            seeds=seeds,
            finished=self.finished,
            ran=self.ran,
            operations=self.operations,
            events=self.events,
            anomalies={name: self.anomalies[name] for name in names_by_rank(self.anomalies)},
            failing=tuple(sorted(self.failing.items()))[:MOST_SEEDS_NAMED],
            broken=tuple(sorted(self.broken))[:MOST_SEEDS_NAMED],
            undecided=tuple(sorted(self.undecided))[:MOST_SEEDS_NAMED],
            crashed=tuple(sorted(self.crashed.items()))[:MOST_SEEDS_NAMED],
            rechecked=self.rechecked,
            disagreeing=tuple(sorted(self.disagreeing)),
            marks={
                name: self.marks[name] for name in dict.fromkeys((*NAMES, *REAL_NAMES)) if name in self.marks
            },
            never_reached=tuple(name for name in possible if name not in self.marks),
            parts=parts,
            wall_s=wall_s,
            interrupted=interrupted,
        )
