"""What a terminal or a page must not get from a trace. Owns the one form of it; must not know where text
goes."""


def shown(text: str) -> str:
    """`text` with escapes for control characters, characters that change the direction of writing, and all
    others that cannot be printed."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text
    )
