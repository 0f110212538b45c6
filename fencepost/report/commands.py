"""The commands that a report prints, so that a person can see a run again or make its plan small. Owns their words."""

import shlex
from pathlib import Path


def replay_stored(folder: Path, trace_id: int) -> str:
    """The command that shows a stored run again."""
    return f"fencepost replay {shlex.quote(str(folder))} --trace {trace_id}"


def replay_seed(seed: int, *, profile: str, bugs: tuple[str, ...]) -> str:
    """The command that shows a seed's run without any stored trace."""
    planted = "".join(f" --bug {shlex.quote(bug)}" for bug in bugs)
    wild = f" --profile {shlex.quote(profile)}" if profile != "default" else ""
    return f"fencepost replay --seed {seed}{planted}{wild}"


def replay_plan(plan: Path) -> str:
    """The command that shows the run of a plan file."""
    return f"fencepost replay --plan {shlex.quote(str(plan))}"


def shrink_stored(folder: Path, trace_id: int) -> str:
    """The command that makes the plan of a stored run small."""
    return f"fencepost shrink {shlex.quote(str(folder))} --trace {trace_id}"
