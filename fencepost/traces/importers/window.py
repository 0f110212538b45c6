"""A text that is read while it is understood: the part that is needed now, and the number of its first line.

Owns: reading on, forgetting what was understood, numbers of lines. Must not know what the text means. Memory
is bounded by the longest entry of a history, not by the history's text.
"""

import codecs
import io
from collections.abc import Callable, Iterator
from typing import BinaryIO, Self

from attrs import define, field

from fencepost.traces.errors import TraceError

CHUNK = 1 << 16
"""Characters, or bytes, that are read at once."""
LONGEST_ENTRY = 1 << 24
"""Characters in one entry; a longer one is probably a missing bracket."""


@define(eq=False)
class Window:
    """A part of a text that is read as a stream."""

    # Reads so many characters more.
    read: Callable[[int], str]
    # The file, for errors.
    where: str
    # Characters that are read and not dropped.
    text: str = ""
    # Line number of the first of them.
    line: int = 1
    # Whether the stream is at its end.
    ended: bool = False
    _counted: int = field(init=False, default=0)
    _line: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._line = self.line

    @classmethod
    def of_text(cls, text: str, where: str, line: int = 1) -> Self:
        """All of a text."""
        return cls(lambda _: "", where, text, line, True)

    @classmethod
    def of_pieces(cls, text: str, where: str) -> Self:
        """A text, piece by piece."""
        return cls(io.StringIO(text).read, where)

    @classmethod
    def of_file(cls, file: BinaryIO, where: str) -> Self:
        """A file of UTF-8; its lines may end as they do on Windows. Reading on raises TraceError where it is
        something else."""
        decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8")(), translate=True)
        lines = 1

        def read(size: int) -> str:
            nonlocal lines
            while True:
                data = file.read(size)
                try:
                    text = decoder.decode(data, final=not data)
                except UnicodeDecodeError as error:
                    line = lines + error.object[: error.start].count(b"\n")
                    seen = f"the byte 0x{error.object[error.start]:02x}"
                    raise TraceError(expected="text in UTF-8", seen=seen, where=f"{where}:{line}") from None
                lines += text.count("\n")
                if text or not data:
                    return text

        return cls(read, where)

    def more(self) -> bool:
        """Read on; False at the end. Raises TraceError for an entry without end."""
        if self.ended:
            return False
        if len(self.text) > LONGEST_ENTRY:
            raise TraceError(
                expected=f"entries of at most {LONGEST_ENTRY:,} characters",
                seen="a longer one",
                where=f"{self.where}:{self.line}",
            )
        piece = self.read(max(CHUNK, len(self.text)))
        self.ended = not piece
        self.text += piece
        return not self.ended

    def line_of(self, position: int) -> int:
        """The number of the line that holds a position of the text."""
        if position < self._counted:
            return self.line + self.text.count("\n", 0, position)
        self._line += self.text.count("\n", self._counted, position)
        self._counted = position
        return self._line

    def forget(self, position: int) -> int:
        """Drop the text before a position that was understood. Returns the new position of the same
        character."""
        if position < CHUNK:
            return position
        self.line = self.line_of(position)
        self.text, self._counted = self.text[position:], 0
        return 0

    def lines(self) -> Iterator[tuple[int, str]]:
        """The rest, line by line, with their numbers."""
        position = 0
        while True:
            end = self.text.find("\n", position)
            if end < 0 and self.more():
                continue
            yield self.line_of(position), self.text[position : end if end >= 0 else len(self.text)]
            if end < 0:
                return
            position = self.forget(end + 1)
