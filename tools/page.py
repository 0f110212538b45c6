"""A table or a diagram in a page of the documentation, between two marks. Must not know what is in it."""

from pathlib import Path

from attrs import frozen

from fencepost.traces.errors import FencepostError

END = "<!-- end -->"


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
        """What is between the marks. Raises FencepostError where the page lacks one."""
        return self._parts()[1]

    def write(self, content: str) -> None:
        """Put lines between the marks. Raises FencepostError where the page lacks one."""
        before, _, after = self._parts()
        self.page.write_text(before + content + after, encoding="utf-8")

    def write_table(self, lines: list[str]) -> None:
        """The same for lines of a table, with an empty line before and after it."""
        self.write("\n" + "\n".join(lines) + "\n\n")


def drawn(page: Path, name: str) -> Place:
    """Where a page has the diagram of this name."""
    return Place(page=page, mark=f"<!-- drawn: {name} -->")
