"""`fencepost cluster up --embedded`: the simulated cluster on the wall clock, for clients of Kafka's
protocol.

Owns messages and waiting. Must not know how the cluster is hosted (fencepost/kafka), or judged.
"""

import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from fencepost.console.output import Output
from fencepost.traces.errors import ExitCode
from fencepost.traces.plan import TransactionOptions

NO_TRANSACTIONS = TransactionOptions()
POLL_S = 0.5
"""Seconds between checks whether it still works."""


def up_embedded(
    output: Output,
    *,
    brokers: int,
    port: int,
    directory: Path | None,
    session_timeout_ms: int | None,
    control: int | None = None,
    control_directory: Path = Path("out/cluster"),
    transactions: TransactionOptions = NO_TRANSACTIONS,
) -> ExitCode:
    """Serve until Ctrl-C, then judge what was recorded. Returns an exit code as `fencepost check` does.

    brokers: how many; port: of the first broker, 0 for any free ones; directory: of the brokers' files, None
    for simulated disks; session_timeout_ms: None for the embedded cluster's own default; control: the control
    port (docs/reference/control.md), 0 for any free one, None for none; control_directory: where the control
    port's token goes; transactions: of the cluster.
    """
    import fencepost.kafka
    from fencepost.checkers.verdict import Decision

    options: dict[str, Any] = (
        {} if session_timeout_ms is None else {"zookeeper_session_timeout_ms": session_timeout_ms}
    )
    with ExitStack() as stack:
        kafka = stack.enter_context(
            fencepost.kafka.cluster(
                brokers=brokers, port=port, directory=directory, transactions=transactions, **options
            )
        )
        output.say(f"bootstrap.servers={kafka.bootstrap_servers}")
        started: dict[str, Any] = {
            "bootstrap_servers": kafka.bootstrap_servers,
            "brokers": list(kafka.brokers),
        }
        if control is not None:
            from fencepost.kafka.control_port import control_port
            from fencepost.proxy.control.server import TOKEN

            bound = stack.enter_context(control_port(kafka, control, control_directory))
            output.say(f"control=http://127.0.0.1:{bound} token={control_directory / TOKEN}")
            started |= {"control": bound, "token": str(control_directory / TOKEN)}
        output.emit(started)
        output.note("Ctrl-C ends it, and judges what was recorded")
        try:
            while not (failure := kafka.status()["failure"]):
                time.sleep(POLL_S)
            output.note(f"it has stopped: a mistake in fencepost itself: {failure}")
            return ExitCode.USAGE
        except KeyboardInterrupt:
            pass
        trace = kafka.end()
        verdict = kafka.verdict()
        count = f"{len(trace.operations)} operations and {len(trace.events)} events"
        output.say(f"{verdict.decision.value}: {count} were recorded")
        for finding in verdict.findings:
            output.say(f"{finding.anomaly}: expected {finding.expected}, saw {finding.seen}")
    if verdict.decision is Decision.OK:
        return ExitCode.NOTHING_FOUND
    return ExitCode.FINDINGS if verdict.decision is Decision.ILLEGAL else ExitCode.UNDECIDED
