"""A worker that is killed outright has lost no run that it finished."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from fencepost.traces.digest import digest_of
from fencepost.traces.sealing import seal
from fencepost.traces.store import TraceStore

WORKER = """
import sys
from pathlib import Path
from attrs import evolve
from fencepost.traces import jsonlines
from fencepost.traces.store import TraceStore
trace = next(jsonlines.read_traces(Path(sys.argv[2])))
writer = TraceStore.create(Path(sys.argv[1])).writer("killed")
for number in range(1_000_000):
    writer.append(evolve(trace, trace_id=number, seed=number, digest=""))
    print(number, flush=True)
"""


def test_a_killed_worker_loses_no_finished_run(tmp_path: Path) -> None:
    """Killed with SIGKILL at an arbitrary moment, every run that the worker had reported is in the store,
    whole."""
    golden = Path(__file__).parent / "golden" / "v1" / "traces.jsonl"
    command = [sys.executable, "-c", WORKER, str(tmp_path), str(golden)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        reported = [int(worker.stdout.readline()) for _ in range(50)]
        os.kill(worker.pid, signal.SIGKILL)
        reported += [int(line) for line in worker.stdout if line.endswith("\n")]
    store = TraceStore.open(tmp_path)
    assert set(reported) <= store.trace_ids()
    assert all(trace.digest == digest_of(trace) for trace in store)
    found = store.trace_ids()
    assert seal(store).traces == len(found)
    store.refresh()
    assert store.trace_ids() == found
