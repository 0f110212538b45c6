"""What is wrong in a file of a log directory, in words.

Owns the form of the sentence. Must not know which file it is: what reads a file yields its flaws among its
entries, and a broker, to which such a file is a hint, takes one with a flaw for missing.
"""

from attrs import frozen


@frozen(kw_only=True)
class Flaw:
    """A flaw of a file."""

    # The first byte or entry concerned, None if it is the whole file.
    position: int | None
    expected: str
    seen: str
    # The file's name if it is not the one being dumped.
    file: str = ""

    @property
    def sentence(self) -> str:
        """The flaw as a sentence with its place."""
        places = (
            f"{self.file}" if self.file else "",
            f"at byte {self.position}" if self.position is not None else "",
        )
        where = " ".join(place for place in places if place)
        return f"{where and where + ': '}expected {self.expected}, saw {self.seen}"
