"""Names that a person gives: the message for an unknown one.

Owns the suggestion ("did you mean"), for every kind of name. Must not know what a name means.
"""

from collections.abc import Iterable
from difflib import get_close_matches

MOST_SUGGESTED = 3
"""As many as click suggests for an option."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Such as " (did you mean 'default'?)", if a name in `known` is close to `name`, in any case; or
    else an empty text."""
    by_lower = {one.lower(): one for one in known}
    close = get_close_matches(name.lower(), by_lower, MOST_SUGGESTED)
    if name.lower() in by_lower:
        close = close[:1]
    if not close or by_lower[close[0]] == name:
        return ""
    return f" (did you mean {' or '.join(repr(by_lower[one]) for one in close)}?)"


def unknown_name(name: str, known: Iterable[str]) -> str:
    """What an error says that it saw: the name, and those that may be meant."""
    return f"{name!r}{did_you_mean(name, known)}"
