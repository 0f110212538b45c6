"""Files named on the command line, and the plans in them. Owns the error message for a file that cannot be
read."""

from pathlib import Path

from attrs import evolve

from fencepost.traces.errors import EnvironmentError_
from fencepost.traces.plan import Plan
from fencepost.traces.whole_file import write_whole


def read_bytes(path: Path) -> bytes:
    """The content of a file. Raises EnvironmentError_ with one sentence."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise EnvironmentError_(
            expected="a readable file", seen=error.strerror or str(error), where=str(path)
        ) from None


def read_plan(path: Path) -> Plan:
    """The plan in a JSON file. Raises EnvironmentError_ and PlanError with one sentence."""
    from fencepost.traces.plan_json import check_names, plan_from_json

    return check_names(plan_from_json(read_bytes(path), where=str(path)), str(path))


def with_bugs(plan: Plan, bugs: tuple[str, ...]) -> Plan:
    """The plan with other planted bugs."""
    return evolve(plan, cluster=evolve(plan.cluster, bugs=bugs))


def write_text(path: Path, text: str) -> None:
    """Write a file whole, and create its missing folders.

    Args:
        path: the file.
        text: the content.

    Raises:
        EnvironmentError_: with one sentence, if that fails.
    """
    try:
        write_whole(path, text)
    except OSError as error:
        raise EnvironmentError_(
            expected="a file that can be written", seen=error.strerror or str(error), where=str(path)
        ) from None
