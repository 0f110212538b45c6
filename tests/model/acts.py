"""Histories of models in few words: `acts("elect 1 2, fetch 0")` is (("elect", 1, 2), ("fetch", 0))."""


def acts(told: str) -> tuple[tuple[str | int, ...], ...]:
    """The actions of a history, each a name and its numbers."""
    return tuple((name, *map(int, rest)) for name, *rest in (one.split() for one in told.split(",")))
