"""How much random comparisons and repeated runs do: a part in `make test`, all of it where the environment
asks for it. `make selfcheck` does, and so does the measure of mutants of judges.

What each still finds in its part is shown by the planted faults next to it.
"""

import os

from hypothesis import HealthCheck, Phase, settings

ASKED = "FENCEPOST_ALL_RUNS"
"""The environment variable."""


def amount(part: int, whole: int) -> int:
    """How many histories, seeds, examples or runs.

    Args:
        part: of a usual run of the tests.
        whole: where the environment asks for all.
    """
    return whole if os.environ.get(ASKED) else part


def machine_settings(examples: int, steps: int) -> settings:
    """Of a Hypothesis machine in the tests: the same examples each time, however slow the computer is.

    Args:
        examples: how many.
        steps: of each at most.
    """
    return settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        derandomize=True,
        print_blob=False,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
