"""Writes what an application does, one JSON line an event. Copy this file; it needs Python alone.

events = Events("app.events", "billing", group="g")
events.write("processed", topic="orders", partition=0, offset=41, key=b"k", value=b"v")
events.close()      # at an orderly end, when every result has been written
"""

import hashlib
import json
import os
import threading


class Events:
    """A file of events. name: of this producer or consumer; one object for each, for as long as it lives."""

    def __init__(self, path: str, name: str, group: str | None = None) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._process, self._n, self._lock = f"{name}-{os.getpid()}", 0, threading.Lock()
        self.write("started", version=1, group=group)

    def write(self, event: str, **fields: object) -> None:
        """Write one line. event: its kind; fields: as the reference names them; of key and value, bytes or
        text, the hashes are written, never themselves."""
        for name in ("key", "value"):
            if (data := fields.get(name)) is not None:
                data = data if isinstance(data, bytes | bytearray | memoryview) else str(data).encode()
                fields[name] = hashlib.sha256(data).hexdigest()[:16]
        fields = {name: value for name, value in fields.items() if value is not None}
        with self._lock:
            line = {"event": event, "process": self._process, "n": self._n, **fields}
            self._n += 1
            os.write(self._file, json.dumps(line).encode() + b"\n")

    def close(self) -> None:
        """The process ends in order: no result is outstanding."""
        self.write("stopped")
        os.close(self._file)
