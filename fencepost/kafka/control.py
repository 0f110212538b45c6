"""The control port of an embedded cluster: its verbs for clients in any language.

Owns the table of verbs, and the thread that the port runs in. Must not know HTTP (proxy/control).
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fencepost.campaign.failure import RunFailedError
from fencepost.kafka.handle import KafkaCluster
from fencepost.kafka.judgement import exercised
from fencepost.proxy.control.server import ControlServer, make_token
from fencepost.systems.loop_thread import LoopThread

SAME = (
    *("create_topic", "leader", "controller", "coordinator", "move_leader", "move_coordinator", "rebalance"),
    *("crash", "pause", "resume", "stop", "restart", "power_off", "expire_session", "cut_off", "slow"),
    *("chaos", "end_fault", "end_request_fault", "request_faults", "lose_answer", "answer_with", "delay"),
    *("groups",),
)
"""Methods of the handle that mean the same here: plain values in, plain values out."""
ASSERTIONS = (
    *("assert_ok", "assert_no_loss", "assert_order", "assert_no_duplicates", "assert_delivered"),
    "assert_processed_once",
)
"""Those that end the run and judge it."""


def verbs_of(kafka: KafkaCluster, seed: int) -> Mapping[str, Callable[..., Any]]:
    """Everything that may be called.

    Args:
        kafka: the cluster.
        seed: of verbs that draw and are given none.
    """

    def state() -> dict[str, Any]:
        return {
            **kafka.status(),
            "bootstrap_servers": kafka.bootstrap_servers,
            "brokers": list(kafka.brokers),
            "seed": seed,
        }

    def fault(
        text: str = "",
        kind: str = "",
        target: str = "",
        for_ms: int | None = None,
        other: str = "",
        parameter: int = 0,
    ) -> dict[str, int]:
        if text:
            return {"request_fault": kafka.request_fault(text)}
        return {"fault": kafka.fault(kind, target, for_ms=for_ms, other=other, parameter=parameter)}

    def heal(broker: int | None = None) -> dict[str, Any]:
        kafka.heal(broker)
        return {}

    def verdict() -> dict[str, Any]:
        found = kafka.verdict()
        return {
            "decision": found.decision.value,
            "reason": found.reason,
            "findings": [
                {"anomaly": one.anomaly, "expected": one.expected, "seen": one.seen} for one in found.findings
            ],
            "exercised": exercised(kafka.trace()),
        }

    def wait_until_healthy(timeout_s: int = 60) -> dict[str, Any]:
        kafka.wait_until_healthy(timeout_s)
        return {}

    def records(topic: str, isolation: str = "read_uncommitted") -> Any:
        return kafka._ask("records", topic=topic, isolation=isolation)

    def committed(group: str) -> Any:
        return kafka._ask("committed", group=group)

    def asserted(name: str) -> Callable[..., Any]:
        method = getattr(kafka, name)

        def call(**arguments: Any) -> dict[str, Any]:
            try:
                return {"ok": True, "exercised": method(**arguments)}
            except RunFailedError as error:
                return {"ok": False, "report": str(error)}

        call.__signature__ = _without(method, "folder")  # type: ignore[attr-defined]
        return call

    return {
        **{name: getattr(kafka, name) for name in SAME},
        **{name: asserted(name) for name in ASSERTIONS},
        "state": state,
        "fault": fault,
        "heal": heal,
        "verdict": verdict,
        "seed": lambda: {"seed": seed},
        "wait_until_healthy": wait_until_healthy,
        "records": records,
        "committed": committed,
    }


def _without(method: Any, *names: str) -> Any:
    signature = inspect.signature(method)
    kept = [value for name, value in signature.parameters.items() if name not in (*names, "key")]
    return signature.replace(parameters=kept)


@contextmanager
def control_port(kafka: KafkaCluster, port: int, folder: Path, *, seed: int = 0) -> Iterator[int]:
    """Serve the control port for the block; answers its port. folder: where the token's file is. Raises
    EnvironmentError_."""
    server = ControlServer(verbs=verbs_of(kafka, seed), token=make_token(folder))
    thread = LoopThread("fencepost control")
    thread.start()
    try:
        yield thread.run(server.listen(port))
    finally:
        thread.run(server.close())
        thread.close()
