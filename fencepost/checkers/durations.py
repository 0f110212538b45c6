"""Spans of time in words."""

NANOSECONDS = 1_000_000_000
"""In a second."""


def duration(nanoseconds: int) -> str:
    """A span of time in the unit that reads best."""
    if nanoseconds >= NANOSECONDS:
        return f"{nanoseconds / NANOSECONDS:.1f} s"
    if nanoseconds >= 1_000_000:
        return f"{nanoseconds / 1_000_000:.1f} ms"
    if nanoseconds >= 1_000 or not nanoseconds:
        return f"{nanoseconds // 1000} us"
    return f"{nanoseconds} ns"
