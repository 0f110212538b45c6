"""Many records through each client library under the swarm's broker faults, judged.

    python bench/clients_under_faults.py [NAME[@VERSION] ...] [--records 100000] [--seed 1]

For each: records sent, acknowledged and read, duplicates in the log, seconds, findings. Not among what `make bench`
measures: it takes minutes. Libraries that cannot be built here are skipped by name.
"""

import argparse
import time

from fencepost.torture.building import build, missing
from fencepost.torture.driver import Driver
from fencepost.torture.judges import duplicates, judge
from fencepost.torture.libraries import libraries, wanted
from fencepost.torture.load import load
from fencepost.traces.errors import FencepostError


def main() -> None:
    """Print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clients", nargs="*")
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for name in options.clients or libraries():
        library = wanted(name)
        if missing(library):
            print(f"{name}: skipped: {missing(library)}", flush=True)
            continue
        start = time.monotonic()
        try:
            with Driver.start(build(library)) as driver:
                run, brokers = load(driver, options.seed, options.records)
        except FencepostError as error:
            print(f"{name}: {error}", flush=True)
            continue
        acknowledged = sum(command.ok for command in run.appends)
        read = {
            (record["partition"], record["offset"])
            for polls in run.polls.values()
            for poll in polls
            for record in (poll.answer or {}).get("records") or ()
        }
        print(
            f"{library}: {len(run.appends):,} sent, {acknowledged:,} acknowledged,"
            f" {sum(map(len, run.log.values())):,} in the log, {len(read):,} read, {duplicates(run)} twice in the log,"
            f" {time.monotonic() - start:.0f} s; {', '.join(run.hit)}; {brokers};"
            f" findings: {[str(finding) for finding in judge(run)] or 'none'}",
            flush=True,
        )


if __name__ == "__main__":
    main()
