"""TLC's configuration files: other values for constants, and statements that TLC 2.15 does not support.

Owns the required part of their grammar. Must not know the meaning of a constant.

A file is a list of statements: a keyword and its text up to the next keyword. `CONSTANTS N = 3 M <- MCM`
assigns; the value may be a set or a name. A run gets a modified copy. The replaced assignments are blanked
out, and a CONSTANTS statement with the new ones is added. CHECK_DEADLOCK (unknown to 2.15) is removed and
becomes a command-line option.
"""

import re
from collections.abc import Mapping

from attrs import frozen

from fencepost.traces.errors import FencepostError

KEYWORDS = frozenset(
    {
        "SPECIFICATION",
        "INIT",
        "NEXT",
        "INVARIANT",
        "INVARIANTS",
        "PROPERTY",
        "PROPERTIES",
        "CONSTANT",
        "CONSTANTS",
        "CONSTRAINT",
        "CONSTRAINTS",
        "ACTION_CONSTRAINT",
        "ACTION_CONSTRAINTS",
        "SYMMETRY",
        "VIEW",
        "TYPE",
        "TYPE_CONSTRAINT",
        "CHECK_DEADLOCK",
        "POSTCONDITION",
        "ALIAS",
        "_PERIODIC",
        "_RL_REWARD",
    }
)
STATEMENTS_CHECKED = frozenset({"INVARIANT", "INVARIANTS", "PROPERTY", "PROPERTIES"})
_TOKEN = re.compile(r'\\\*[^\n]*|\(\*.*?\*\)|"(?:[^"\\]|\\.)*"|<-|[A-Za-z0-9_!]+|\S', re.DOTALL)
_OPEN, _CLOSE = frozenset("{(["), frozenset("})]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


@frozen
class _Token:
    text: str
    start: int
    end: int


@frozen
class Config:
    """text: for TLC. check_deadlock: as in the file (None: not given). constants: name -> current value or
    definition."""

    text: str
    check_deadlock: bool | None
    constants: Mapping[str, str]


def read_config(
    text: str, where: str, constants: Mapping[str, str] | None = None, *, unchecked: bool = False
) -> Config:
    """Read a configuration with other values for some constants.

    Args:
        text: the content of the file.
        where: the file, for errors.
        constants: name -> new value (a TLA+ text; `<-Name` for a definition).
        unchecked: remove all invariants and properties.

    Returns:
        the configuration.

    Raises:
        FencepostError: for an unknown constant.
    """
    constants = constants or {}
    tokens = [
        _Token(match.group(), *match.span())
        for match in _TOKEN.finditer(text)
        if not match.group().startswith(("\\*", "(*"))
    ]
    blanks: list[tuple[int, int]] = []
    seen: dict[str, str] = {}
    check_deadlock: bool | None = None
    for keyword, body in _statements(tokens):
        if keyword.text in ("CONSTANT", "CONSTANTS"):
            for first, last, name, value in _assignments(body, text):
                seen[name] = value
                if name in constants:
                    blanks.append((first, last))
        elif keyword.text == "CHECK_DEADLOCK" and body:
            check_deadlock = body[0].text == "TRUE"
            blanks.append((keyword.start, body[0].end))
        elif unchecked and keyword.text in STATEMENTS_CHECKED:
            blanks.append((keyword.start, body[-1].end if body else keyword.end))
    _refuse_unknown(constants, seen, where)
    for start, end in sorted(blanks, reverse=True):
        text = text[:start] + re.sub(r"[^\n]", " ", text[start:end]) + text[end:]
    if constants:
        rows = [f"  {name} {_assigned(value)}" for name, value in constants.items()]
        text = "\n".join([text.rstrip("\n"), "CONSTANTS", *rows, ""])
    return Config(text, check_deadlock, {**seen, **constants})


def _assigned(value: str) -> str:
    """`k=v` assigns a value, `k=<-v` a definition."""
    return f"<- {value[2:].strip()}" if value.startswith("<-") else f"= {value}"


def _statements(tokens: list[_Token]) -> list[tuple[_Token, list[_Token]]]:
    found: list[tuple[_Token, list[_Token]]] = []
    for token in tokens:
        if token.text in KEYWORDS:
            found.append((token, []))
        elif found:
            found[-1][1].append(token)
    return found


def _assignments(body: list[_Token], text: str) -> list[tuple[int, int, str, str]]:
    """(start, end, name, value) of each assignment of a CONSTANTS statement."""
    found: list[tuple[int, int, str, str]] = []
    at = 0
    while at + 2 < len(body):
        name, sign = body[at], body[at + 1]
        if sign.text not in ("=", "<-"):
            break  # TLC will report the error in it
        last, depth = at + 2, 0
        while last < len(body):
            depth += (body[last].text in _OPEN) - (body[last].text in _CLOSE)
            negative = body[last].text == "-" or (sign.text == "<-" and body[last].text == "]")
            if depth == 0 and not negative:
                break
            last += 1
        end = body[min(last, len(body) - 1)]
        value = text[body[at + 2].start : end.end]
        found.append((name.start, end.end, name.text, value if sign.text == "=" else f"<-{value}"))
        at = last + 1
    return found


def _refuse_unknown(constants: Mapping[str, str], known: Mapping[str, str], where: str) -> None:
    unknown = sorted(set(constants) - set(known))
    if unknown:
        raise FencepostError(
            expected="constants that the configuration assigns",
            seen=", ".join(unknown),
            where=where,
            hint=f"it assigns {', '.join(known) or 'none'}",
        )
    for name, value in constants.items():
        if not _NAME.match(name) or not value.strip() or "\n" in value:
            raise FencepostError(
                expected="name=value on one line", seen=f"{name}={value}"[:80], where=f"a constant of {where}"
            )
