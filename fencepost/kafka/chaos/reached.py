"""What chaos at applications has reached, in words, and the line that repeats a test.

Owns the words. Must not know pytest.
"""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any


def reached_words(seed: int, reached: Mapping[str, Any]) -> str:
    """What met the service, e.g. "chaos 3: 2 strikes: kill, idle; lose, a result not yet answered (moments
    seen: 3 idle, 7 a result not yet answered)".

    Args:
        seed: of the chaos.
        reached: as the handle's `reached` answers it.
    """
    strikes = reached["strikes"]
    seen = ", ".join(f"{count} {kind}" for kind, count in sorted(reached["moments"].items())) or "none"
    number = f"{len(strikes)} strike{'' if len(strikes) == 1 else 's'}"
    what = ": ".join(filter(None, (number, "; ".join(strikes))))
    return f"chaos {seed}: {what} (moments seen: {seen})"


def shrunk_words(names: Sequence[str], left: Sequence[str]) -> str:
    """What is left of a chaos, in a sentence; "" if nothing was left out.

    Args:
        names: of all strikes.
        left: of those that are left.
    """
    if len(left) == len(names):
        return ""
    words = f"the strikes {'; '.join(left)}" if left else "no strike at all"
    return f"it still fails with {words} ({len(names) - len(left)} of {len(names)} left out)"


def repeating_line(test: str, seed: int, chaos: int | None, only: Sequence[str] | None = None) -> str:
    """The command that repeats a test.

    Args:
        test: its node id.
        seed: of the cluster.
        chaos: the seed of the chaos; None: there was none.
        only: names of the strikes that are carried out; None: all.
    """
    words = ["pytest", test, "--fencepost-seed", str(seed)]
    if chaos is not None and (only is None or only):
        words += ["--fencepost-chaos", str(chaos)]
    for name in only or ():
        words += ["--fencepost-strike", name]
    return shlex.join(words)
