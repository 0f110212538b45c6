"""Templates: everything that a report shows goes through one of them and is escaped there.

Owns where templates lie and that they escape. Must not know what is shown.
"""

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup


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


def shown(text: str) -> str:
    """`text` with control characters, signs that turn the direction of writing and whatever else cannot
    be printed as escapes."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text
    )


def _finalized(value: Any) -> Any:
    """What a template puts in: text of a trace may carry anything, and HTML's own escapes leave NUL and
    U+202E as they are."""
    return value if isinstance(value, Markup) or not isinstance(value, str) else shown(value)


def render(name: str, **values: Any) -> str:
    """The text of a template of this package with these values, escaped for XML and HTML."""
    return _environment().get_template(f"{name}.j2").render(**values)
