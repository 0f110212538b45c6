"""What a terminal or a page must not get from a trace. Owns the one form of it; must not know where text
goes."""


def shown(text: str) -> str:
    """`text` with control characters, signs that turn the direction of writing and whatever else cannot
    be printed as escapes."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text
    )
