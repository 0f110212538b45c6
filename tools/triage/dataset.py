"""The ground truth as one folder of traces: distinct bad runs among healthy ones, of which each may stand in
it often.

Owns: how they are mixed, and the list of which trace shows which bugs. Must not know groups.

    OUT/traces/      the folder that is mined
    OUT/truth.json   bugs by trace id, for bad traces; every other trace is healthy

Healthy runs are repeated with trace ids of their own; bad ones never are. Which trace is bad follows from the
seed. Trace ids do not tell.
"""

from pathlib import Path
from random import Random

import msgspec
from attrs import evolve

from fencepost.traces.sealing import seal
from fencepost.traces.store import TraceStore
from tools.triage.runs import HEALTHY


def mix(out: Path, keys: list[str], *, runs: int, one_in: int, seed: int) -> dict[int, list[str]]:
    """Write OUT/traces of at most `runs` bad traces of each key, and `one_in` - 1 times as many healthy ones;
    the bugs of each bad trace by its id."""
    rng = Random(seed)
    bad = [(key, trace) for key in keys for trace in list(TraceStore.open(out / "runs" / key))[:runs]]
    healthy = list(TraceStore.open(out / "runs" / HEALTHY))
    total = len(bad) * one_in
    places = sorted(rng.sample(range(total), len(bad)))
    rng.shuffle(bad)
    at = dict(zip(places, bad, strict=True))
    store = TraceStore.create(out / "traces")
    with store.writer() as journal:
        for trace_id in range(total):
            trace = at[trace_id][1] if trace_id in at else healthy[trace_id % len(healthy)]
            journal.append(evolve(trace, trace_id=trace_id))
    seal(store)
    truth = {trace_id: key.split("+") for trace_id, (key, _) in at.items()}
    (out / "truth.json").write_bytes(msgspec.json.encode(truth))
    return truth
