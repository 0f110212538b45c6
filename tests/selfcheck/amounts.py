"""How much random comparisons and repeated runs do: a part in `make test`, all of it where the environment
asks for it. `make selfcheck` does, and so does the measure of mutants of judges.

What each still finds in its part is shown by the planted faults next to it.
"""

import os

ASKED = "FENCEPOST_ALL_RUNS"
"""The environment variable."""


def amount(part: int, whole: int) -> int:
    """How many histories, seeds, examples or runs.

    Args:
        part: of a usual run of the tests.
        whole: where the environment asks for all.
    """
    return whole if os.environ.get(ASKED) else part
