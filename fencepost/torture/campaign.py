"""Many seeds against one client library: worker processes, what they found, rates, and smaller scenarios.

Owns the files of a campaign and its order. Must not know how a seed is drawn (scenario.py), carried out
(scenario_run.py) or judged (judges.py).

Clients are not deterministic, so a finding has a rate: how many of REPLAYS runs of the same scenario show the
same anomaly. A scenario is made smaller as long as the rate stays at or above LEAST_RATE.

    runs.jsonl            one line for each seed, as soon as it is done; a resumed campaign leaves those out
    findings/NAME.json    each anomaly: the promise, seeds, rate, the scenario and a smaller one, in words
    traces/SEED.jsonl     what the brokers recorded of a seed with a finding, for `fencepost show`
"""

import multiprocessing
import os
import resource
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any

import msgspec
from attrs import define, frozen

import fencepost.kafka
from fencepost.campaign.driver.ledger import refuse_foreign
from fencepost.impl.runtime.processes import end_with
from fencepost.torture.building import Built, build
from fencepost.torture.drawing import draw
from fencepost.torture.driver_process import Driver
from fencepost.torture.judges import as_dict, duplicates, judge
from fencepost.torture.libraries import wanted
from fencepost.torture.promises import PROMISES, promises_of
from fencepost.torture.protocol import DisturbedError
from fencepost.torture.reached import by_verb, met_by, never, struck
from fencepost.torture.scenario import Scenario, scenario_of
from fencepost.torture.scenario_run import Outcome, carry_out
from fencepost.traces.errors import EnvironmentError_, FencepostError

REPLAYS = 10
LEAST_RATE = 0.4
"""A smaller scenario shows the anomaly in at least two of SHRINK_REPLAYS runs."""
SHRINK_REPLAYS = 5
MOST_SHRINK_RUNS = 120
"""Bound of a shrink: five minutes at two seconds a run."""
RUNS, FINDINGS, TRACES, JOB = "runs.jsonl", "findings", "traces", "job.json"
MOST_DISTURBED = 3
"""Runs of one replay that something outside may disturb; after them it shows nothing."""
STUCK = frozenset({"stuck_consumer", "stuck_append"})
"""Found by waiting: runs with it take half a minute, and it is replayed less often."""


@frozen(kw_only=True)
class Job:
    """What every worker does."""

    # NAME@VERSION.
    library: str
    out: str
    idempotence: bool | None = None
    faults: bool = True


@define(eq=False)
class Worker:
    """A driver that is started when it is needed, and again when it was of no use."""

    job: Job
    built: Built
    driver: Driver | None = None

    def ready(self) -> Driver:
        """A driver that runs."""
        if self.driver is not None and (self.driver.failure or self.driver.under_way):
            self.driver.kill()
            self.driver = None
        if self.driver is None:
            self.driver = Driver.start(self.built)
            _check_version(self.driver, self.built)
        return self.driver

    def seed(self, number: int) -> dict[str, Any]:
        """A seed's run, as a line of runs.jsonl."""
        scenario = draw(
            number,
            self.ready().ready,
            idempotence=self.job.idempotence,
            faults=self.job.faults,
            own=self.built.wanted.library.draw,
        )
        return self.run(scenario, Path(self.job.out) / TRACES / f"{number}.jsonl")

    def run(self, scenario: Scenario, keep: Path | None = None) -> dict[str, Any]:
        """One run. keep: where the brokers' record goes if there is a finding."""
        wall, processor = time.monotonic(), _processor_s()

        def judged(outcome: Outcome, kafka: fencepost.kafka.KafkaCluster) -> dict[str, Any]:
            promises = promises_of(self.built.wanted.library.promises)
            findings = judge(outcome, promises)
            weak = _weak(kafka) if findings and scenario.chaos else ""
            findings = [] if weak else findings
            brokers = ""
            if findings and keep is not None:
                keep.parent.mkdir(parents=True, exist_ok=True)
                kafka.save_trace(keep)
                brokers = kafka.verdict(("invariants", "conformance")).decision.value
            return {
                "seed": scenario.seed,
                "records": len(outcome.appends),
                "acknowledged": sum(command.ok for command in outcome.appends),
                "duplicates": duplicates(outcome),
                "transactions": Counter(one.ended or "unknown" for one in outcome.transactions),
                "hit": list(outcome.hit),
                "met": dict(outcome.met),
                "weak": weak,
                "findings": [as_dict(finding, promises) for finding in findings],
                "brokers": brokers,
                "scenario": scenario.as_dict(),
            }

        driver = self.ready()
        client = driver.processor_s()
        line: dict[str, Any] = carry_out(scenario, driver, judged)
        line["client_seconds"] = round(max(0.0, driver.processor_s() - client), 3)
        line["seconds"] = round(time.monotonic() - wall, 3)
        line["processor_seconds"] = round(_processor_s() - processor, 3)
        return line

    def rate(self, scenario: Scenario, anomaly: str, runs: int) -> int:
        """How many of so many runs show the anomaly."""
        return sum(
            any(finding["anomaly"] == anomaly for finding in self.run(scenario)["findings"])
            for _ in range(runs)
        )


def _weak(kafka: fencepost.kafka.KafkaCluster) -> str:
    """Why the swarm's faults of brokers may explain what was seen; empty: they may not."""
    claims = kafka.trace().claims
    return claims.loss[0].reason if claims.loss else ""


def _check_version(driver: Driver, built: Built) -> None:
    seen, asked = driver.ready.version, built.wanted.version
    if seen.split("+")[0] != asked.split("+")[0]:
        raise EnvironmentError_(
            expected=f"version {asked}, which was asked for",
            seen=f"{seen}, which the driver says it has",
            where=str(built.wanted),
            hint="does the manifest pin it?",
        )


