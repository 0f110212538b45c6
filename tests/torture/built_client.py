"""A library's driver as a test wants it: built, or the test is skipped by name."""

import pytest

from fencepost.torture.building import OFFLINE, Built, build, missing
from fencepost.torture.libraries import wanted
from fencepost.traces.errors import EnvironmentError_

REFUSED = "403 forbidden"
"""What a registry says that does not hand out this library here."""


def built_or_skipped(name: str) -> Built:
    """The built driver of a library. Skips where its tools, or the registry that it comes through, are not
    there."""
    library = wanted(name)
    if why := missing(library):
        pytest.skip(f"{name}: {why}")
    try:
        return build(library)
    except EnvironmentError_ as error:
        if any(word in str(error).lower() for word in (*OFFLINE, REFUSED)):
            pytest.skip(f"{name}: {error}")
        raise
