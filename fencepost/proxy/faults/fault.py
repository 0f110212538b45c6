"""A fault at the level of requests, as a value, and its text.

Owns its fields, their bounds, what belongs to which verb, and the one way in which it is written. Must not
know how a text is read (fault_words.py), what a correct broker may answer (allowed.py), or how it is carried
out (fault_engine.py).
"""

import json
import re
from typing import Any

from attrs import field, frozen

from fencepost.proxy.faults.verbs import ANY, SHAPES, VERBS
from fencepost.traces.errors import PlanError

LONGEST_MS = 3_600_000
"""Of a delay: an hour is beyond every client's patience."""
LARGEST_COUNT = 1_000_000_000
"""Of a request, or of requests of which one is hit: a client that sends a thousand a second needs 11 days."""
LONGEST_NAME = 249
"""Of a topic: Kafka's own bound. Groups and clients have none there; here the same."""
_TOPIC = re.compile(r"[A-Za-z0-9._-]+\Z")
NUMBERED = re.compile(r"(?P<topic>[A-Za-z0-9._-]+)-(?P<partition>\d{1,10})")
"""A partition as it is written: its topic, a dash, its number."""
_BARE = re.compile(r"[A-Za-z0-9._*/:@+-]+\Z")
"""Names that are written without quotes."""


def quoted(name: str) -> str:
    """A name as it is written: in quotes where it must be."""
    return name if _BARE.match(name) else json.dumps(name, ensure_ascii=False)


def ordinal(number: int) -> str:
    """st, nd, rd or th."""
    if number % 100 in (11, 12, 13):
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


def written_ms(milliseconds: int) -> str:
    """A time as it is written."""
    if milliseconds and milliseconds % 1_000 == 0:
        return f"{milliseconds // 1_000}s"
    return f"{milliseconds}ms"


def _of_verb(fault: "RequestFault", attribute: Any, value: str) -> None:
    if value not in VERBS:
        raise ValueError(f"verb: expected one of {', '.join(VERBS)}, saw {value!r}")


def _between(low: int, high: int) -> Any:
    def check(fault: "RequestFault", attribute: Any, value: int) -> None:
        if type(value) is not int or not low <= value <= high:
            raise ValueError(f"{attribute.name}: expected a number from {low} to {high}, saw {value!r}")

    return check


def _name(fault: "RequestFault", attribute: Any, value: str) -> None:
    if not isinstance(value, str) or len(value) > LONGEST_NAME:
        raise ValueError(f"{attribute.name}: expected text of at most {LONGEST_NAME} characters")


def _topic(fault: "RequestFault", attribute: Any, value: str) -> None:
    _name(fault, attribute, value)
    if value and not _TOPIC.match(value):
        raise ValueError(f"topic: expected letters, digits, dots, _ and -, saw {value!r}")