def _processor_s() -> float:
    """Processor seconds of this process with its cluster. The driver's are not included."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


WORKER: Worker | None = None
"""The worker of this process; None outside worker processes."""


def _begin(job: Job, parent: int) -> None:
    global WORKER
    end_with(parent)
    WORKER = Worker(job, build(wanted(job.library)))


def _seed(number: int) -> dict[str, Any]:
    assert WORKER is not None
    try:
        return WORKER.seed(number)
    except DisturbedError as error:
        return {"seed": number, "disturbed": str(error), "findings": []}
    except FencepostError as error:
        return {"seed": number, "failed": str(error), "findings": []}


def _shows(values: dict[str, Any], anomaly: str) -> bool:
    """Whether one run shows the anomaly; a run that fails shows nothing. One that is disturbed is run
    again."""
    assert WORKER is not None
    for _ in range(MOST_DISTURBED):
        try:
            return WORKER.rate(scenario_of(values), anomaly, 1) == 1
        except DisturbedError:
            continue
        except FencepostError:
            return False
    return False


Rate = Callable[[Scenario, str, int], int]
"""How many of so many runs of a scenario show an anomaly."""


def _rate_in(pool: ProcessPoolExecutor) -> Rate:
    """Runs at once in all workers: clients mostly wait."""

    def rate(scenario: Scenario, anomaly: str, runs: int) -> int:
        values = scenario.as_dict()
        return sum(one.result() for one in [pool.submit(_shows, values, anomaly) for _ in range(runs)])

    return rate


def _replayed(rate: Rate, anomaly: str, values: dict[str, Any], replays: int, shrink: bool) -> dict[str, Any]:
    scenario = scenario_of(values)
    runs = min(replays, SHRINK_REPLAYS) if anomaly in STUCK else replays
    shown = rate(scenario, anomaly, runs)
    entry: dict[str, Any] = {"rate": [shown, runs], "scenario": values, "words": scenario.words()}
    if shrink and shown and shown >= LEAST_RATE * runs and anomaly not in STUCK:
        small, count = smaller(rate, scenario, anomaly)
        again = rate(small, anomaly, runs)
        entry["small"] = {
            "rate": [again, runs],
            "scenario": small.as_dict(),
            "words": small.words(),
            "runs": count,
            "faults": small.faults,
        }
    return entry


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
    replays: int = REPLAYS,
    enough: int = 0,
    wanted_anomalies: frozenset[str] = frozenset(),
    shrink: bool = False,
    progress: Callable[[dict[str, Any]], None] = lambda line: None,
) -> dict[str, Any]:
    """Run the seeds, replay the first of each anomaly. Answers a summary. enough: seeds with a finding after
    which no more are begun; 0: all are run. wanted_anomalies: only these are enough, and replayed; empty:
    all. Raises FencepostError."""
    out = Path(job.out)
    lines = list(_before(out, job, seeds, resume))
    build(wanted(job.library))
    done = {line["seed"] for line in lines}
    began = time.monotonic()
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _begin, (job, os.getpid())) as pool:
        with (out / RUNS).open("ab") as file:
            found = enough and sum(_has(one, wanted_anomalies) for one in lines) >= enough
            left = [] if found else [seed for seed in seeds if seed not in done]
            for line in (results := _results(pool, left, jobs)):
                file.write(msgspec.json.encode(line) + b"\n")
                file.flush()
                lines.append(line)
                progress(line)
                if enough and sum(_has(one, wanted_anomalies) for one in lines) >= enough:
                    results.close()
                    break
        seconds = time.monotonic() - began
        findings, of_all = {}, _by_anomaly(lines)
        for anomaly, of in of_all.items():
            first = min(of, key=lambda line: line["seed"])
            runs = replays if anomaly in (wanted_anomalies or of_all) else 0
            entry = _replayed(_rate_in(pool), anomaly, first["scenario"], runs, shrink)
            (finding,) = [one for one in first["findings"] if one["anomaly"] == anomaly]
            findings[anomaly] = {
                "library": job.library,
                **finding,
                "brokers": first.get("brokers", ""),
                "seeds": sorted(line["seed"] for line in of),
                "first": first["seed"],
                "hit": first.get("hit", []),
                **entry,
            }
            (out / FINDINGS).mkdir(exist_ok=True)
            (out / FINDINGS / f"{anomaly}.json").write_bytes(
                msgspec.json.format(msgspec.json.encode(findings[anomaly]), indent=1)
            )
    ran = [line for line in lines if "scenario" in line]
    met = met_by(ran)
    return {
        "library": job.library,
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
        "seeds_per_minute": round((len(lines) - len(done)) * 60 / seconds, 1) if seconds else 0.0,
        "findings": findings,
    }


def _before(out: Path, job: Job, seeds: range, resume: bool) -> Iterator[dict[str, Any]]:
    """The runs that exist already, if the campaign is resumed. Those that were disturbed are left out: they
    are run again. Raises FencepostError."""
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
            if row["seed"] in seeds and "disturbed" not in row:
                yield row
    said.write_bytes(words)


def _results(pool: ProcessPoolExecutor, seeds: list[int], jobs: int) -> Generator[dict[str, Any], None, None]:
    """As they are done; at most two for each worker wait."""
    left, waiting = iter(seeds), set[Future[dict[str, Any]]]()
    try:
        while True:
            for seed in left:
                waiting.add(pool.submit(_seed, seed))
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
