"""What the tests of real runs share: the embedded cluster."""

import asyncio
import re

import pytest

from fencepost.campaign.workers.real_worker import checked
from fencepost.run.real.real_run import RealRun
from fencepost.systems.embedded import Embedded


@pytest.fixture(scope="module")
def embedded():
    """One cluster for all runs of a module, as in a campaign."""
    with Embedded() as system:
        yield system


@pytest.fixture
def made(embedded, request):
    """A maker of runs in the module's cluster, each with a topic of its own."""
    count = 0

    def make(plan, **given):
        nonlocal count
        count += 1
        topic = re.sub(r"\W+", "-", f"{request.node.name}-{count}")
        run = RealRun(plan=checked(plan), system=embedded, topic=topic, target="embedded", **given)
        return run, asyncio.run(run.go())

    return make
