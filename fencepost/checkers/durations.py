"""Durations as text."""

NANOSECONDS = 1_000_000_000
"""Nanoseconds in a second."""


def duration(nanoseconds: int) -> str:
    """A duration in the most readable unit."""
    if nanoseconds >= NANOSECONDS:
        return f"{nanoseconds / NANOSECONDS:.1f} s"
    if nanoseconds >= 1_000_000:
        return f"{nanoseconds / 1_000_000:.1f} ms"
    if nanoseconds >= 1_000 or not nanoseconds:
        return f"{nanoseconds // 1000} us"
    return f"{nanoseconds} ns"


def moment(nanoseconds: int) -> str:
    """A time of a trace in seconds, exactly: with six decimals, or nine if six are not enough."""
    whole, rest = divmod(int(nanoseconds), NANOSECONDS)
    return f"{whole}.{rest // 1_000:06d} s" if rest % 1_000 == 0 else f"{whole}.{rest:09d} s"
