"""A worker process of a campaign: a driver, and one run after another.

Owns the driver of the process, and what a run is as a line. Must not know the campaign (campaign.py).
"""

import resource
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

from attrs import define, frozen

import fencepost.kafka
from fencepost.impl.runtime.processes import end_with
from fencepost.torture import saw
from fencepost.torture.building import Built, build
from fencepost.torture.drawing import draw
from fencepost.torture.driver_process import Driver
from fencepost.torture.judging.judges import as_dict, duplicates, judge
from fencepost.torture.judging.outcome import Outcome
from fencepost.torture.judging.promises import promises_of
from fencepost.torture.libraries import wanted
from fencepost.torture.protocol import DisturbedError
from fencepost.torture.scenario import Scenario, scenario_of
from fencepost.torture.scenario_run import carry_out
from fencepost.traces.errors import EnvironmentError_, FencepostError

TRACES = "traces"
MOST_DISTURBED = 3
"""Runs of one replay that something outside may disturb; after them it shows nothing."""


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
            check_version(self.driver, self.built)
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
                seen = driver.commands, tuple(driver.events), outcome.transactions, outcome.clock
                saw.keep(keep, kafka.trace(), *seen)
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


def check_version(driver: Driver, built: Built) -> None:
    """Raises EnvironmentError_ if a driver that runs has another version than was asked for."""
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


def begin(job: Job, parent: int) -> None:
    """The start of a worker process. parent: the campaign's process, which alone hears Ctrl-C."""
    global WORKER
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_with(parent)
    WORKER = Worker(job, build(wanted(job.library)))


def seed(number: int) -> dict[str, Any]:
    """A seed's run in a worker process, as a line of runs.jsonl."""
    assert WORKER is not None
    started = False
    try:
        WORKER.ready()
        started = True
        return WORKER.seed(number)
    except DisturbedError as error:
        return {"seed": number, "disturbed": str(error), "findings": []}
    except FencepostError as error:
        return {"seed": number, "failed": str(error), "started": started, "findings": []}


def shows(values: dict[str, Any], anomaly: str) -> bool:
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
