"""Which files and folders a folder means, each real one once.

Owns following links. Must not know what a file holds, or who asks (`check`, `mine`, `show`, `watch`).

A file or folder is itself by its device and number, whatever its names are: a link, a second name, a folder
that is reached twice. What has no link in its path comes first. So of a real file in the folder, the name
that it has there counts, and links to it are passed over. Links to folders are followed once, which ends
every circle of links.
"""

from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

from attrs import define, field

from fencepost.traces.errors import TraceError

ENDLESS = 1 << 30
"""As many levels as there are."""
Identity = tuple[int, int]


def identity(path: Path) -> Identity:
    """What a path leads to: device and number. Raises OSError."""
    about = path.stat()
    return about.st_dev, about.st_ino


@define
class Walk:
    """The files and folders that were met so far."""

    met: set[Identity] = field(factory=set)

    def first(self, path: Path) -> bool:
        """Whether it was not met before; from now on it was. A path that leads nowhere is new each time."""
        try:
            found = identity(path)
        except OSError:
            return True
        known = found in self.met
        self.met.add(found)
        return not known

    def below(self, top: Path, wanted: Callable[[Path], bool], levels: int = ENDLESS) -> Iterator[Path]:
        """What a path means, each real file and folder once.

        Args:
            top: a file or folder.
            wanted: whether a file, or a folder as a whole, is meant. `top` itself is meant if it is a file.
            levels: of folders below `top` that are searched.

        Yields:
            what is meant, in the order of the names: files before folders, and links last.
        """
        if wanted(top) or not top.is_dir():
            if self.first(top):
                yield top
            return
        links: deque[tuple[Path, int]] = deque()
        if self.first(top):
            yield from self._folder(top, wanted, levels, links)
        while links:
            link, left = links.popleft()
            if link.is_dir() and not wanted(link):
                if left > 0 and self.first(link):
                    yield from self._folder(link, wanted, left - 1, links)
            elif link.exists() and wanted(link) and self.first(link):
                yield link

    def _folder(
        self, folder: Path, wanted: Callable[[Path], bool], levels: int, links: deque[tuple[Path, int]]
    ) -> Iterator[Path]:
        """The content of a folder; links in it wait in `links`."""
        try:
            entries = sorted(folder.iterdir())
        except OSError as error:
            raise TraceError(
                expected="a folder that can be read", seen=error.strerror or str(error), where=str(folder)
            ) from None
        links.extend((entry, levels) for entry in entries if entry.is_symlink() and entry.name[0] != ".")
        real = [entry for entry in entries if not entry.is_symlink()]
        for entry in real:
            if entry.is_file() and wanted(entry) and self.first(entry):
                yield entry
        for entry in real:
            if not entry.is_dir() or entry.name.startswith(".") or levels <= 0:
                continue
            if self.first(entry):
                if wanted(entry):
                    yield entry
                else:
                    yield from self._folder(entry, wanted, levels - 1, links)
