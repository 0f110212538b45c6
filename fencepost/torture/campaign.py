"""Many seeds against one client library: worker processes, what they found, rates, and smaller scenarios.

Owns the files of a campaign and its order. Must not know how a seed is drawn (scenario.py), carried out
(scenario_run.py) or judged (judges.py).

Clients are not deterministic, so a finding has a rate: how many of REPLAYS runs of the same scenario show the
same anomaly. A scenario is made smaller as long as the rate stays at or above LEAST_RATE.

    runs.jsonl            one line for each seed, as soon as it is done; a resumed campaign leaves those out
    findings/NAME.json    each anomaly: the promise, seeds, rate, the scenario and a smaller one, in words
    traces/SEED.*         what the brokers recorded and the application saw of a seed with a finding (saw.py)
"""

import multiprocessing
import os
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any

import msgspec
from attrs import frozen

from fencepost.campaign.driver.ledger import refuse_foreign
from fencepost.impl.runtime.processes import uninterrupted
from fencepost.torture.building import build
from fencepost.torture.judging.promises import PROMISES
from fencepost.torture.libraries import wanted
from fencepost.torture.reached import by_verb, met_by, never, struck
from fencepost.torture.scenario import Scenario, scenario_of
from fencepost.torture.workers import TRACES, Job, begin, shows
from fencepost.torture.workers import seed as run_seed
from fencepost.traces.errors import EnvironmentError_, FencepostError

REPLAYS = 10
LEAST_RATE = 0.4
"""A smaller scenario shows the anomaly in at least two of SHRINK_REPLAYS runs."""
SHRINK_REPLAYS = 5
MOST_SHRINK_RUNS = 120
"""Bound of a shrink: five minutes at two seconds a run."""
RUNS, FINDINGS, JOB = "runs.jsonl", "findings", "job.json"
CANNOT_START = 3
"""A campaign whose first seeds, so many, could not start the driver ends: the next ones cannot, either."""
STUCK = frozenset({"stuck_consumer", "stuck_append"})
"""Found by waiting: runs with it take half a minute, and it is replayed less often."""


Rate = Callable[[Scenario, str, int], int]
"""How many of so many runs of a scenario show an anomaly."""


@frozen(kw_only=True)
class _Replays:
    """Runs of scenarios in all workers at once: clients mostly wait."""

    pool: ProcessPoolExecutor
    jobs: int

    def rate(self, scenario: Scenario, anomaly: str, runs: int) -> int:
        """How many of so many runs show the anomaly."""
        begun = [self.pool.submit(shows, scenario.as_dict(), anomaly) for _ in range(runs)]
        return sum(one.result() for one in begun)

    def within(
        self, scenario: Scenario, anomaly: str, runs: int, seconds: float, each_s: float
    ) -> tuple[int, int]:
        """How many runs show the anomaly, and how many ran: at most `runs`, and none is begun that would not
        end in time, as far as the length of one, each_s, says. Both in seconds."""
        until, shown, ran = time.monotonic() + seconds, 0, 0
        while ran < runs and time.monotonic() + each_s <= until:
            at_once = min(self.jobs, runs - ran)
            shown, ran = shown + self.rate(scenario, anomaly, at_once), ran + at_once
        return shown, ran


def _replayed(
    replays: _Replays, anomaly: str, first: dict[str, Any], runs: int, seconds: float, shrink: bool
) -> dict[str, Any]:
    scenario = scenario_of(first["scenario"])
    shown, ran = replays.within(scenario, anomaly, runs, seconds, first.get("seconds", 0.0))
    entry: dict[str, Any] = _not_replayed(first) | {"rate": [shown, ran]}
    if shrink and shown and shown >= LEAST_RATE * ran and anomaly not in STUCK:
        small, count = smaller(replays.rate, scenario, anomaly)
        again = replays.rate(small, anomaly, runs)
        entry["small"] = {
            "rate": [again, runs],
            "scenario": small.as_dict(),
            "words": small.words(),
            "runs": count,
            "faults": small.faults,
        }
    return entry


def _not_replayed(first: dict[str, Any]) -> dict[str, Any]:
    scenario = scenario_of(first["scenario"])
    return {"rate": [0, 0], "scenario": first["scenario"], "words": scenario.words()}


