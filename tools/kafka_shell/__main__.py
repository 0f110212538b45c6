"""Apache Kafka's shell tools and kcat against our brokers and Apache Kafka's, side by side.

    python -m tools.kafka_shell                        every version
    python -m tools.kafka_shell --version 4.3.1 --show each difference, line by line

Exits with 1 if an answer differs and the script does not say why, with 0 and one line if Maven or a JDK is
absent.
"""

import argparse
import re
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

from fencepost.console.output import Output

from .compare import Row, compare
from .jars import VERSIONS, missing
from .script import KCAT, SCRIPT
from .sides import apache_brokers, our_brokers


def compared(version: str, only: str = "") -> list[Row]:
    """All steps of the script, by the tools of this version, against its own brokers and ours."""
    steps = tuple(step for step in SCRIPT if shutil.which(KCAT) or step.tool != KCAT)
    steps = tuple(step for step in steps if re.search(only, step.name))
    with tempfile.TemporaryDirectory(prefix="fencepost-shell-") as folder:
        scratch = Path(folder)
        with apache_brokers(version, scratch) as theirs, our_brokers(scratch) as ours:
            return compare(steps, version, theirs, ours, scratch, Output().note)


def main() -> int:
    """Compare, print, and answer the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--version", choices=VERSIONS, action="append")
    parser.add_argument("--show", action="store_true", help="each difference, line by line")
    parser.add_argument("--only", default="", help="steps whose name matches this expression")
    options = parser.parse_args()
    output, failed = Output(), False
    absent = missing()
    if absent:
        output.say(f"skipped: Kafka's shell tools: {absent}")
        return 0
    if not shutil.which(KCAT):
        output.say("skipped: kcat is not on the PATH")
    for version in options.version or VERSIONS:
        rows = compared(version, options.only)
        output.say(
            f"Apache Kafka {version}: {dict(Counter(row.verdict for row in rows))} of {len(rows)} steps"
        )
        for row in rows:
            if row.verdict != "equal":
                output.say(
                    f"  {row.verdict:10} {row.step.tool}: {row.step.name}  {'; '.join(row.departures)}"
                )
                if options.show:
                    output.say("\n".join(f"      {line}" for line in row.difference[2:]))
        failed = failed or any(row.verdict == "different" for row in rows)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
