"""How the names and texts of a trace are said: records by key and value, clients by their client ids, and
nothing that a terminal or a page must not get.

Owns the one form of escapes, and where words name a record or a client by a number. Must not know which words
they are, or where they go.
"""

import re

from attrs import field, frozen

from fencepost.traces.kafka_names.contents import clients_of, texts_of
from fencepost.traces.trace import Trace

_NUMBERS = re.compile(r"\bv(?P<value>\d{19})\b|\bclient (?P<process>\d{4,})\b")
"""Records with an id made of their content (impl/log/values.py: it has 19 digits), and connections
(kafka/recording/: from 1000 on), as the words of a trace name them."""
LONGEST_CONTENT = 40
"""Characters of a record within a sentence."""
LONGEST_CLIENT = 40
"""Characters of a client id."""


def shown(text: str) -> str:
    """`text` with escapes for control characters, characters that change the direction of writing, and all
    others that cannot be printed."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text
    )


@frozen
class Spoken:
    """The names of one trace."""

    trace: Trace = field(repr=False)
    # What records say, by value id.
    contents: dict[int, str] = field(init=False)
    # What clients call themselves, by process.
    clients: dict[int, str] = field(init=False)

    @contents.default
    def _contents(self) -> dict[int, str]:
        return {value: _content(*texts) for value, texts in texts_of(self.trace.events).items()}

    @clients.default
    def _clients(self) -> dict[int, str]:
        return {one: cut(shown(name), LONGEST_CLIENT) for one, name in clients_of(self.trace.events).items()}

    def client(self, process: int) -> str:
        """A process in words: client 3, or shop (1003)."""
        name = self.clients.get(process)
        return f"client {process}" if name is None else f"{name} ({process})"

    def __call__(self, text: str) -> str:
        """The same words, with names in place of numbers where there are some."""
        return _NUMBERS.sub(self._name, text) if self.contents or self.clients else text

    def _name(self, found: re.Match[str]) -> str:
        if found["process"]:
            return self.client(int(found["process"]))
        content = self.contents.get(int(found["value"]))
        return found[0] if content is None else f"“{cut(content, LONGEST_CONTENT)}”"


def _content(key: str | None, value: str | None) -> str:
    said = "(tombstone)" if value is None else shown(value)
    return said if key is None else f"{shown(key)}: {said}"


def cut(text: str, longest: int) -> str:
    """At most `longest` characters of `text`; "…" for what is left out."""
    return text if len(text) <= longest else text[: longest - 1] + "…"
