"""The frames of TLC's -tool output, read line by line.

Owns which text belongs to which message. Must not know the meaning of a code.

    @!@!@STARTMSG code:class @!@!@
    text
    @!@!@ENDMSG code @!@!@

A frame may begin in the middle of a line, or inside another frame (an error quotes another one). Output of
the specification is between frames, or inside one if the evaluation of a state prints. So a stack of open
frames is kept. A frame that never ends (TLC was stopped) is marked as incomplete.
"""

import re
from collections.abc import Iterator

from attrs import define, field, frozen

_MARK = re.compile(r"@!@!@(?:STARTMSG (?P<start>-?\d+)(?::(?P<kind>\d+))?|ENDMSG (?P<end>-?\d+)) @!@!@")

NONE, ERROR, BUG, WARNING, STATE = range(5)
"""Classes of messages."""


@frozen(kw_only=True)
class TlcMessage:
    """One message.

    Attributes:
        code: TLC's, None for a line outside any frame.
        kind: its class.
        text: with the texts of the frames inside it.
        inside: codes of the frames around it, outermost first.
        complete: whether its end was seen.
    """

    code: int | None
    kind: int = NONE
    text: str = ""
    inside: tuple[int, ...] = ()
    complete: bool = True


@define
class _Open:
    code: int
    kind: int
    parts: list[str] = field(factory=list)


@define
class Frames:
    """Receives lines and returns the messages that they complete. open: frames that have begun, outermost
    first."""

    open: list[_Open] = field(factory=list)

    def feed(self, line: str) -> Iterator[TlcMessage]:
        """The messages that this line (with or without its line feed) completes."""
        line = line.rstrip("\r\n")
        position = 0
        for mark in _MARK.finditer(line):
            yield from self._text(line[position : mark.start()], newline=False)
            position = mark.end()
            if mark["start"] is not None:
                self.open.append(_Open(int(mark["start"]), int(mark["kind"] or 0)))
            else:
                yield from self._close(int(mark["end"]), mark.group())
        if position < len(line) or position == 0:
            yield from self._text(line[position:], newline=True)

    def end(self) -> Iterator[TlcMessage]:
        """The frames that are still open at the end of the output, innermost first."""
        while self.open:
            yield self._pop(complete=False)

    def _text(self, text: str, *, newline: bool) -> Iterator[TlcMessage]:
        if self.open:
            self.open[-1].parts.append(text + ("\n" if newline else ""))
        elif text.strip():
            yield TlcMessage(code=None, text=text)

    def _close(self, code: int, mark: str) -> Iterator[TlcMessage]:
        """An end closes the innermost frame with its code, and the unfinished ones inside it. An end without
        a beginning is text."""
        if all(frame.code != code for frame in self.open):
            yield from self._text(mark, newline=True)
            return
        while self.open[-1].code != code:
            yield self._pop(complete=False)
        yield self._pop(complete=True)

    def _pop(self, *, complete: bool) -> TlcMessage:
        frame = self.open.pop()
        text = "".join(frame.parts).strip("\n")
        if self.open:
            self.open[-1].parts.append(text + "\n")
        return TlcMessage(
            code=frame.code,
            kind=frame.kind,
            text=text,
            inside=tuple(outer.code for outer in self.open),
            complete=complete,
        )
