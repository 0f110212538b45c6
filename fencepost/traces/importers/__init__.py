"""Importers: other people's histories as traces of ours (docs/how-to/models.md).

`import_text` and `import_file` answer one `Trace`; what they do not understand is a TraceError with file,
line and reason.
"""

from pathlib import Path

from fencepost.traces.errors import TraceError, unknown_name
from fencepost.traces.importers.entries import Pairing, unique_values
from fencepost.traces.importers.formats import FORMATS, SUFFIXES, recognised
from fencepost.traces.importers.kafka import overlaps_itself, sends_unique
from fencepost.traces.importers.window import Window
from fencepost.traces.trace import Trace

__all__ = ["FORMATS", "SUFFIXES", "import_file", "import_text"]


def import_text(text: str, *, where: str, format: str = "auto", trace_id: int = 0) -> Trace:
    """The history that a text holds. where: its name in errors; format: a name of FORMATS, or auto. Raises
    TraceError."""
    return _imported(Window.of_pieces(text, where), format, trace_id)


def import_file(path: Path, *, format: str = "auto", trace_id: int = 0) -> Trace:
    """The history in a file, read as a stream. path: the file; format: one of FORMATS; trace_id: of the
    trace. Raises TraceError with file and line."""
    try:
        with path.open("rb") as file:
            return _imported(Window.of_file(file, str(path)), format, trace_id)
    except OSError as error:
        raise TraceError(
            expected="a readable text file", seen=error.strerror or str(error), where=str(path)
        ) from None


def _imported(window: Window, format: str, trace_id: int) -> Trace:
    if format != "auto" and format not in FORMATS:
        raise TraceError(
            expected=f"a format out of auto, {', '.join(FORMATS)}",
            seen=unknown_name(format, ("auto", *FORMATS)),
            where=window.where,
        )
    chosen = recognised(window) if format == "auto" else FORMATS[format]
    if chosen.operations is not None:
        operations = chosen.operations(window)
        unique, overlapping = sends_unique(operations), overlaps_itself(operations)
    else:
        assert chosen.entries is not None
        pairing = Pairing(window.where, failed_cas_observes=chosen.failed_cas_observes)
        for entry in chosen.entries(window):
            pairing.add(entry)
        operations, overlapping = pairing.operations(), False
        unique = unique_values(operations)
    return Trace(
        trace_id=trace_id,
        plan="",
        seed=0,
        target="foreign",
        software_version="",
        profile=f"imported-{chosen.name}",
        unique_values=unique,
        concurrent_processes=overlapping,
        operations=operations,
    )
