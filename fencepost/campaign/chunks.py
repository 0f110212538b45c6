"""A campaign in pieces that a test runner can spread, and the plan of a test's own cluster.

Owns: what a test may ask for, and the runs of a piece. Must not know pytest, or how a failure is reported
(failure.py).
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from attrs import evolve, field, frozen

from fencepost.campaign.failure import Keeping, RunFailedError, assert_ok
from fencepost.campaign.workers.plans import plan_of
from fencepost.campaign.workers.results import Job
from fencepost.report.commands import one_seed
from fencepost.run.simulated.run import run
from fencepost.traces.errors import FencepostError, unknown_name
from fencepost.traces.plan import Plan
from fencepost.traces.plan_json import check_names, plan_from_json, plan_to_json
from fencepost.traces.trace import Trace

CAMPAIGN_FIELDS = ("seeds", "profile", "bug", "plan", "chunk")
CLUSTER_FIELDS = ("brokers", "partitions", "replication_factor", "seed", "bug", "plan")
WHERE = "the marker campaign"


@frozen(kw_only=True)
class Chunk:
    """Some seeds of a campaign."""

    job: Job
    seeds: tuple[int, ...]
    # Where each run is saved before it is judged, and how long a failing plan is shrunk.
    keeping: Keeping = field(factory=lambda: Keeping(folder=Path(), shrink_s=0.0))
    # The run that a test is looking at, none between two of them.
    ran: list[Trace] = field(factory=list, eq=False)

    @property
    def name(self) -> str:
        """As a test is called by."""
        first, last = self.seeds[0], self.seeds[-1]
        if len(self.seeds) == 1:
            return f"seed {first}"
        if self.seeds == tuple(range(first, last + 1)):
            return f"seeds {first}:{last + 1}"
        return "seeds " + ",".join(str(seed) for seed in self.seeds)

    def kept_in(self, folder: Path, shrink_s: float, test: str = "") -> "Chunk":
        """The same with a folder for its artefacts. test: its name on pytest's command line."""
        return evolve(self, keeping=Keeping(folder=folder, shrink_s=shrink_s, test=test))

    def _alone(self, seed: int) -> str:
        return one_seed(self.keeping.test, seed)

    def runs(self) -> Iterator[Trace]:
        """The runs, one after another, not judged."""
        for seed in self.seeds:
            try:
                trace = run(plan_of(self.job, seed))
            except Exception as error:
                error.add_note(f"in the run of seed {seed}: {self._alone(seed)}")
                raise
            self.ran[:] = [trace]
            yield trace
            self.ran.clear()

    def assert_nothing_found(self) -> None:
        """Run and judge each seed; only Ok passes. Raises RunFailedError with the report of the first that
        fails, after which the others are named."""
        failed: list[tuple[int, RunFailedError]] = []
        for trace in self.runs():
            keeping = Keeping(
                folder=self.keeping.folder / f"seed-{trace.seed}",
                shrink_s=0.0 if failed else self.keeping.shrink_s,
            )
            try:
                assert_ok(trace, keeping)
            except RunFailedError as error:
                failed.append((trace.seed, error))
        if not failed:
            with suppress(OSError):  # nothing was kept, or somebody else keeps something there
                self.keeping.folder.rmdir()
            return
        seed, first = failed[0]
        lines = [
            f"seed {seed}, of the {self.name}" if len(self.seeds) > 1 else f"seed {seed}",
            "",
            str(first),
        ]
        for other, failure in failed[1:]:
            lines.append(f"also seed {other}: {failure.verdict.anomaly or failure.verdict.decision.value}")
        lines.append(f"this seed alone: {self._alone(seed)}")
        raise RunFailedError("\n".join(lines), first.verdict)


def seeds_of(value: Any) -> tuple[int, ...]:
    """Seeds as a person gives them: how many, "A:B", a range or a list. Raises FencepostError."""
    if isinstance(value, bool):
        seeds: Sequence[Any] = ()
    elif isinstance(value, int):
        seeds = range(value)
    elif isinstance(value, str):
        match = re.fullmatch(r"(\d+)(?::(\d+))?", value)
        seeds = () if match is None else range(int(match[1]), int(match[2] or int(match[1]) + 1))
    else:
        seeds = tuple(value) if isinstance(value, range | list | tuple) else ()
    if not seeds or any(not isinstance(seed, int) or seed < 0 for seed in seeds):
        raise FencepostError(
            expected='seeds: how many, "A:B", a range or a list of numbers from 0',
            seen=f"{value!r:.80}",
            where=WHERE,
        )
    return tuple(seeds)