def smaller(
    rate: Rate, scenario: Scenario, anomaly: str, most_runs: int = MOST_SHRINK_RUNS, enough: int = -1
) -> tuple[Scenario, int]:
    """The smallest scenario found, and how many runs that took. Every step keeps the rate; a step is given up
    after two runs that show nothing. After a step that is kept, the next ones are tried, and those before it
    once more at the end.

    Args:
        rate: runs a scenario.
        scenario: that shows the anomaly.
        anomaly: its name.
        most_runs: bound of the runs.
        enough: as soon as so few faults and steps are left, it ends.
    """
    runs, place, changed = 0, 0, False
    wanted_runs = -(-int(LEAST_RATE * 100) * SHRINK_REPLAYS // 100)
    while runs < most_runs and scenario.faults > enough:
        candidates = list(scenario.smaller())
        if place >= len(candidates):
            if not changed:
                break
            place, changed = 0, False
            continue
        shown, runs = rate(candidates[place], anomaly, wanted_runs), runs + wanted_runs
        if 0 < shown < wanted_runs:
            left = SHRINK_REPLAYS - wanted_runs
            shown, runs = shown + rate(candidates[place], anomaly, left), runs + left
        if shown >= wanted_runs:
            scenario, changed = candidates[place], True
        else:
            place += 1
    return scenario, runs


def torture(
    job: Job,
    seeds: range,
    *,
    jobs: int = 1,
    resume: bool = False,
    replays: int | None = None,
    enough: int = 0,
    wanted_anomalies: frozenset[str] = frozenset(),
    shrink: bool = False,
    progress: Callable[[dict[str, Any]], None] = lambda line: None,
    repeating: Callable[[str], None] = lambda words: None,
) -> dict[str, Any]:
    """Run the seeds, replay the first of each anomaly. Ctrl-C (KeyboardInterrupt) ends all workers at once;
    what was found is written, and the summary has `interrupted`.

    Args:
        job: what every worker does.
        seeds: to run.
        jobs: worker processes.
        resume: go on with the campaign in the folder.
        replays: runs of each anomaly's first scenario, however long they take; None: at most REPLAYS, and all
            of them together take no longer than the seeds did.
        enough: seeds with a finding after which no more are begun; 0: all are run.
        wanted_anomalies: only these are enough, and replayed; empty: all.
        shrink: whether to make the scenarios smaller.
        progress: called with the line of each seed.
        repeating: called with what is replayed now, in words.

    Returns:
        a summary.

    Raises: FencepostError, also if the first seeds cannot start the driver.
    """
    out = Path(job.out)
    lines = list(_before(out, job, seeds, resume))
    build(wanted(job.library))
    done = {line["seed"] for line in lines}
    began, interrupted = time.monotonic(), False
    findings: dict[str, Any] = {}
    others = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context, begin, (job, os.getpid())) as pool:
        try:
            left = [seed for seed in seeds if seed not in done]
            _run_seeds(pool, out, left, lines, jobs, enough, wanted_anomalies, progress)
            seconds = time.monotonic() - began
            pooled = _Replays(pool=pool, jobs=jobs)
            _repeat(pooled, job, lines, findings, replays, wanted_anomalies, shrink, repeating)
        except KeyboardInterrupt:
            interrupted, seconds = True, time.monotonic() - began
            with uninterrupted():
                for one in set(multiprocessing.active_children()) - others:
                    one.kill()  # its driver ends with it
                pool.shutdown(cancel_futures=True)
                for anomaly, of in _by_anomaly(lines).items():
                    if anomaly not in findings:
                        findings[anomaly] = _written(job, anomaly, of, _not_replayed(_first(of)))
    summary = _summary(lines, findings, seconds, len(lines) - len(done))
    return {"library": job.library, **summary, "interrupted": interrupted}


def _summary(
    lines: list[dict[str, Any]], findings: Mapping[str, Any], seconds: float, more: int
) -> dict[str, Any]:
    """What the lines of a campaign say together. seconds: that it took to run so many more."""
    ran = [line for line in lines if "scenario" in line]
    met = met_by(ran)
    return {
        "seeds": len(lines),
        "failed": [line for line in lines if "failed" in line],
        "disturbed": [line for line in lines if "disturbed" in line],
        "records": sum(line["records"] for line in ran),
        "acknowledged": sum(line["acknowledged"] for line in ran),
        "duplicates": sum(line["duplicates"] for line in ran),
        "seeds_with_duplicates": sum(line["duplicates"] > 0 for line in ran),
        "struck": struck(ran),
        "met": by_verb(met),
        "never": never(
            met,
            groups=any(line["scenario"]["members"] for line in ran),
            transactions=any(line["scenario"]["transactional"] for line in ran),
        ),
        "seconds": round(seconds, 1),
        "processor_seconds": round(sum(line["processor_seconds"] for line in ran), 1),
        "client_seconds": round(sum(line["client_seconds"] for line in ran), 1),
        "seeds_per_minute": round(more * 60 / seconds, 1) if seconds else 0.0,
        "findings": findings,
    }


def _run_seeds(
    pool: ProcessPoolExecutor,
    out: Path,
    left: list[int],
    lines: list[dict[str, Any]],
    jobs: int,
    enough: int,
    wanted_anomalies: frozenset[str],
    progress: Callable[[dict[str, Any]], None],
) -> None:
    """Run what is left; each is written, and added to the lines."""

    def found() -> bool:
        return enough > 0 and sum(_has(one, wanted_anomalies) for one in lines) >= enough

    new: list[dict[str, Any]] = []
    results = _results(pool, [] if found() else left, jobs)
    with (out / RUNS).open("ab") as file:
        for line in results:
            file.write(msgspec.json.encode(line) + b"\n")
            file.flush()
            lines.append(line)
            new.append(line)
            progress(line)
            if len(new) == CANNOT_START and all(one.get("started") is False for one in new):
                results.close()
                raise EnvironmentError_(
                    expected="a driver that starts",
                    seen=f"that the first {CANNOT_START} seeds could not start it: {line['failed']}",
                    where="the campaign",
                )
            if found():
                results.close()
                break


