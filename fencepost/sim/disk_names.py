"""The names of a simulated disk: directories, and the durable part of their changes.

Owns the tree of names and its unsynced steps. Must not know the content of files. sim/disk.py has the rules
for a power loss. Final.
"""

import errno
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from attrs import Factory, define

F = TypeVar("F")


@define(eq=False)
class Directory:
    """names: as a process sees them. durable: those that are certainly on the disk. Values are directories or
    files. made_as: its first path, which keys randomness and does not change with a rename."""

    made_as: str
    names: dict[str, object] = Factory(dict)
    durable: dict[str, object] = Factory(dict)
    # Inside `Names.settle` only: how many more steps survive.
    allowance: int = 0


@define(eq=False)
class Step:
    """One atomic change: in each of these directories, a name gets an object or (None) is removed."""

    changes: tuple[tuple[Directory, str, object | None], ...]
    # The moment of the disk.
    taken: int = 0
    # A process asked to sync it, and the disk lied or failed.
    refused: bool = False

    def touches(self, directories: list[Directory]) -> bool:
        """Whether it changes one of these directories."""
        return any(change[0] in directories for change in self.changes)

    def directories(self) -> list[Directory]:
        """The directories that it changes, without duplicates."""
        first, last = self.changes[0][0], self.changes[-1][0]
        return [first] if first is last else [first, last]


