"""A fault's text, read: `lose answer to Produce on orders-0, 1 in 500`.

Owns the grammar. Must not know what a fault does.

    fault  = head {["," ] clause}
    head   = the form of a verb (verbs.py)
    clause = on TOPIC | on TOPIC-PARTITION | on topic TOPIC | of group NAME | from client NAME
           | at broker NUMBER | 1 in NUMBER | NUMBERth | once | at most NUMBER times
           | between TIME and TIME | after TIME | until TIME | before effect | after effect | illegal

API is Kafka's name of a request, or `any request`; TIME is a number with ms, s or m.
"""

import json
import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, NoReturn

from attrs import define, field

from fencepost.proxy.faults.fault import NUMBERED, RequestFault, checked
from fencepost.proxy.faults.verbs import ANY, SHAPES, VERBS
from fencepost.traces.errors import PlanError
from fencepost.wire.names import api_keys, error_names

LONGEST_TEXT = 4_000
"""Characters of one fault: four of the longest names fit in."""
MOST_FAULTS = 1_000
"""Of a script: what a run carries out, by far."""
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|,|[^\s,"]+')
_TIME = re.compile(r"(\d{1,9})(ms|s|m)")
_FACTORS = {"ms": 1, "s": 1_000, "m": 60_000}
_ORDINAL = re.compile(r"(\d{1,9})(?:st|nd|rd|th)")
FORMER_NAMES = {
    "NOT_LEADER": "NOT_LEADER_OR_FOLLOWER",
    "NOT_LEADER_FOR_PARTITION": "NOT_LEADER_OR_FOLLOWER",
    "GROUP_LOAD_IN_PROGRESS": "COORDINATOR_LOAD_IN_PROGRESS",
    "GROUP_COORDINATOR_NOT_AVAILABLE": "COORDINATOR_NOT_AVAILABLE",
    "NOT_COORDINATOR_FOR_GROUP": "NOT_COORDINATOR",
}
"""Errors as older versions of Kafka called them."""
CLAUSES = (
    *("on", "of group", "from client", "at broker", "1 in", "once", "at most", "between", "after", "until"),
    *("before effect", "after effect", "illegal", "by", "for", "3rd"),
)


def parse(text: str) -> RequestFault:
    """The fault that a text describes. Raises PlanError, with what was meant where that can be guessed."""
    if len(text) > LONGEST_TEXT:
        raise PlanError(
            expected=f"at most {LONGEST_TEXT} characters", seen=str(len(text)), where="a fault of requests"
        )
    return _Reader(text, _TOKEN.findall(text)).fault()


def read_script(text: str) -> tuple[RequestFault, ...]:
    """Faults, one a line; empty lines and lines that begin with # are left out. Raises PlanError."""
    lines = [line.strip() for line in text.splitlines()]
    wanted = [line for line in lines if line and not line.startswith("#")]
    if len(wanted) > MOST_FAULTS:
        raise PlanError(
            expected=f"at most {MOST_FAULTS} faults", seen=str(len(wanted)), where="a script of faults"
        )
    return tuple(parse(line) for line in wanted)


def write_script(faults: tuple[RequestFault, ...]) -> str:
    """The text that `read_script` reads."""
    return "".join(f"{fault}\n" for fault in faults)


@define(eq=False)
class _Reader:
    text: str
    tokens: list[str]
    at: int = 0
    values: dict[str, Any] = field(factory=dict)

    def fault(self) -> RequestFault:
        self._head()
        while self.at < len(self.tokens):
            if not self._skip(","):
                self._clause()
            elif self.at == len(self.tokens):
                self._expected("a clause after the comma")
        return checked(**self.values)

    # ---- tokens

    @property
    def _next(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def _skip(self, *words: str) -> bool:
        found = [token.lower() for token in self.tokens[self.at : self.at + len(words)]]
        if found != [word.lower() for word in words]:
            return False
        self.at += len(words)
        return True

    def _take(self, expected: str) -> str:
        if not self._next or self._next == ",":
            self._expected(expected)
        self.at += 1
        return self.tokens[self.at - 1]

    def _word(self, word: str) -> None:
        if not self._skip(word):
            self._expected(f"`{word}`", [word])

    def _expected(self, expected: str, names: list[str] | tuple[str, ...] = ()) -> NoReturn:
        close = get_close_matches(self._next.lower(), [name.lower() for name in names], 1, 0.6)
        meant = next((name for name in names if close and name.lower() == close[0]), "")
        raise PlanError(
            expected=expected,
            seen=repr(self._next) if self._next else "the end",
            where=f"the fault {self.text!r}",
            hint=f"did you mean {meant}?" if meant else "",
        )

    # ---- the head

    def _head(self) -> None:
        for verb in sorted(VERBS, key=lambda verb: -len(verb.split())):
            if self._skip(*verb.split()):
                self._set("verb", verb)
                self._form(VERBS[verb].form.removeprefix(verb).split())
                return
        if self._next.lower() == "cut":
            self.at += 1
            self._expected("`cut before` or `cut after`", ["before", "after"])
        begins = " ".join(self.tokens[:2]).lower()
        close = get_close_matches(begins, VERBS, 1, 0.6) or get_close_matches(self._next, VERBS, 1, 0.6)
        raise PlanError(
            expected=f"a verb, one of {', '.join(VERBS)}",
            seen=repr(begins),
            where=f"the fault {self.text!r}",
            hint=f"did you mean {close[0]}?" if close else "",
        )

    def _form(self, words: list[str]) -> None:
        """What comes after the verb; a time comes among the clauses."""
        for word in words:
            if word in ("by", "for", "TIME"):
                continue
            if word.startswith("["):
                if not self._skip(word[1:]):
                    return
                if self._next.lower() == "broker":  # `at broker`, a clause
                    self.at -= 1
                    return
            elif word in READ:
                READ[word](self)
            else:
                self._word(word)

    def _api(self) -> None:
        if self._skip("any"):
            self._skip("request")
            self._set("api", ANY)
            return
        names = {name.lower(): name for name in api_keys()}
        known = names.get(self._next.lower())
        if known is None:
            self._expected("Kafka's name of a request, or `any request`", tuple(api_keys()))
        self.at += 1
        self._set("api", known)

    def _error(self) -> None:
        known = FORMER_NAMES.get(self._next.upper(), self._next.upper())
        if known not in error_names():
            self._expected("Kafka's name of an error", error_names())
        self.at += 1
        self._set("error", known)

    def _shape(self) -> None:
        for shape in sorted(SHAPES, key=len, reverse=True):
            if self._skip(*shape.split()):
                self._set("shape", shape)
                return
        self._expected(f"a shape, one of {', '.join(SHAPES)}", [shape.split()[0] for shape in SHAPES])

    # ---- clauses

    def _clause(self) -> None:
        simple: tuple[tuple[tuple[str, ...], Callable[[], None]], ...] = (
            (("on", "topic"), lambda: self._set("topic", self._name("a topic"))),
            (("on",), self._target),
            (("of", "group"), lambda: self._set("group", self._name("a group"))),
            (("from", "client"), lambda: self._set("client", self._name("a client id"))),
            (("at", "broker"), lambda: self._set("broker", self._number("a broker's id"))),
            (("1", "in"), lambda: self._set("one_in", self._number("a number"))),
            (("once",), lambda: self._set("most", 1)),
            (("at", "most"), self._at_most),
            (("between",), self._between),
            (("after", "effect"), lambda: self._set("after_effect", True)),
            (("before", "effect"), lambda: self._set("after_effect", False)),
            (("after",), lambda: self._set("from_ms", self._time())),
            (("until",), lambda: self._set("until_ms", self._time())),
            (("by",), lambda: self._set("milliseconds", self._time())),
            (("for",), lambda: self._set("milliseconds", self._time())),
            (("illegal",), lambda: self._set("legal", False)),
        )
        for words, act in simple:
            if self._skip(*words):
                act()
                return
        if match := _ORDINAL.fullmatch(self._next.lower()):
            self.at += 1
            self._set("nth", int(match[1]))
            return
        self._expected(f"a clause, one of {', '.join(CLAUSES)}", [each.split()[0] for each in CLAUSES])

    def _target(self) -> None:
        token = self._name("a topic or a partition")
        if match := NUMBERED.fullmatch(token):
            self._set("topic", match["topic"])
            self._set("partition", int(match["partition"]))
        else:
            self._set("topic", token)

    def _at_most(self) -> None:
        self._set("most", self._number("a number of times"))
        self._skip("times") or self._skip("time")

    def _between(self) -> None:
        self._set("from_ms", self._time())
        self._word("and")
        self._set("until_ms", self._time())

    def _name(self, expected: str) -> str:
        token = self._take(expected)
        if not token.startswith('"'):
            return token
        try:
            name: str = json.loads(token)
        except ValueError:
            self.at -= 1
            self._expected(f"{expected} in quotes, with escapes as in JSON")
        return name

    def _number(self, expected: str) -> int:
        token = self._take(expected)
        if not token.isdecimal() or len(token) > 10:
            self.at -= 1
            self._expected(expected)
        return int(token)

    def _time(self) -> int:
        token = self._take("a time such as 200ms or 2s")
        match = _TIME.fullmatch(token.lower())
        if match is None:
            self.at -= 1
            self._expected("a time such as 200ms or 2s")
        return int(match[1]) * _FACTORS[match[2]]

    def _set(self, name: str, value: Any) -> None:
        if name in self.values:
            raise PlanError(
                expected=f"{name.replace('_', ' ')} once",
                seen=f"{self.values[name]!r} and {value!r}",
                where=f"the fault {self.text!r}",
            )
        self.values[name] = value


READ: Mapping[str, Callable[[_Reader], None]] = {
    "API": _Reader._api,
    "API]": _Reader._api,
    "ERROR": _Reader._error,
    "SHAPE": _Reader._shape,
}
"""What reads the words of a form."""
