"""What a service promises of its results, and where it has broken that.

Owns the promises. Must not know any service, nor how results were read.
"""

from collections import Counter
from collections.abc import Sequence

from attrs import frozen

Result = tuple[bytes | None, bytes | None]
"""Key and value."""
MOST_SHOWN = 3


@frozen(kw_only=True)
class Promise:
    """How results follow from what a rule says."""

    name: str
    # Whether one may be missing, or be there again.
    may_miss: bool = False
    may_repeat: bool = False
    # Whether the results of each key come in the order of the rule: those that come again do not count.
    in_order: bool = False

    def broken(self, expected: Sequence[Result], seen: Sequence[Result]) -> list[str]:
        """Sentences.

        Args:
            expected: by the rule.
            seen: in the order of each partition, or of the table.
        """
        wanted, found = Counter(expected), Counter(seen)
        missing = [] if self.may_miss else list(wanted.keys() - found.keys())
        if not (self.may_miss or self.may_repeat):
            missing = list((wanted - found).keys())
        again = [] if self.may_repeat else [one for one in (found - wanted) if one in wanted]
        problems = [
            *_said(missing, "is missing"),
            *_said(again, "is there too often"),
            *_said(list(found.keys() - wanted.keys()), "should not be there"),
        ]
        if self.in_order and not problems:
            problems = _out_of_order(expected, seen)
        return problems


AT_LEAST = Promise(name="at least once", may_repeat=True)
AT_MOST = Promise(name="at most once", may_miss=True)
EXACTLY = Promise(name="exactly once")
IN_ORDER = Promise(name="at least once, in the order of each key", may_repeat=True, in_order=True)


def _said(results: list[Result], what: str) -> list[str]:
    shown = sorted(results, key=lambda one: (one[0] or b"", one[1] or b""))
    more = f" (and {len(shown) - MOST_SHOWN} more)" if len(shown) > MOST_SHOWN else ""
    return [f"{one} {what}{more}" for one in shown[:MOST_SHOWN]]


def _out_of_order(expected: Sequence[Result], seen: Sequence[Result]) -> list[str]:
    problems = []
    for key in dict.fromkeys(key for key, _ in expected):
        right, is_so = (
            list(dict.fromkeys(value for other, value in results if other == key))
            for results in (expected, seen)
        )
        if right != is_so:
            problems.append(f"the results of {key!r} are in the order {is_so}, not {right}")
    return problems
