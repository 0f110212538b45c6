"""The control port of an embedded cluster: its verbs for clients in any language.

Owns the table of verbs, and the thread that the port runs in. Must not know HTTP (proxy/control).
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin

from fencepost.campaign.failure import RunFailedError
from fencepost.kafka.handle import KafkaCluster
from fencepost.kafka.judgement import exercised
from fencepost.proxy.control.server import ControlServer, make_token
from fencepost.systems.loop_thread import LoopThread

PLAIN = (str, int, float, bool, type(None), Any)
"""Types of values that any language has; and lists and mappings of them."""
CONTAINERS = (list, tuple, dict, Mapping, UnionType)
NOT_HERE = ("close", "status")
"""Methods that would be verbs: the port does not outlive its cluster, and `state` says more."""
ASSERT = "assert_"
"""So the methods begin that end the run and judge it."""


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
        **{name: getattr(kafka, name) for name, method in _methods(kafka) if _is_plain_method(method)},
        **{
            name: asserted(name)
            for name, method in _methods(kafka)
            if name.startswith(ASSERT) and _needs_no_function(method)
        },
        "state": state,
        "fault": fault,
        "heal": heal,
        "verdict": verdict,
        "seed": lambda: {"seed": seed},
        "wait_until_healthy": wait_until_healthy,
        "records": records,
        "committed": committed,
    }


def _methods(kafka: KafkaCluster) -> Iterator[tuple[str, Any]]:
    """The public ones, by name."""
    for name, method in inspect.getmembers(type(kafka), inspect.isfunction):
        if not name.startswith("_") and name not in NOT_HERE:
            yield name, method


def _is_plain_method(method: Any) -> bool:
    """Whether it takes and answers what any language has."""
    signature = inspect.signature(method)
    _, *parameters = signature.parameters.values()
    return all(map(_is_plain, (signature.return_annotation, *(one.annotation for one in parameters))))


def _needs_no_function(method: Any) -> bool:
    """Whether any language has what it cannot do without."""
    _, *parameters = inspect.signature(method).parameters.values()
    needed = [one.annotation for one in parameters if one.default is inspect.Parameter.empty]
    return all(map(_is_plain, needed))


def _is_plain(kind: Any) -> bool:
    if kind is None or kind is ... or kind in PLAIN:
        return True
    return get_origin(kind) in CONTAINERS and all(map(_is_plain, get_args(kind)))


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
