"""The process that serves one disk to the kernel: `python -m fencepost.systems.disk.mount FOLDER NODE SEED`.

Owns the calls of FUSE and the lines that steer it. Must not know the rules of the disk (volume.py). Each line
of standard input is a JSON object, each line of standard output its answer:

    {"do": "lie", "times": null, "below": "t-0"}      {"do": "power_loss"}      {"do": "write_back"}
    {"do": "fail", "call": "sync", "nth": 1, "times": 1, "below": ""}
    {"do": "limit", "bytes": 1000000}   {"do": "slow", "milliseconds": 50}   {"do": "heal"}   {"do": "state"}

The end of its input is its end. The kernel keeps nothing of names and attributes, and drops what it has of a
file when it is opened, so that after a power loss processes read what the disk has.
"""

import errno
import json
import os
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import mfusepy
from attrs import asdict, define, field

from fencepost.sim.disk_faults import DiskCall
from fencepost.sim.disk_names import Directory
from fencepost.sim.randomness import Randomness
from fencepost.systems.disk.content import PAGE, StoredFile
from fencepost.systems.disk.unmounting import unmount
from fencepost.systems.disk.volume import MOST_BYTES, Volume

READY = {"ready": True}


@define(eq=False)
class Served(mfusepy.Operations):  # type: ignore[misc]
    """The calls of the kernel. Paths begin with "/"."""

    volume: Volume
    # Calls and lines come in different threads.
    _guard: threading.Lock = field(factory=threading.Lock)
    _open: dict[int, StoredFile] = field(factory=dict)
    _next: int = 1
    use_ns = True

    @contextmanager
    def _quiet(self) -> Iterator[None]:
        """One call at a time, and every error has a number."""
        with self._guard:
            try:
                yield
            except OSError as error:
                raise mfusepy.FuseOSError(error.errno or errno.EIO) from None

    def init(self, path: str) -> None:
        """The kernel has mounted it."""
        say(READY)

    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
        """stat. path: of what is asked about; fh: the handle of an open file."""
        with self._quiet():
            found = self._open.get(fh) if fh else self.volume.find(_own(path))
            if found is None:
                raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
            if isinstance(found, Directory):
                return {"st_mode": stat.S_IFDIR | 0o755, "st_nlink": 2, "st_uid": os.getuid()}
            return {
                "st_mode": stat.S_IFREG | found.mode,
                "st_nlink": 1,
                "st_uid": os.getuid(),
                "st_size": found.content.size,
                "st_blocks": len(found.content.pages) * PAGE // 512,
                "st_mtime": found.mtime_ns,
                "st_ctime": found.mtime_ns,
                "st_atime": found.mtime_ns,
            }

    def readdir(self, path: str, fh: int) -> list[str]:
        """The names of a directory. path: its own; fh: its handle, not used."""
        with self._quiet():
            return [".", "..", *self.volume.children(_own(path))]

    def create(self, path: str, mode: int, fi: Any = None) -> int:
        """A new file, open; returns its handle. path: its name; mode: its permissions; fi: not used."""
        with self._quiet():
            return self._opened(self.volume.create(_own(path), stat.S_IMODE(mode)))

    def open(self, path: str, flags: int) -> int:
        """A file that is there; returns its handle. path: its name; flags: of the call."""
        with self._quiet():
            file = self.volume.file(_own(path))
            if flags & os.O_TRUNC:
                self.volume.truncate(file, _own(path), 0)
            return self._opened(file)

    def release(self, path: str, fh: int) -> int:
        """Nobody has it open any more. path: not used; fh: its handle."""
        with self._quiet():
            self._open.pop(fh, None)
            return 0

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        """Bytes of an open file. path: its name; size, offset: which bytes; fh: its handle."""
        with self._quiet():
            return self.volume.read(self._handle(path, fh), _own(path), offset, size)

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        """Bytes into an open file; returns how many. path: its name; data: at offset; fh: its handle."""
        with self._quiet():
            return self.volume.write(self._handle(path, fh), _own(path), offset, bytes(data))

    def truncate(self, path: str, length: int, fh: int | None = None) -> int:
        """Cut, or continue with a hole. path: the file; length: its new size; fh: its handle."""
        with self._quiet():
            self.volume.truncate(self._handle(path, fh), _own(path), length)
            return 0

    def fsync(self, path: str, datasync: int, fh: int) -> int:
        """Of a file. The kernel has written what was mapped into memory before. path: its name; datasync: not
        used; fh: its handle."""
        with self._quiet():
            self.volume.sync(self._handle(path, fh), _own(path))
            return 0

    def fsyncdir(self, path: str, datasync: int, fh: int) -> int:
        """Of a directory. path: its name; datasync, fh: not used."""
        with self._quiet():
            self.volume.sync_directory(_own(path))
            return 0

    def mkdir(self, path: str, mode: int) -> int:
        """A new directory. path: its name; mode: not used."""
        with self._quiet():
            self.volume.make_directory(_own(path))
            return 0

    def rmdir(self, path: str) -> int:
        """Remove an empty directory."""
        with self._quiet():
            self.volume.remove_directory(_own(path))
            return 0

    def unlink(self, path: str) -> int:
        """Remove a file."""
        with self._quiet():
            self.volume.remove(_own(path))
            return 0

    def rename(self, old: str, new: str) -> int:
        """Atomically. old, new: names."""
        with self._quiet():
            self.volume.rename(_own(old), _own(new))
            return 0

    def chmod(self, path: str, mode: int) -> int:
        """Of a file; directories stay as they are. path: its name; mode: its permissions."""
        with self._quiet():
            found = self.volume.find(_own(path))
            if isinstance(found, StoredFile):
                found.mode = stat.S_IMODE(mode)
            return 0

    def chown(self, path: str, uid: int, gid: int) -> int:
        """No effect: there is one user. path, uid, gid: not used."""
        return 0

    def utimens(self, path: str, times: tuple[int, int] | None = None) -> int:
        """The time of the last change, as Kafka sets it for segments. path: a file; times: access and change,
        in nanoseconds."""
        with self._quiet():
            found = self.volume.find(_own(path))
            if isinstance(found, StoredFile) and times:
                found.mtime_ns = int(times[1])
            return 0

    def statfs(self, path: str) -> dict[str, int]:
        """How much room there is."""
        with self._quiet():
            size = self.volume.faults.capacity or MOST_BYTES
            free = max(0, size - self.volume.used()) // PAGE
            return {
                "f_bsize": PAGE,
                "f_frsize": PAGE,
                "f_blocks": size // PAGE,
                "f_bfree": free,
                "f_bavail": free,
            }

    def _opened(self, file: StoredFile) -> int:
        number, self._next = self._next, self._next + 1
        self._open[number] = file
        return number

    def _handle(self, path: str, fh: int | None) -> StoredFile:
        found = self._open.get(fh or 0)
        return self.volume.file(_own(path)) if found is None else found

    # ---- lines

    def obey(self, line: str) -> dict[str, Any]:
        """Carry out a line; the answer, with `error` for one that makes no sense."""
        volume = self.volume
        try:
            order = json.loads(line)
            below = str(order.get("below", ""))
            with self._guard:
                match order["do"]:
                    case "lie":
                        volume.lie_about_syncs(order.get("times"), below)
                    case "fail":
                        volume.fail_calls(
                            DiskCall(order["call"]),
                            nth=int(order.get("nth", 1)),
                            times=order.get("times", 1),
                            below=below,
                        )
                    case "limit":
                        volume.limit_capacity(order["bytes"])
                    case "slow":
                        volume.slow_syncs(int(order["milliseconds"]))
                    case "heal":
                        volume.heal()
                    case "write_back":
                        volume.write_back()
                    case "power_loss":
                        self._open.clear()
                        return {"lost": asdict(volume.power_loss())}
                    case "state":
                        return {"used": volume.used(), "open": len(self._open)}
                    case other:
                        return {"error": f"expected a verb of the disk, saw {other!r}"}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return {"error": f"expected a JSON object with do, saw {line.strip()[:100]!r} ({error})"}
        return {"done": True}


def _own(path: str) -> str:
    return path.strip("/")


def say(answer: dict[str, Any]) -> None:
    """One line of standard output."""
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def _listen(served: Served, folder: str) -> None:
    for line in sys.stdin:
        say(served.obey(line))
    unmount(folder)  # which ends the loop of FUSE


def main(folder: str, node: int, seed: int) -> None:
    """Serve until the input ends or it is unmounted. folder: where; node, seed: of the draws."""
    served = Served(Volume(node=node, randomness=Randomness(seed)))
    threading.Thread(target=_listen, args=(served, folder), daemon=True).start()
    mfusepy.FUSE(
        served,
        folder,
        foreground=True,
        nothreads=True,
        fsname="fencepost",
        attr_timeout=0,
        entry_timeout=0,
        negative_timeout=0,
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
