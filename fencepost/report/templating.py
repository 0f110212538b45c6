"""Templates: everything that a report shows goes through one of them and is escaped there.

Owns where the templates are and that they escape. Must not know what is shown.
"""

import base64
import hashlib
from functools import cache
from typing import Any

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from fencepost.report.spoken import shown


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("fencepost.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalized,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _finalized(value: Any) -> Any:
    """What a template puts in: text of a trace may carry anything, and HTML's own escapes leave NUL and
    U+202E as they are."""
    return value if isinstance(value, Markup) or not isinstance(value, str) else shown(value)


def render(name: str, **values: Any) -> str:
    """The text of a template of this package with these values, escaped for XML and HTML."""
    return _environment().get_template(f"{name}.j2").render(**values)


def data_as_text(data: Any) -> str:
    """JSON that no HTML parser can leave: `<`, `>` and `&` as escapes, and the two line ends that JavaScript
    knows in addition to JSON's."""
    text = msgspec.json.encode(data).decode()
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def hash_of(text: str) -> str:
    """How a content-security policy names a script or a style sheet of the page."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
