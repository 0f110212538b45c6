"""What bounds follow from in a cluster of the reference brokers, as Inside has it."""

from typing import Any

import msgspec

from fencepost.traces.plan import ClusterOptions, Plan
from fencepost.traces.plan_json import plan_to_json

START_MS, SLACK_MS = 20_000, 1_000
"""Of a process of ours on a busy machine; and what scheduling adds to each step."""


def settings_of(options: ClusterOptions) -> dict[str, dict[str, Any]]:
    """The settings. options: of its brokers."""
    plan = msgspec.json.decode(plan_to_json(Plan(seed=0, cluster=options)))
    return {"cluster": plan["cluster"], "real": {"start_ms": START_MS, "slack_ms": SLACK_MS}}
