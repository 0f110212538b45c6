"""Wrong clocks of real brokers: each JVM reads the wall clock through libfaketime, which can jump.

Owns the library, the file that says how far a clock is off, and the environment of a process. Must not know
processes. Only the wall clock is wrong: timers of a JVM count by the monotonic clock, which stays right. What
a broker with a wrong clock writes into its log has wrong times, so that its events of that time are out of
order (inside/together.py).
"""

import sys
from pathlib import Path

from attrs import define, field

from fencepost.traces.errors import EnvironmentError_, FencepostError
from fencepost.traces.whole_file import write_whole

PLACES = (
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib64/faketime/libfaketimeMT.so.1",
    "/usr/lib/faketime/libfaketimeMT.so.1",
    "/usr/local/lib/faketime/libfaketimeMT.so.1",
)
"""Where distributions put the variant for programs with threads."""
LARGEST_S = 100 * 365 * 86_400
CACHE_S = 1
"""How long a process may go on with what it read."""


def library() -> Path | None:
    """The library; None where it is not installed."""
    return next((Path(place) for place in PLACES if Path(place).exists()), None)


def missing() -> str:
    """Why clocks cannot be wrong here; empty if they can."""
    if sys.platform == "linux" and library() is not None:
        return ""
    return "needs libfaketime (Debian: apt-get install libfaketime)"


@define(eq=False)
class Clocks:
    """The clocks of a cluster."""

    # Of each broker.
    folders: dict[int, Path]
    # Seconds by which each clock is ahead; brokers with a right one are absent.
    offsets_s: dict[int, int] = field(factory=dict)

    def environment(self, broker: int) -> list[str]:
        """What comes before the command of a broker's process. Raises EnvironmentError_ without the
        library."""
        preload = library()
        if preload is None:
            raise EnvironmentError_(expected="clocks that can be wrong", seen=missing(), where="this machine")
        self._write(broker)
        return [
            *("env", f"LD_PRELOAD={preload}", f"FAKETIME_TIMESTAMP_FILE={self._file(broker).absolute()}"),
            *(f"FAKETIME_CACHE_DURATION={CACHE_S}", "FAKETIME_DONT_FAKE_MONOTONIC=1"),
        ]

    def set(self, broker: int, ahead_s: int) -> None:
        """The broker's wall clock is ahead by so many seconds (negative: behind) from about a second from now
        on. Raises FencepostError."""
        if broker not in self.folders or abs(ahead_s) > LARGEST_S:
            raise FencepostError(
                expected=f"one of the brokers {', '.join(map(str, self.folders))}, at most {LARGEST_S} s",
                seen=f"{broker}, {ahead_s} s",
                where="a wrong clock",
            )
        self.offsets_s[broker] = ahead_s
        self._write(broker)

    def heal(self) -> None:
        """All clocks are right again; to their processes, time jumps."""
        for broker in [broker for broker, ahead_s in self.offsets_s.items() if ahead_s]:
            self.set(broker, 0)
        self.offsets_s.clear()

    def _file(self, broker: int) -> Path:
        return self.folders[broker] / "clock"

    def _write(self, broker: int) -> None:
        write_whole(self._file(broker), f"{self.offsets_s.get(broker, 0):+d}s\n")
