"""Many records through one client during the swarm's broker faults (`kafka.chaos`).

Owns the load. It is judged as any run (judges.py), except for losses that the brokers' own record allows:
after power losses of all replicas acknowledged records may be gone.
"""

import threading
import time
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

import fencepost.kafka
from fencepost.torture.driver import Driver
from fencepost.torture.judges import Finding, judge
from fencepost.torture.protocol import Ready
from fencepost.torture.run import TURN_S, Outcome, Torture
from fencepost.torture.scenario import TOPICS, Scenario

BURST = 20
"""Records that one producer sends before the next look at the consumers."""
MOST_OPEN = 1_000
"""Records without an answer: enough for batches, and few enough for clients that time a record from its
call."""
ROUND_MS = 6_000
"""Duration of one round of faults. The next one follows at once."""
CHAOS_S = 60.0
"""How long faults last. The records are spread over this time: some clients send a hundred thousand in two
seconds, which is shorter than a fault. A slower client sends the rest to the healed cluster."""
LONGEST_S = 900.0
"""Longest time of sending; records that were not sent by then are left out."""
MOST_EVENTS = 2_000_000
"""Most events of the brokers. They must cover a whole run, because they say which losses are allowed."""


@define(eq=False, kw_only=True)
class Load(Torture):
    """Sends as fast as answers come, and no faster than the records are spread."""

    chaos_s: float = CHAOS_S
    drawn: int = 0
    """Faults so far."""
    _over: threading.Event = field(factory=threading.Event)

    def _chaos(self, start: float) -> None:
        number = self.scenario.seed * 1_000
        while not self._over.is_set() and time.monotonic() - start < self.chaos_s:
            self.drawn += self.kafka.chaos(number, ROUND_MS, topic=TOPICS[0])
            number += 1
            self._over.wait(ROUND_MS / 1_000)
        self.kafka.heal()

    def _with_faults(self) -> None:
        start = time.monotonic()
        breaking = threading.Thread(target=self._chaos, args=(start,), daemon=True)
        breaking.start()
        try:
            for burst in range(self.scenario.bursts):
                for number in range(self.scenario.producers):
                    self.producers.send(number, burst)
                due = start + self.chaos_s * burst / self.scenario.bursts
                while self.driver.under_way > MOST_OPEN or time.monotonic() < due:
                    self.group.turn()
                    time.sleep(TURN_S)
                    if time.monotonic() - start > LONGEST_S or self.driver.failure:
                        return
        finally:
            self._over.set()
            breaking.join()
            self.hit.append(f"{self.drawn} faults of the swarm")


def scenario_of_load(seed: int, ready: Ready, records: int, *, plain: bool = False) -> Scenario:
    """Two producers, one reader; retries without end, as an application has them. plain: no idempotence."""
    producers = 2
    producer: dict[str, Any] = {
        "acks": -1,
        "idempotence": ready.idempotence and not plain,
        "retries": 1_000,
        "retry_backoff_ms": 50,
        "request_timeout_ms": 3_000,
        "delivery_timeout_ms": 120_000,
        "linger_ms": 5,
        "metadata_max_age_ms": 1_000,
    }
    consumer: dict[str, Any] = {
        "offset_reset": "earliest",
        "auto_commit": False,
        "session_timeout_ms": 6_000,
        "heartbeat_interval_ms": 300,
        "fetch_max_wait_ms": 100,
        "metadata_max_age_ms": 1_000,
    }
    return Scenario(
        seed=seed,
        producer={name: value for name, value in producer.items() if name in ready.config},
        consumer={name: value for name, value in consumer.items() if name in ready.config},
        producers=producers,
        members=1,
        bursts=max(1, records // producers // BURST),
        burst=BURST,
    )


@frozen(kw_only=True)
class Loaded:
    """One load, and what the brokers' own record says of it."""

    run: Outcome
    faults: int
    """Drawn; some of them found the fault budget used up."""
    findings: tuple[Finding, ...]
    """Findings that the faults do not allow."""
    allowed: tuple[str, ...]
    """Why acknowledged records may be gone, in words; empty: they may not."""
    brokers: str
    """Whether the brokers kept their invariants: ok, or the verdict."""


def load(
    driver: Driver, seed: int, records: int, *, plain: bool = False, trace: Path | None = None
) -> Loaded:
    """One load in a fresh cluster. trace: where the brokers' record is kept. Raises FencepostError."""
    driver.forget()
    with fencepost.kafka.cluster(seed=seed, most_events=MOST_EVENTS) as kafka:
        scenario = scenario_of_load(seed, driver.ready, records, plain=plain)
        loaded = Load(scenario=scenario, driver=driver, kafka=kafka)
        run = loaded.go()
        claims = kafka.trace().claims
        brokers = kafka.verdict(("invariants", "conformance"))
        if trace is not None:
            kafka.save_trace(trace)
    return Loaded(
        run=run,
        faults=loaded.drawn,
        findings=tuple(judge(run, allowed=claims.loss)),
        allowed=(*(one.reason for one in claims.loss), *filter(None, [claims.assumption_broken])),
        brokers=brokers.decision.value,
    )
