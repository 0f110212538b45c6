"""A hundred thousand records of each client under the swarm's broker faults, judged.

    python -m tools.clients_chaos [NAME[@VERSION] ...] [--records 100000] [--seed 1] [--plain] [--trace DIR]
    [--json FILE]

Two producers of each client append to an embedded cluster of three brokers (acks=all, min.insync.replicas=2,
idempotent where it can) and one consumer of a group reads, while `kafka.chaos` draws crashes, pauses, power
losses, lost links and expired sessions for a minute. Then all faults end, and our own client reads the log.
Exit code 1 if an anomaly of docs/how-to/torture.md was found that the faults do not allow. Without
idempotence duplicates are counted only. A library that this machine cannot build is skipped by name.
"""

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from fencepost.console.output import Output
from fencepost.torture.building import build, missing
from fencepost.torture.driver import Driver
from fencepost.torture.judges import as_dict, duplicates
from fencepost.torture.libraries import libraries, wanted
from fencepost.torture.load import Loaded, load
from fencepost.traces.errors import FencepostError


def row_of(client: str, loaded: Loaded, seconds: float) -> dict[str, Any]:
    """What became of the records of one client."""
    run = loaded.run
    records = [
        (record["partition"], record["offset"])
        for polls in run.polls.values()
        for poll in polls
        for record in (poll.answer or {}).get("records") or ()
    ]
    held = {entry.value for entries in run.log.values() for entry in entries}
    return {
        "client": client,
        "idempotent": bool(run.scenario.producer.get("idempotence")),
        "sent": len(run.appends),
        "acknowledged": sum(command.ok for command in run.appends),
        "in_log": len(held),
        "twice_in_log": duplicates(run),
        "read": len(set(records)),
        "read_again": len(records) - len(set(records)),
        "faults": loaded.faults,
        "leader_epochs": sum(len({entry.leader_epoch for entry in log}) for log in run.log.values()),
        "errors": Counter(one.error.partition(":")[0] for one in run.appends if one.answer and not one.ok),
        "findings": [as_dict(finding) for finding in loaded.findings],
        "loss_is_allowed": loaded.allowed,
        "brokers": loaded.brokers,
        "seconds": round(seconds, 1),
    }


def main() -> int:
    """Try every client, or those that are named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("clients", nargs="*", help="NAME[@VERSION]; all by default")
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plain", action="store_true", help="without idempotence")
    parser.add_argument("--trace", type=Path, help="keep the brokers' record of each run in this folder")
    parser.add_argument("--json", type=Path, help="write every result here")
    options = parser.parse_args()
    output, rows = Output(), []
    if options.trace is not None:
        options.trace.mkdir(parents=True, exist_ok=True)
    for name in options.clients or libraries():
        start = time.monotonic()
        try:
            library = wanted(name)
            lacks = missing(library)
            if lacks:
                output.say(f"skipped: {name}: {lacks}")
                continue
            kept = options.trace and options.trace / f"{library}-{options.seed}.jsonl"
            with Driver.start(build(library)) as driver:
                loaded = load(driver, options.seed, options.records, plain=options.plain, trace=kept)
        except FencepostError as error:
            output.say(f"{name}: {error}")
            continue
        rows.append(row_of(str(library), loaded, time.monotonic() - start))
        output.say(f"{'WRONG' if loaded.findings else 'ok   '} {json.dumps(rows[-1])}")
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1))
    return int(any(row["findings"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
