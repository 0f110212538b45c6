"""A watched folder for the tests of this folder."""

from pathlib import Path

import pytest

from tests.mining.watch.watch_by_hand import Watch


@pytest.fixture
def watch(tmp_path: Path) -> Watch:
    """Nothing has come yet."""
    return Watch(tmp_path)
