"""Many records through one client while the swarm's broker faults go on (`kafka.chaos`).

Owns the load. It is judged as any run (judges.py).
"""

import time
from typing import Any

from attrs import define

import fencepost.kafka
from fencepost.torture.driver import Driver
from fencepost.torture.protocol import Ready
from fencepost.torture.run import TURN_S, Outcome, Torture
from fencepost.torture.scenario import TOPICS, Scenario

BURST = 100
"""Records of one producer that are sent before consumers are looked at again."""
MOST_OPEN = 6_000
"""Records without an answer: below what librdkafka queues, and enough for every request that may be under way."""
CHAOS_MS = 10_000
LONGEST_S = 240.0
"""Of the part with faults; what was not sent by then is left out."""


@define(eq=False, kw_only=True)
class Load(Torture):
    """Sends as fast as answers come."""

    chaos_ms: int = CHAOS_MS

    def _with_faults(self) -> None:
        count = self.kafka.chaos(self.scenario.seed, self.chaos_ms, topic=TOPICS[0])
        self.hit.append(f"{count} faults of the swarm over {self.chaos_ms} ms")
        start = time.monotonic()
        for burst in range(self.scenario.bursts):
            for number in range(self.scenario.producers):
                self._send(number, burst)
            while self.driver.under_way > MOST_OPEN and not self.driver.failure:
                self.group.turn()
                time.sleep(TURN_S)
            self.group.turn()
            if time.monotonic() - start > LONGEST_S or self.driver.failure:
                break
        while (time.monotonic() - start) * 1000 < self.chaos_ms:
            self.group.turn()
            time.sleep(TURN_S)


def scenario_of_load(seed: int, ready: Ready, records: int) -> Scenario:
    """One producer per 50,000 records at most two, one reader; retries without end, as an application has them."""
    producers = 2
    producer: dict[str, Any] = {
        "acks": -1,
        "idempotence": ready.idempotence,
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


def load(driver: Driver, seed: int, records: int) -> tuple[Outcome, str]:
    """One load in a fresh cluster, and what the brokers' own record says of it: whether they kept their
    invariants, and whether what happened to them allows a loss. Raises FencepostError."""
    driver.forget()
    with fencepost.kafka.cluster(seed=seed) as kafka:
        scenario = scenario_of_load(seed, driver.ready, records)
        outcome = Load(scenario=scenario, driver=driver, kafka=kafka).go()
        claims = kafka.trace().claims
        brokers = kafka.verdict(("invariants", "conformance"))
        loss = f"; loss is allowed: {claims.loss[0].reason}" if claims.loss else ""
        weak = f"; {claims.assumption_broken}" if claims.assumption_broken else ""
        return outcome, f"brokers {brokers.decision.value}{loss}{weak}; {'; '.join(claims.reasons)}"
