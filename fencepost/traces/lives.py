"""How topics and groups that used the same name one after another are told apart: `orders`, `orders#2`.

Owns the spelling, and nothing else. Kafka allows no `#` in the name of a topic.
"""


def name_of(name: str, life: int) -> str:
    """What the topic or group is called among all of its name.

    Args:
        name: as clients know it.
        life: from 0.
    """
    return f"{name}#{life + 1}" if life else name


def plain(name: str) -> str:
    """The name as clients know it.

    Args:
        name: perhaps with a number.
    """
    before, mark, number = name.rpartition("#")
    return before if mark and number.isdecimal() else name
