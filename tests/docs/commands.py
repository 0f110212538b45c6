"""The commands that pages show: where each is, and which words it has.

Owns the reading of pages. Must not know what a command does.
"""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

TOP = Path(__file__).parents[2]
DOCUMENTS = sorted([*TOP.glob("*.md"), *(TOP / "docs").rglob("*.md")])
USED = [
    TOP / "README.md",
    TOP / "docs" / "reference" / "command-line.md",
    *(page for page in DOCUMENTS if page.parent.name in ("tutorial", "how-to")),
]
"""What a user types from: each of their commands is run, or is on the list of those that are not."""
PROGRAMS = ("fencepost", "make", "python", "pytest", "pip")
BEGINS = re.compile(rf"(?:\w+=\S* )*(?:{'|'.join(PROGRAMS)}) ")
INLINE = re.compile(rf"`((?:{'|'.join(PROGRAMS)}) [^`\n]+)`")
OPEN = re.compile(r"\.\.\.|…|\[|\$|\*")
"""In what is a form and no command: something left out, a choice, or a variable of the shell."""


@frozen(kw_only=True)
class Shown:
    """A command of a page."""

    page: Path
    # Where it begins, from 1.
    line: int
    # The program and its arguments; what the shell does before and after it is left out.
    words: tuple[str, ...]
    # Whether it is in a block and ready to be typed; else a part of a sentence, or a form.
    whole: bool

    def __str__(self) -> str:
        return f"{self.page.relative_to(TOP)}:{self.line}: {shlex.join(self.words)}"


def commands_of(page: Path, text: str | None = None) -> list[Shown]:
    """Every command of a page, in order. text: of the page, where it is not the file's."""
    found = []
    for number, line, in_block in _lines(page.read_text() if text is None else text):
        for text_of_one in [_typed(line)] if in_block else INLINE.findall(line):
            found += [
                Shown(page=page, line=number, words=words, whole=in_block and not OPEN.search(text_of_one))
                for words in _commands(text_of_one)
            ]
    return found


def _lines(text: str) -> Iterator[tuple[int, str, bool]]:
    """Number and text of each line, with those joined that a backslash continues, and whether it is in a
    block."""
    fenced, begun, before = False, 0, ""
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
            continue
        begun = begun or number
        if line.endswith("\\"):
            before += line[:-1]
            continue
        # an indented line is in a block too, unless it is inside of a sentence (a list goes on by two)
        yield begun, before + line, fenced or (before + line).startswith("    ")
        begun, before = 0, ""


def _typed(line: str) -> str:
    """A line of a block without what stands before a command: a prompt, or the key of a job."""
    return re.sub(r"^\s*(- run: |\$ )?", "", line)


def _commands(line: str) -> Iterator[tuple[str, ...]]:
    """The commands of one line of a shell: those of a pipe are several."""
    if not BEGINS.match(line) and "| fencepost " not in line:
        return
    reader = shlex.shlex(line, posix=True, punctuation_chars="|<>;&")
    reader.whitespace_split, reader.commenters = True, "#"
    try:
        tokens = list(reader)
    except ValueError:  # an apostrophe: a sentence
        return
    words: list[str] = []
    for token in [*tokens, "|"]:
        if token and set(token) <= set("|<>;&"):
            while words and re.fullmatch(r"\w+=.*", words[0]):
                words.pop(0)
            if words and words[0] in PROGRAMS:
                yield tuple(words)
            words = []
        else:
            words.append(token)
