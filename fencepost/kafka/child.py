"""An embedded cluster in a child process, with the handle of one in this process.

Owns both ends of the pipe: JSON lines, a request on the child's standard input, its answer on its standard
output. Must not know what verbs mean.

The child ends when its standard input does: with its parent, however that ends. Its log goes where the
parent's standard error goes. A debugger that stops every thread of the parent does not stop the child's
cluster; what else differs is that a busy parent leaves it a processor of its own.
"""

import logging
import os
import signal
import sys
import threading
from collections.abc import Mapping
from typing import IO, Any

import msgspec
from attrs import asdict, define, field

from fencepost.impl.admin.cluster_state import AdminError
from fencepost.kafka.handle import KafkaCluster
from fencepost.kafka.here import start_here
from fencepost.kafka.hosted import Settings
from fencepost.kafka.verbs import Verbs
from fencepost.processes import forking
from fencepost.systems.children import end_child
from fencepost.systems.system import UnsupportedError
from fencepost.traces.errors import EnvironmentError_, FencepostError, PlanError
from fencepost.traces.plan_json import plan_from_json, plan_to_json

ERRORS: Mapping[str, type[FencepostError]] = {
    kind.__name__: kind
    for kind in (PlanError, EnvironmentError_, UnsupportedError, AdminError, FencepostError)
}
"""Mistakes that cross the pipe as what they are; others come as the last."""
COMMAND = (*forking.BEGIN, "fencepost.kafka.child")
VERBS = frozenset(name for name in vars(Verbs) if not name.startswith("_")) - {"run", "trace"}


@define(eq=False, kw_only=True, repr=False)
class ClusterInChild(KafkaCluster):
    """The cluster is in another process."""

    _process: forking.Process = field(alias="process")
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def _ask(self, verb: str, **arguments: Any) -> Any:
        with self._lock:
            return _exchange(self._process, {"verb": verb, "arguments": arguments})

    def close(self) -> None:
        """End it, and its process."""
        end_child(self._process)


def start_in_child(settings: Settings) -> ClusterInChild:
    """Start a process with a cluster; returns when it serves. Raises FencepostError."""
    # a package that is not installed but found from here is found there, too
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    process = forking.start(COMMAND, environment)
    fields = {**asdict(settings, recurse=False), "plan": plan_to_json(settings.plan)}
    try:
        seen = _exchange(process, fields)
    except BaseException:
        end_child(process)
        raise
    return ClusterInChild(
        bootstrap_servers=seen["bootstrap_servers"], brokers=tuple(seen["brokers"]), process=process
    )


def _exchange(process: forking.Process, request: dict[str, Any]) -> Any:
    assert process.stdin is not None and process.stdout is not None
    try:
        process.stdin.write(msgspec.json.encode(request) + b"\n")
        process.stdin.flush()
        line = process.stdout.readline()
    except (OSError, ValueError):  # ValueError: the pipe was closed here
        line = b""
    if not line:
        raise EnvironmentError_(
            expected="an answer of the cluster's process",
            seen=f"that it has ended (exit code {process.poll()})",
            where=f"process {process.pid}",
            hint="its standard error says more, unless the cluster was closed",
        )
    answer = msgspec.json.decode(line)
    if "error" in answer:
        kind = ERRORS.get(answer.pop("error"), FencepostError)
        raise kind(**answer)
    return answer["answer"]


# ---- the child


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Start the cluster that the first line describes, then carry verbs out until the input ends.

    Args:
        requests: one JSON object a line.
        answers: one JSON object a line, in the same order.
    """

    def say(answer: dict[str, Any]) -> None:
        answers.write(msgspec.json.encode(answer) + b"\n")
        answers.flush()

    fields = msgspec.json.decode(requests.readline())
    try:
        cluster = start_here(Settings(**{**fields, "plan": plan_from_json(fields["plan"])}))
    except FencepostError as error:
        say(_told(error))
        return
    with cluster:
        say({"answer": {"bootstrap_servers": cluster.bootstrap_servers, "brokers": cluster.brokers}})
        for line in requests:
            request = msgspec.json.decode(line)
            assert request["verb"] in VERBS, f"{request['verb']} is no verb"
            try:
                say({"answer": cluster._ask(request["verb"], **request["arguments"])})
            except FencepostError as error:
                say(_told(error))


def _told(error: FencepostError) -> dict[str, Any]:
    kind = next(name for name, known in ERRORS.items() if isinstance(error, known))
    return {
        "error": kind,
        "expected": error.expected,
        "seen": error.seen,
        "where": error.where,
        "hint": error.hint,
    }


def main() -> None:
    """The process: nothing but answers goes to standard output. A terminal's Ctrl-C reaches it, too: it is
    the parent who ends it, after it has asked for what was recorded."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    serve(sys.stdin.buffer, answers)
