"""Kafka's protocol, sans-IO: frames, versions, connections, and the translation between Kafka's messages and
the core's.

The only importer of kio. kio's classes are Kafka's messages, one class for each version. Must not know how a
broker core runs.
"""

import sys
from importlib import import_module
from importlib.util import find_spec

from fencepost.traces.errors import MissingExtraError

for package in ("kio", "h11", "junitparser"):
    # all of the extra at once: who installed kio alone would meet the others one by one, later
    if sys.modules.get(package) is None and find_spec(package) is None:
        raise MissingExtraError(package=package, extra="kafka", needed_for="Kafka's protocol")


def _import_without_hypothesis() -> None:
    """kio imports hypothesis where it is installed, to describe its types to it: a third of a second of CPU
    that no broker needs."""
    if "hypothesis" in sys.modules:
        return
    sys.modules["hypothesis"] = None  # type: ignore[assignment]
    try:
        import_module("kio.static.primitive")
    finally:
        del sys.modules["hypothesis"]


_import_without_hypothesis()
