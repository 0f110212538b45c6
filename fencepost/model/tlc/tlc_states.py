"""States as TLC prints them: in counterexamples, and in the file that -dump writes.

Owns their grammar. Must not know frames or outcomes.

    /\\ x = 1                     one conjunct per variable, a value may run over lines;
    /\\ f = (0 :> 1 @@            the only variable of a specification comes without /\\
      1 :> 2)
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from fencepost.model.tlc.result import TraceState, Unread
from fencepost.model.tlc.values import TlaValueError, Value, parse

_CONJUNCT = re.compile(r"^(?:/\\ )?([A-Za-z0-9_!]+) = ", re.MULTILINE)
_LATER_CONJUNCT = re.compile(r"^/\\ ([A-Za-z0-9_!]+) = ", re.MULTILINE)
_HEADING = re.compile(r"\s*(\d+):\s*(?:<(?P<what>[^\n]*)>|(?P<words>[^\n]*))[ \t]*(?:\n|\Z)")
_LOCATED = re.compile(r"(?P<action>.*?) (?P<location>line \d+, col \d+ to line \d+, col \d+ of module .+)\Z")


def read_variables(text: str) -> Mapping[str, Value | Unread]:
    """The variables of one state, in TLC's order."""
    text = text.strip()
    marks = list((_LATER_CONJUNCT if text.startswith("/\\") else _CONJUNCT).finditer(text))
    if not text.startswith("/\\"):
        marks = marks[:1]
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    return {mark[1]: _value(text[mark.end() : end].strip()) for mark, end in zip(marks, ends, strict=True)}


@lru_cache(maxsize=1 << 16)  # in a dump most variables are the same as in the state before
def _value(text: str) -> Value | Unread:
    try:
        return parse(text)
    except TlaValueError:
        return Unread(text)


def split_action(text: str) -> tuple[str, str]:
    """(name, location) of `Inc line 7, col 8 to line 7, col 35 of module M`; no name for the initial
    predicate."""
    located = _LOCATED.match(text)
    if located is None:
        return ("", "") if text.startswith("Initial predicate") else (text, "")
    return located["action"], located["location"]


def read_trace_state(text: str) -> TraceState | None:
    """A state of a counterexample: a heading `2: <Inc line ...>` and its variables; None for other text."""
    heading = _HEADING.match(text)
    if heading is None:
        return None
    action, location = split_action(heading["what"] or heading["words"] or "")
    return TraceState(
        number=int(heading[1]),
        action=action,
        location=location,
        variables=read_variables(text[heading.end() :]),
    )


def read_dump(path: Path) -> Iterator[Mapping[str, Value | Unread]]:
    """The states of a -dump file, one after another, in constant memory."""
    lines: list[str] = []
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.startswith("State ") and line.rstrip().endswith(":"):
                if lines:
                    yield read_variables("".join(lines))
                lines = []
            else:
                lines.append(line)
    if "".join(lines).strip():
        yield read_variables("".join(lines))
