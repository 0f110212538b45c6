"""A table or a diagram in a page of the documentation, between two marks. Must not know what is in it."""

import os
import platform
import subprocess
from pathlib import Path
from time import gmtime, strftime

from attrs import frozen

from fencepost.traces.errors import FencepostError
from tools.ledger import TOP

END = "<!-- end -->"
LAST = "Last measured "
"""Before the date of a table: rows may be older, for what was not measured anew keeps its row."""


@frozen(kw_only=True)
class Place:
    """page: the file. mark: the comment after which the table begins, up to the next END."""

    page: Path
    mark: str

    def _parts(self) -> tuple[str, str, str]:
        text = self.page.read_text(encoding="utf-8")
        before, mark, rest = text.partition(f"{self.mark}\n")
        inside, end, after = rest.partition(END)
        if not mark or not end:
            raise FencepostError(
                expected=f"{self.mark} and {END} after it", seen="a page without them", where=str(self.page)
            )
        return before + mark, inside, end + after

    def read(self) -> str:
        """What is between the marks, without its date. Raises FencepostError where the page lacks one."""
        return self._parts()[1].partition(f"\n{LAST}")[0]

    def write(self, content: str) -> None:
        """Put lines between the marks. Raises FencepostError where the page lacks one."""
        before, _, after = self._parts()
        self.page.write_text(before + content + after, encoding="utf-8")

    def write_table(self, lines: list[str]) -> None:
        """The same for lines of a table of what was measured now, with an empty line before and after it, and
        with where and when."""
        self.write("\n" + "\n".join(lines) + f"\n\n{measured()}\n\n")


def measured() -> str:
    """Where and when, in a sentence."""
    git = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False, cwd=TOP).stdout.strip()
    where = f"{os.cpu_count()} processors, {platform.machine()}, Python {platform.python_version()}"
    return f"{LAST}on {strftime('%Y-%m-%d', gmtime())} at {commit or 'an unknown commit'}; {where}."


def drawn(page: Path, name: str) -> Place:
    """Where a page has the diagram of this name."""
    return Place(page=page, mark=f"<!-- drawn: {name} -->")
