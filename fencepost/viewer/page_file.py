"""The page as one file: template, style and scripts of page/, with the data inside and nothing from outside.

Owns how the file is put together, and why nothing in a trace can become markup or script. Must not know what
is shown.

Three protections are between a trace and the browser. The data are JSON in an element that is not executed,
with every `<` escaped, so that no text can end the element. The scripts put texts into the page only as text
nodes. The policy lets nothing run or load except the one script and the one style sheet of this file, which
it names by their hashes.
"""

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

from fencepost.report.templating import data_as_text, hash_of
from fencepost.traces.errors import FencepostError
from fencepost.traces.whole_file import write_whole
from fencepost.viewer.view import MOST_BYTES, Shown, view_of

SCRIPTS = (
    "data.js",
    "marks.js",
    "dom.js",
    "state.js",
    "bar.js",
    "logs.js",
    "cluster.js",
    "spacetime.js",
    "events.js",
    "details.js",
    "groups.js",
    "transactions.js",
    "sequential.js",
    "app.js",
)
"""Scripts in the order in which they are joined. Each imports only earlier ones."""
_IMPORT = re.compile(r"^import (\{[^}]*\}) from \"\./(\w+)\.js\";$", re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:const|function) (\w+))", re.MULTILINE)


@cache
def _asset(name: str) -> str:
    return files("fencepost.viewer").joinpath("page", name).read_text(encoding="utf-8")


@cache
def script() -> str:
    """All modules as one script: each becomes a function that is called once and answers its exports; imports
    take names out of those answers."""
    return '"use strict";\n(() => {\n' + "\n".join(_module(name) for name in SCRIPTS) + "\n})();\n"


def _module(name: str) -> str:
    source = _asset(name)
    exported = ", ".join(found[2] for found in _EXPORT.finditer(source))
    body = _EXPORT.sub(r"\1", _IMPORT.sub(r"const \1 = module_\2;", source))
    return f"const module_{name.removesuffix('.js')} = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();"


def page_of(shown: Sequence[Shown], *, most_bytes: int = MOST_BYTES) -> str:
    """The HTML of one or more views of runs.

    Parameters: shown: the views, the first one open. most_bytes: of each view's data.
    Returns: the file's text.
    """
    data = {"views": [view_of(one, most_bytes=most_bytes) for one in shown]}
    parts = {
        "style": _asset("style.css"),
        "script": script(),
        "style_hash": hash_of(_asset("style.css")),
        "script_hash": hash_of(script()),
        "data": data_as_text(data),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _asset("page.html"))


def page_next_to(trace_file: Path, shown: Shown) -> str:
    """Write the page of a run that was kept, next to its trace and with the same name.

    Parameters: trace_file: where the trace is kept. shown: what the page shows.
    Returns: a line for the report of a failure: where the page is, or why there is none.
    """
    path = trace_file.with_suffix(".html")
    try:
        write_page(path, [shown])
    except FencepostError as error:
        return f"no page: {error}"
    return f"watch it: {path} (open it in a browser)"


def write_page(path: Path, shown: Sequence[Shown]) -> int:
    """Write the page.

    Parameters: path: the file, replaced if it is there; shown: the views, the first one open.
    Returns: its size in bytes.
    Raises: FencepostError if it cannot be written.
    """
    text = page_of(shown).encode()
    try:
        write_whole(path, text)
    except OSError as error:
        raise FencepostError(
            expected="a file that can be written",
            seen=error.strerror or str(error),
            where=str(path),
            hint="name another one with --html",
        ) from None
    return len(text)
