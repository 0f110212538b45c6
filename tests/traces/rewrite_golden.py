"""Makes the golden files of the current schema version from golden/vN/traces.jsonl, which is written by hand.

    python tests/traces/rewrite_golden.py [--over]

A version that was released stays as it is for ever: --over is for a version that is still being made.
"""

import argparse
import shutil
from pathlib import Path

from fencepost.traces import jsonlines
from fencepost.traces.digest import digest_of
from fencepost.traces.sealing import seal
from fencepost.traces.store import TraceStore
from fencepost.traces.trace import SCHEMA_VERSION

GOLDEN = Path(__file__).parent / "golden" / f"v{SCHEMA_VERSION}"


def main() -> None:
    """Write golden/vN/{sealed,journal,digests} from golden/vN/traces.jsonl."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--over", action="store_true", help="replace files that are there")
    over = parser.parse_args().over
    if (GOLDEN / "digests").exists() and not over:
        parser.error(f"{GOLDEN.name} is there; --over replaces it")
    traces = list(jsonlines.read_traces(GOLDEN / "traces.jsonl"))
    for name in ("sealed", "unsealed"):
        shutil.rmtree(GOLDEN / name, ignore_errors=True)
        with TraceStore.create(GOLDEN / name).writer(0) as writer:
            for trace in traces:
                writer.append(trace)
    seal(TraceStore(GOLDEN / "sealed"))
    (GOLDEN / "digests").write_text("".join(digest_of(trace) + "\n" for trace in traces))


if __name__ == "__main__":
    main()
