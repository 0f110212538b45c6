"""A plan of the swarm that shows each planted bug, as found.jsonl has them: no change of the swarm moves it.
`fencepost campaign bugs hunt` says how many seeds it takes to find a bug."""

from pathlib import Path

from fencepost.traces.plan_json import plan_from_json

FOUND = {
    plan.cluster.bugs[0]: plan
    for line in (Path(__file__).parent / "found.jsonl").read_text().splitlines()
    for plan in (plan_from_json(line),)
}