def chunks_of(
    args: tuple[Any, ...], options: dict[str, Any], *, seed: int | None, seeds: str | None, size: int
) -> list[Chunk]:
    """The pieces of a campaign. args, options: of its marker; seed, seeds: of the command line, which win.
    Raises FencepostError."""
    given = {**dict(zip(CAMPAIGN_FIELDS, args, strict=False)), **options}
    _check_names(given, CAMPAIGN_FIELDS, WHERE)
    if seed is not None:
        chosen: tuple[int, ...] = seeds_of([seed])
    else:
        chosen = seeds_of(seeds if seeds is not None else given.get("seeds"))
    size = given.get("chunk", size)
    if not isinstance(size, int) or size < 1:
        raise FencepostError(expected="a chunk of at least 1 seed", seen=repr(size), where=WHERE)
    job = Job(
        profile=given.get("profile", "default"),
        bugs=_bugs(given.get("bug")),
        plan=_plan_text(given.get("plan")),
    )
    plan_of(
        job, chosen[0]
    )  # an unknown profile or bug, or a plan that cannot be read, is refused before anything runs
    return [Chunk(job=job, seeds=chosen[start : start + size]) for start in range(0, len(chosen), size)]


def cluster_plan(options: dict[str, Any]) -> Plan:
    """The plan of a test's own cluster, without operations and faults. Raises FencepostError, PlanError."""
    _check_names(options, CLUSTER_FIELDS, "the marker fencepost_cluster")
    plan = options.get("plan")
    base = plan if isinstance(plan, Plan) else plan_from_json(_json({"seed": 0, **(plan or {})}))
    cluster, topics = base.cluster, base.cluster.topics
    if "brokers" in options:
        cluster = _changed(cluster, "cluster", brokers=options["brokers"])
        topics = tuple(
            evolve(topic, replication_factor=min(topic.replication_factor, cluster.brokers))
            for topic in topics
        )
    named = {name: options[name] for name in ("partitions", "replication_factor") if name in options}
    topics = tuple(_changed(topic, "cluster.topics", **named) for topic in topics)
    bugs = _bugs(options.get("bug")) or cluster.bugs
    changed = evolve(base, cluster=evolve(cluster, topics=topics, bugs=bugs))
    return _changed(changed, "plan", seed=options["seed"]) if "seed" in options else changed


def _changed(value: Any, where: str, **changes: Any) -> Any:
    try:
        return evolve(value, **changes)
    except (TypeError, ValueError) as error:
        name = next(iter(changes))
        raise FencepostError(
            expected=f"another {name}", seen=f"{changes[name]!r} ({error.args[0]})", where=where
        ) from None


def _bugs(value: Any) -> tuple[str, ...]:
    from fencepost.bugs import parts_with

    bugs = () if value is None else (value,) if isinstance(value, str) else tuple(value)
    parts_with(bugs)
    return bugs


def _plan_text(value: Any) -> str:
    """A plan, a dict of its fields, or the path of a plan file, as JSON; "" for None."""
    if value is None:
        return ""
    if isinstance(value, Plan):
        return plan_to_json(value)
    if isinstance(value, dict):
        return plan_to_json(check_names(plan_from_json(_json({"seed": 0, **value})), "plan"))
    try:
        plan = plan_from_json(Path(value).read_bytes(), where=str(value))
        return plan_to_json(check_names(plan, str(value)))
    except OSError as error:
        raise FencepostError(
            expected="a plan file", seen=error.strerror or str(error), where=str(value)
        ) from None


def _json(value: dict[str, Any]) -> bytes:
    return msgspec.json.encode(value)


def _check_names(given: dict[str, Any], known: tuple[str, ...], where: str) -> None:
    for name in given:
        if name not in known:
            raise FencepostError(
                expected=f"one of {', '.join(known)}", seen=unknown_name(name, known), where=where
            )
