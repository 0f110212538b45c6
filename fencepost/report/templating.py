"""Templates: everything that a report shows goes through one of them and is escaped there.

Owns where templates lie and that they escape. Must not know what is shown.
"""

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("fencepost.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render(name: str, **values: Any) -> str:
    """The text of a template of this package with these values, escaped for XML and HTML."""
    return _environment().get_template(f"{name}.j2").render(**values)
