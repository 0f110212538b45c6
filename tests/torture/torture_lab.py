"""A driver that needs no network: the one of librdkafka, over the packages of this environment."""

import json

import pytest

from fencepost.torture.building import build
from fencepost.torture.libraries import DRIVERS, wanted

CONFLUENT = DRIVERS / "confluent-kafka" / "driver.py"
SHARED = sorted((DRIVERS / "shared").glob("*.py"))


def library_here(folder, monkeypatch, *, program=CONFLUENT, version=None):
    """A built driver of a folder of its own, in a cache of its own."""
    confluent_kafka = pytest.importorskip("confluent_kafka")
    version = version or confluent_kafka.__version__
    monkeypatch.setenv("FENCEPOST_DRIVERS", str(folder / "cache"))
    ours = folder / "ours"
    ours.mkdir()
    beside = sorted(path for path in CONFLUENT.parent.glob("*.py") if path != CONFLUENT)
    sources = [str(path) for path in (program, *beside, *SHARED)]
    (ours / "driver.toml").write_text(
        f'name = "ours"\ntitle = "a driver of a test"\ntoolchain = "none"\nnewest = "{version}"\n'
        f'sources = {json.dumps(sources)}\nrun = ["{{python}}", "{{build}}/driver.py"]\n'
    )
    return build(wanted(str(ours)))
