"""One-shot watches: which sessions watch which path.

Owns the table of watches of one kind. Must not know the changes or sessions. Final.
"""


class Watches:
    """One-shot watches of one kind: path -> sessions, in the order in which they were set."""

    def __init__(self) -> None:
        self._sessions: dict[str, dict[int, None]] = {}

    def add(self, path: str, session: int) -> None:
        """Set a watch; once per session and path."""
        self._sessions.setdefault(path, {})[session] = None

    def take(self, path: str) -> list[int]:
        """The sessions that watch this path; their watches are removed."""
        return list(self._sessions.pop(path, ()))

    def forget(self, session: int) -> None:
        """Drop all watches of a session."""
        for path in [path for path, sessions in self._sessions.items() if session in sessions]:
            del self._sessions[path][session]
            if not self._sessions[path]:
                del self._sessions[path]