def _repeat(
    replays: _Replays,
    job: Job,
    lines: list[dict[str, Any]],
    findings: dict[str, Any],
    asked: int | None,
    wanted_anomalies: frozenset[str],
    shrink: bool,
    repeating: Callable[[str], None],
) -> None:
    """Replay the first seed of each anomaly, and write it. If no number of replays was asked for, all share
    as much time as the seeds took, also those that ran before a resumption."""
    of_all = _by_anomaly(lines)
    until = time.monotonic() + sum(line.get("seconds", 0.0) for line in lines) / replays.jobs
    for place, (anomaly, of) in enumerate(of_all.items()):
        first = _first(of)
        most = REPLAYS if asked is None else asked
        runs = min(most, SHRINK_REPLAYS) if anomaly in STUCK else most
        runs = runs if anomaly in (wanted_anomalies or of_all) else 0
        share = max(0.0, until - time.monotonic()) / (len(of_all) - place) if asked is None else float("inf")
        bound = "" if asked is not None else f", {share:.0f} s at most"
        repeating(
            f"repeating {anomaly} ({place + 1} of {len(of_all)}): seed {first['seed']}, {runs} runs{bound}"
        )
        entry = _replayed(replays, anomaly, first, runs, share, shrink)
        findings[anomaly] = _written(job, anomaly, of, entry)


def _first(of: list[dict[str, Any]]) -> dict[str, Any]:
    return min(of, key=lambda line: int(line["seed"]))


def _written(job: Job, anomaly: str, of: list[dict[str, Any]], entry: dict[str, Any]) -> dict[str, Any]:
    """What is known of an anomaly, after it was written into its file. of: the lines of its seeds."""
    first, folder = _first(of), Path(job.out) / FINDINGS
    (finding,) = [one for one in first["findings"] if one["anomaly"] == anomaly]
    known = {
        "library": job.library,
        **finding,
        "brokers": first.get("brokers", ""),
        "seeds": sorted(line["seed"] for line in of),
        "first": first["seed"],
        "hit": first.get("hit", []),
        **entry,
    }
    folder.mkdir(exist_ok=True)
    (folder / f"{anomaly}.json").write_bytes(msgspec.json.format(msgspec.json.encode(known), indent=1))
    return known


def _before(out: Path, job: Job, seeds: range, resume: bool) -> Iterator[dict[str, Any]]:
    """The runs that exist already, if the campaign is resumed. Those that were disturbed, or could not
    start the driver, are left out: they are run again. Raises FencepostError."""
    path, said = out / RUNS, out / JOB
    refuse_foreign(out, (RUNS, FINDINGS, TRACES, JOB), "a campaign of client libraries")
    words = msgspec.json.encode(
        {"library": job.library, "idempotence": job.idempotence, "faults": job.faults}
    )
    if path.exists() and not resume:
        raise FencepostError(
            expected="a new folder",
            seen="the runs of another campaign",
            where=str(out),
            hint="continue it (--resume, or resume=True), or choose another folder",
        )
    out.mkdir(parents=True, exist_ok=True)
    if path.exists():
        if said.read_bytes() != words:
            raise FencepostError(
                expected=f"a campaign of {words.decode()}", seen=said.read_text(), where=str(said)
            )
        for line in path.read_bytes().splitlines():
            try:
                row = msgspec.json.decode(line)
            except msgspec.DecodeError:
                continue  # the last line of a campaign that was killed
            if row["seed"] in seeds and "disturbed" not in row and row.get("started") is not False:
                yield row
    said.write_bytes(words)


def _results(pool: ProcessPoolExecutor, seeds: list[int], jobs: int) -> Generator[dict[str, Any], None, None]:
    """As they are done; at most two for each worker wait."""
    left, waiting = iter(seeds), set[Future[dict[str, Any]]]()
    try:
        while True:
            for seed in left:
                waiting.add(pool.submit(run_seed, seed))
                if len(waiting) >= 2 * jobs:
                    break
            if not waiting:
                return
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
    finally:
        for future in waiting:
            future.cancel()


def _has(line: dict[str, Any], anomalies: frozenset[str]) -> bool:
    """Whether a run shows one of these anomalies; empty: any."""
    return any(not anomalies or one["anomaly"] in anomalies for one in line["findings"])


def _by_anomaly(lines: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for anomaly in PROMISES:
        of = [line for line in lines if any(one["anomaly"] == anomaly for one in line["findings"])]
        if of:
            found[anomaly] = of
    return found