class Names(Generic[F]):
    """The tree. unsynced: the steps that are not durable, oldest first. moment: counts steps, and the syncs
    of files, in the order in which they happened."""

    def __init__(self, file_type: type[F]) -> None:
        self._file_type = file_type
        self._root = Directory("")
        self.unsynced: list[Step] = []
        self.moment = 0

    def tick(self) -> int:
        """The next moment."""
        self.moment += 1
        return self.moment

    # ---- looking

    def find(self, path: str) -> object | None:
        """The file or directory with this name."""
        place: object | None = self._root
        for part in path.split("/") if path else ():
            if type(place) is not Directory:
                return None
            place = place.names.get(part)
        return place

    def find_file(self, path: str) -> F | None:
        """The file of this name. Raises IsADirectoryError."""
        place = self.find(path)
        if isinstance(place, Directory):
            raise IsADirectoryError(path)
        assert place is None or isinstance(place, self._file_type)
        return place

    def children(self, path: str) -> list[str]:
        """Names in a directory, sorted; empty if it is absent."""
        place = self.find(path)
        return sorted(place.names) if isinstance(place, Directory) else []

    def files(self) -> Iterator[tuple[str, F]]:
        """All files with their paths, in the order of paths."""
        waiting: list[tuple[str, object]] = [("", self._root)]
        while waiting:
            path, place = waiting.pop()
            if isinstance(place, Directory):
                prefix = f"{path}/" if path else ""
                waiting.extend(
                    (prefix + name, place.names[name]) for name in sorted(place.names, reverse=True)
                )
            else:
                assert isinstance(place, self._file_type)
                yield path, place

    # ---- changing

    def creation(self, path: str, thing: object) -> Step:
        """The step that creates an object with this name.

        Args:
            path: the name.
            thing: the file or directory.

        Returns:
            the step, not yet applied.

        Raises:
            FileNotFoundError: if there is no parent directory.
            FileExistsError: if a file has the name.
        """
        parent, name = self._parent(path)
        if name in parent.names:
            raise FileExistsError(path)
        return Step(((parent, name, thing),))

    def renaming(self, source: str, target: str) -> Step:
        """The step of a rename.

        Args:
            source: the old path.
            target: the new path; a file there is replaced.

        Returns:
            the step, not yet applied.

        Raises:
            FileNotFoundError: if the source or the parent of the target does not exist.
            OSError: if a directory would replace something or be replaced.
        """
        old_parent, old_name = self._parent(source)
        new_parent, new_name = self._parent(target)
        thing = old_parent.names.get(old_name)
        if thing is None:
            raise FileNotFoundError(source)
        if isinstance(new_parent.names.get(new_name), Directory):
            raise IsADirectoryError(target)
        if isinstance(thing, Directory) and new_name in new_parent.names:
            raise NotADirectoryError(target)
        return Step(((old_parent, old_name, None), (new_parent, new_name, thing)))

    def removal(self, path: str) -> Step:
        """The step of removing a file. Raises FileNotFoundError, IsADirectoryError."""
        if self.find_file(path) is None:
            raise FileNotFoundError(path)
        parent, name = self._parent(path)
        return Step(((parent, name, None),))

    def removal_of_directory(self, path: str) -> Step:
        """The step of removing an empty directory. Raises FileNotFoundError, NotADirectoryError, OSError if
        something is in it."""
        place = self.find(path)
        if place is None:
            raise FileNotFoundError(path)
        if not isinstance(place, Directory):
            raise NotADirectoryError(path)
        if place.names:
            raise OSError(errno.ENOTEMPTY, "Directory not empty", path)
        parent, name = self._parent(path)
        return Step(((parent, name, None),))

    def take(self, step: Step) -> None:
        """Apply a step, not yet durably."""
        step.taken = self.tick()
        for directory, name, thing in step.changes:
            _put(directory.names, name, thing)
        self.unsynced.append(step)

    def _synced_with(self, path: str) -> list[Step]:
        """This directory's steps, and the earlier steps of directories that renames tie to it, the latest
        first."""
        place = self.find(path)
        if not isinstance(place, Directory):
            raise FileNotFoundError(path)
        directories, found = [place], []
        for step in reversed(self.unsynced):
            changes = step.changes
            # almost always the one directory of a file that was created or renamed
            if changes[0][0] in directories or (len(changes) > 1 and step.touches(directories)):
                directories += [change[0] for change in changes]
                found.append(step)
        return found

    def refuse(self, path: str) -> None:
        """A process asked to sync this directory, and the disk lied or failed: what that sync would have made
        durable is not the process's fault."""
        for step in self._synced_with(path):
            step.refused = True

    def outcomes(self, path: str, owed: Callable[[Step], bool]) -> Iterator[dict[str, object]]:
        """What the names of a directory could be after a power loss now, if the process had synced what it
        should have.

        Args:
            path: the directory.
            owed: whether the process should have synced the directory after this step.

        Yields:
            the things by name: a prefix of the unsynced steps is kept.
        """
        place = self.find(path)
        if not isinstance(place, Directory):
            raise FileNotFoundError(path)
        steps, kept = [step for step in self.unsynced if step.touches([place])], 0
        for number, step in enumerate(steps, 1):
            if step.refused:
                break
            if owed(step):
                kept = number
        names = dict(place.durable)
        for number in range(len(steps) + 1):
            if number >= kept:
                yield dict(names)
            for directory, name, thing in steps[number].changes if number < len(steps) else ():
                if directory is place:
                    _put(names, name, thing)

    def sync(self, path: str) -> None:
        """Make this directory's steps durable, and the earlier steps of directories that renames tie to
        it."""
        durable = self._synced_with(path)
        for step in reversed(durable):
            self._make_durable(step)
        if len(durable) == len(self.unsynced):
            self.unsynced = []
        else:
            self.unsynced = [step for step in self.unsynced if step not in durable]

    def sync_all(self) -> None:
        """Make the steps of all directories durable."""
        for step in self.unsynced:
            self._make_durable(step)
        self.unsynced = []

    def settle(self, draw: Callable[[str, int], int]) -> int:
        """The power has failed: of each directory's n unsynced steps keep the first draw(made_as, n). Returns
        the number of lost steps."""
        for directory in self._changed():
            directory.allowance = draw(
                directory.made_as, sum(step.touches([directory]) for step in self.unsynced)
            )
        lost = 0
        for step in self.unsynced:
            kept = all(directory.allowance for directory in step.directories())
            for directory in step.directories():
                directory.allowance = directory.allowance - 1 if kept else 0  # a directory keeps a prefix
            if kept:
                self._make_durable(step)
            else:
                lost += 1
        self.unsynced = []
        self._forget_the_rest()
        return lost

    def _changed(self) -> list[Directory]:
        """The directories with unsynced steps, in the order of their first one."""
        changed: list[Directory] = []
        for step in self.unsynced:
            changed += [place for place in step.directories() if all(place is not other for other in changed)]
        return changed

    def _make_durable(self, step: Step) -> None:
        for directory, name, thing in step.changes:
            _put(directory.durable, name, thing)

    def _forget_the_rest(self) -> None:
        waiting = [self._root]
        while waiting:
            directory = waiting.pop()
            directory.names = dict(directory.durable)
            waiting.extend(thing for thing in directory.names.values() if isinstance(thing, Directory))

    def _parent(self, path: str) -> tuple[Directory, str]:
        parent_path, _, name = path.rpartition("/")
        parent = self.find(parent_path)
        if not isinstance(parent, Directory) or not name:
            raise FileNotFoundError(path)
        return parent, name


def _put(names: dict[str, object], name: str, thing: object | None) -> None:
    if thing is None:
        names.pop(name, None)
    else:
        names[name] = thing