@frozen(kw_only=True)
class RequestFault:
    """Which requests a fault hits, when, and what happens to them. Raises ValueError for fields that make no
    sense; `checked` turns that into a sentence."""

    verb: str = field(validator=_of_verb)
    # Kafka's name of the request, or ANY.
    api: str = ANY
    # Kafka's name; of the verb `answer`.
    error: str = ""
    # Of the verb `answer`: the request takes effect first.
    after_effect: bool = False
    # Of a delay, a throttle or a move: how long.
    milliseconds: int = field(default=0, validator=_between(0, LONGEST_MS))
    # Of the verb `reshape`.
    shape: str = ""
    # Only requests that name it; empty: all.
    topic: str = field(default="", validator=_topic)
    # Only this partition of the topic; -1: all.
    partition: int = field(default=-1, validator=_between(-1, 2**31 - 1))
    # Only requests of this consumer group; empty: all.
    group: str = field(default="", validator=_name)
    # Only clients of this id, or, if it ends in *, those that begin so; empty: all.
    client: str = field(default="", validator=_name)
    # Only at this broker; -1: all.
    broker: int = field(default=-1, validator=_between(-1, 2**31 - 1))
    # Each request that fits is hit with a chance of one in so many.
    one_in: int = field(default=1, validator=_between(1, LARGEST_COUNT))
    # Only this one of the requests that fit, counted from 1; 0: all.
    nth: int = field(default=0, validator=_between(0, LARGEST_COUNT))
    # At most so many requests are hit; 0: no bound.
    most: int = field(default=0, validator=_between(0, LARGEST_COUNT))
    # Only requests from so long after the fault was armed.
    from_ms: int = field(default=0, validator=_between(0, LARGEST_COUNT))
    # Only requests until so long after; 0: no bound. Above from_ms.
    until_ms: int = field(default=0, validator=_between(0, LARGEST_COUNT))
    # False: it may be something that no correct broker does.
    legal: bool = True

    def __attrs_post_init__(self) -> None:
        verb = VERBS[self.verb]
        for name, empty in (("error", ""), ("shape", ""), ("milliseconds", 0)):
            if (getattr(self, name) != empty) is not (name in verb.takes):
                wanted = "a value" if name in verb.takes else "none"
                raise ValueError(f"{name} of {self.verb}: expected {wanted}, saw {getattr(self, name)!r}")
        if verb.apis and self.api != ANY and self.api not in verb.apis:
            raise ValueError(
                f"api of {self.verb}: expected one of {', '.join(sorted(verb.apis))}, saw {self.api}"
            )
        if self.after_effect and self.verb != "answer":
            raise ValueError(f"after_effect: expected the verb answer, saw {self.verb}")
        if verb.needs == "partition" and self.partition < 0:
            raise ValueError(f"{self.verb}: expected a partition such as `on orders-0`, saw none")
        if verb.needs == "group" and not self.group:
            raise ValueError(f"{self.verb}: expected a group such as `of group billing`, saw none")
        if self.shape and self.shape not in SHAPES:
            raise ValueError(f"shape: expected one of {', '.join(SHAPES)}, saw {self.shape!r}")
        if self.partition >= 0 and not self.topic:
            raise ValueError("partition: expected a topic with it, saw none")
        if self.until_ms and self.until_ms <= self.from_ms:
            raise ValueError(f"until_ms: expected more than from_ms, {self.from_ms}, saw {self.until_ms}")
        if self.nth and self.one_in > 1:
            raise ValueError("nth and one_in: expected one of them, saw both")

    def __str__(self) -> str:
        clauses = [self._head() + self._whom()]
        if self.one_in > 1:
            clauses.append(f"1 in {self.one_in}")
        if self.nth:
            clauses.append(f"{self.nth}{ordinal(self.nth)}")
        if self.most:
            clauses.append("once" if self.most == 1 else f"at most {self.most} times")
        if self.from_ms and self.until_ms:
            clauses.append(f"between {written_ms(self.from_ms)} and {written_ms(self.until_ms)}")
        elif self.from_ms or self.until_ms:
            word, time = ("after", self.from_ms) if self.from_ms else ("until", self.until_ms)
            clauses.append(f"{word} {written_ms(time)}")
        if self.after_effect:
            clauses.append("after effect")
        if not self.legal:
            clauses.append("illegal")
        return ", ".join(clauses)

    def _head(self) -> str:
        form = VERBS[self.verb].form
        form = re.sub(r" \[.*\]", "", form) if self.api == ANY else re.sub(r"[][]", "", form)
        values = {
            "API": "any request" if self.api == ANY else self.api,
            "ERROR": self.error,
            "TIME": written_ms(self.milliseconds),
            "SHAPE": self.shape,
        }
        return " ".join(values.get(word, word) for word in form.split())

    def _whom(self) -> str:
        words = []
        if self.topic:
            ambiguous = self.partition < 0 and NUMBERED.fullmatch(self.topic)
            number = "" if self.partition < 0 else f"-{self.partition}"
            words.append(f" on {'topic ' if ambiguous else ''}{self.topic}{number}")
        if self.group:
            words.append(f" of group {quoted(self.group)}")
        if self.client:
            words.append(f" from client {quoted(self.client)}")
        if self.broker >= 0:
            words.append(f" at broker {self.broker}")
        return "".join(words)

    @property
    def kind(self) -> str:
        """The cause of its events in a trace."""
        return self.verb.replace(" ", "_")


def checked(**values: Any) -> RequestFault:
    """A fault of these fields. Raises PlanError."""
    try:
        return RequestFault(**values)
    except (TypeError, ValueError) as error:
        text = str(error)
        where, _, rest = text.partition(": expected ")
        wanted, _, seen = rest.partition(", saw ")
        raise PlanError(
            expected=wanted or "the fields of a fault of requests",
            seen=seen or text,
            where=f"a fault of requests, {where}" if rest else "a fault of requests",
        ) from None
