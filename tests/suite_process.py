"""The process of a suite (suites.py)."""

import sys
from importlib import import_module

import pytest
from _pytest.config import default_plugins

from tests.suites import begin

LATE = (
    *("campaign.chunks", "campaign.failure", "campaign.kept", "campaign.run.simulated_cluster"),
    *(
        "checkers.linearizability.linearizability_judge",
        "history",
        "history.kept",
        "kafka.kept",
        "kafka.judgement",
    ),
)
"""What fencepost.pytest_plugin imports when it is needed. It is not imported itself: pytest rewrites it."""


def main() -> None:
    """Run pytest."""
    sys.exit(pytest.main(begin()))


for plugin in default_plugins:
    import_module(f"_pytest.{plugin}")
for module in LATE:
    import_module(f"fencepost.{module}")
