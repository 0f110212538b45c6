"""An embedded Kafka for unittest: a cluster for each test, judged at its end.

    class Orders(KafkaTestCase):
        options = {"brokers": 3}
        topics = {"orders": 2}

        def test_a_crash(self):
            self.kafka.crash(self.kafka.leader("orders"))

Owns when it starts, ends and is judged. Must not know anything else.
"""

import os
import shutil
import sys
import unittest
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import fencepost.kafka
from fencepost.kafka.handle import KafkaCluster
from fencepost.record.claimed import claimed
from fencepost.traces.errors import PlanError

__unittest = True
"""Makes unittest leave the frames of this module out of tracebacks. Otherwise it cuts them off there, and the
failing line of the test is not shown."""
SEED, CHAOS = "FENCEPOST_SEED", "FENCEPOST_CHAOS"
"""Variables that take the place of the cluster's seed, and let each test run under chaos of a seed."""
FOLDER = Path(".fencepost")
"""Where pytest's plugin keeps what failed, too."""


class KafkaTestCase(unittest.TestCase):
    """A test case with a cluster of its own for each test."""

    options: ClassVar[Mapping[str, Any]] = {}
    """Parameters of `cluster()`."""
    topics: ClassVar[Mapping[str, int]] = {"t": 1}
    """The topics to create, with the number of partitions of each."""
    min_insync_replicas: ClassVar[int] = 1
    """The setting min.insync.replicas of these topics."""
    judged: ClassVar[bool] = True
    """Whether a test that passes is judged as by `assert_ok`."""
    claims: ClassVar[Path | Mapping[str, Any] | None] = None
    """What may be demanded of the runs, in place of what follows from each (docs/reference/claims.md)."""
    folder: ClassVar[Path] = FOLDER
    """Where a test that fails leaves trace, page, and timeline or report, in a folder of its name."""
    kafka: KafkaCluster
    """The cluster of the test that runs."""
    _went_wrong = False
    """Whether the test's own part failed."""

    def setUp(self) -> None:
        """Start it."""
        options = {**self.options, **({"seed": seed} if (seed := _number(SEED)) is not None else {})}
        self.kafka = self.enterContext(fencepost.kafka.cluster(**options))
        if self.claims is not None:
            self.kafka.claimed = partial(claimed, claims=self.claims)
        self.kafka.folder = self.folder.absolute() / self.id()
        shutil.rmtree(self.kafka.folder, ignore_errors=True)
        for name, partitions in self.topics.items():
            config = {"min.insync.replicas": str(self.min_insync_replicas)}
            self.kafka.create_topic(name, partitions=partitions, config=config)
        self.kafka.chaos_seed = _number(CHAOS)
        if self.kafka.chaos_seed is not None:
            self.kafka.chaos(self.kafka.chaos_seed)

    def _callTestMethod(self, method: Callable[[], Any]) -> None:  # noqa: N802 - unittest's own name
        """As unittest does. It reports what goes wrong here, and a subtest that fails, only after
        tearDown."""
        self._went_wrong = True
        super()._callTestMethod(method)  # type: ignore[misc]
        outcome = getattr(self, "_outcome", None)
        self._went_wrong = outcome is not None and not outcome.success

    def tearDown(self) -> None:
        """Judge it, if nothing was wrong so far; keep it, if something was. Warn if no request met a
        fault."""
        from fencepost.kafka.judgement import met_requests

        if self._went_wrong:
            self._keep()
        elif self.judged:
            try:
                exercised = self.kafka.assert_ok()
            except Exception:
                self._say_how_to_repeat()
                raise
            if not met_requests(self.kafka.end()):
                warnings.warn(f"no request of a client met a fault: {exercised}", stacklevel=1)

    def _keep(self) -> None:
        from fencepost.kafka.kept import keep_kafka

        folder = self.kafka.folder
        assert folder is not None, "setUp names it"
        words = keep_kafka(self.kafka, folder)
        if words:
            sys.stderr.write(f"{self.id()} failed; {words}\n")
        self._say_how_to_repeat()

    def _say_how_to_repeat(self) -> None:
        """The line that runs this test again, with its seeds."""
        seed = _number(SEED)
        seeds = {SEED: self.options.get("seed", 0) if seed is None else seed, CHAOS: self.kafka.last_chaos}
        words = [f"{name}={value}" for name, value in seeds.items() if value is not None]
        sys.stderr.write(f"repeat it: {' '.join(words)} python -m unittest {self.id()}\n")


def _number(variable: str) -> int | None:
    """Of an environment variable; None where it is not set, or empty. Raises PlanError for another text."""
    text = os.environ.get(variable, "")
    if not text:
        return None
    if not text.isdecimal():
        raise PlanError(expected="a number from 0 on", seen=repr(text), where=f"the variable {variable}")
    return int(text)
