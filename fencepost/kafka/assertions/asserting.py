"""What a test asserts of the service that it broke: the methods of the handle.

Owns the public surface of the assertions. Each ends the run, raises RunFailedError (an AssertionError) if it
does not hold, and otherwise answers in a sentence what was exercised. Must not know what an assertion means
(log_assertions.py, rules.py), nor where the cluster lives.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fencepost.traces.anomalies import ONES_OWN
from fencepost.traces.errors import PlanError
from fencepost.traces.trace import Trace

if TYPE_CHECKING:
    from fencepost.kafka.assertions.problems import Problem
    from fencepost.kafka.assertions.rules import Rule
    from fencepost.kafka.topic_records import KafkaRecord


class Assertions(ABC):
    """What can be asserted of a run, by what can be read of it."""

    folder: Path | None
    """Where an assertion that fails keeps trace, page and report, unless it names another one; None:
    nowhere."""

    @abstractmethod
    def end(self) -> Trace:
        """End the run; its whole trace."""

    @abstractmethod
    def records(self, topic: str, *, isolation: str = "read_uncommitted") -> "list[KafkaRecord]":
        """Every record of a topic. topic: its name; isolation: as of the handle."""

    @abstractmethod
    def committed(self, group: str) -> dict[tuple[str, int], int]:
        """The offsets that a group has committed, by (topic, partition)."""

    @abstractmethod
    def groups(self) -> list[str]:
        """Consumer groups that the cluster knows."""

    def assert_no_loss(self, folder: Path | None = None) -> str:
        """Every acknowledged record is in its log, and no reader skipped one; nor is one gone where Kafka's
        guarantees end, as after a power loss of all replicas. folder: as of `assert_ok`. Returns what was
        exercised. Raises RunFailedError."""
        from fencepost.kafka.assertions import log_assertions

        trace = self.end()
        log_assertions.judged(trace, "assert_no_loss", log_assertions.LOSS, folder or self.folder)
        topics = sorted({allowed.topic for allowed in trace.claims.loss})
        found = log_assertions.lost_as_allowed(trace, [one for name in topics for one in self.records(name)])
        return _check(trace, "assert_no_loss", found, folder or self.folder)

    def assert_order(
        self, topic: str = "", *, key: bytes | str | None = None, folder: Path | None = None
    ) -> str:
        """Each partition has the records of each connection in the order in which they were sent first.

        Parameters:
          topic: only of this one; empty: of all.
          key: only records with this key; None: all.
          folder: as of `assert_ok`.
        Returns: what was exercised.
        Raises: RunFailedError.
        """
        from fencepost.kafka.assertions import log_assertions

        trace = self.end()
        wanted = key.encode() if isinstance(key, str) else key
        log_assertions.judged(trace, "assert_order", log_assertions.ORDER, folder or self.folder)
        found = log_assertions.out_of_order(trace, self._records(topic), wanted)
        return _check(trace, "assert_order", found, folder or self.folder)

    def assert_no_duplicates(self, topic: str = "", *, folder: Path | None = None) -> str:
        """No record is in a log more often than a client sent it. A retry is the same sending. topic: only of
        this one; empty: of all. Returns what was exercised. Raises RunFailedError."""
        from fencepost.kafka.assertions import log_assertions

        trace = self.end()
        found = log_assertions.duplicates(trace, self._records(topic))
        return _check(trace, "assert_no_duplicates", found, folder or self.folder)

    def assert_delivered(self, topic: str, *, folder: Path | None = None) -> str:
        """Every acknowledged record of a topic reached some client. Returns what was exercised. Raises
        RunFailedError."""
        from fencepost.kafka.assertions import log_assertions

        trace = self.end()
        found = log_assertions.not_delivered(trace, topic)
        return _check(trace, "assert_delivered", found, folder or self.folder)

    def assert_processed_once(
        self,
        source: str,
        sink: str,
        *,
        group: str = "",
        key: "Callable[[KafkaRecord], bytes | None] | None" = None,
        folder: Path | None = None,
    ) -> str:
        """For each record of source below the offset that the group has committed there is exactly one record
        with its key in sink, and sink has none without one. Of transactions, those count that were committed.

        Parameters:
          group: the consumer group; empty: the only one that there is.
          key: computes the key in sink from a record of source; None: it keeps its own.
          folder: as of `assert_ok`.
        Returns: what was exercised.
        Raises: RunFailedError; PlanError if the group is not clear.
        """
        from fencepost.kafka.assertions import log_assertions

        trace = self.end()
        committed = self.committed(group or self._only_group())
        inputs, results = (self.records(topic, isolation="read_committed") for topic in (source, sink))
        found = log_assertions.not_processed_once(
            trace, inputs, results, committed, key or log_assertions.key_of
        )
        return _check(trace, "assert_processed_once", found, folder or self.folder)

    def assert_output(
        self,
        source: str | Sequence[str],
        sink: str,
        rule: "Rule",
        *,
        how: str = "exactly",
        order: str | None = None,
        group: str = "",
        folder: Path | None = None,
    ) -> str:
        """The records of sink are those that a rule makes of the records of source. Of transactions, those
        count that were committed.

        Parameters:
          source: one topic or several.
          sink: the topic of the results.
          rule: a function from a list of `KafkaRecord` to the results, each a pair (key, value) of bytes,
            text or None. It gets the records of each partition in their order, partition after partition, and
            must not depend on anything else.
          how: "exactly": each result as often as the rule says; "at_least": none is missing, and it may come
            again; "at_most": none comes too often, and it may be missing. None allows a result of which the
            rule says nothing.
          order: "key": what comes of one partition of source is, in each partition of sink, in the rule's
            order for each key, repetitions not counted. None: in any.
          group: only of source records below the offset that this consumer group has committed a result must
            be there; empty: of all.
          folder: as of `assert_ok`.
        Returns: what was exercised.
        Raises: RunFailedError; PlanError for another `how` or `order`, a rule that returns no pairs, or an
          order of a rule that mixes partitions.
        """
        from fencepost.kafka.assertions.rules import Output, not_as_the_rule_says

        output = Output(rule=rule, how=how, order=order)
        trace = self.end()
        topics = [source] if isinstance(source, str) else list(source)
        inputs = [one for topic in topics for one in self.records(topic, isolation="read_committed")]
        due = inputs
        if group:
            committed = self.committed(group)
            due = [one for one in inputs if one.offset < committed.get((one.topic, one.partition), 0)]
        results = self.records(sink, isolation="read_committed")
        found = not_as_the_rule_says(trace, output, inputs, due, results)
        return _check(trace, "assert_output", found, folder or self.folder, output.promise(topics, sink))

    def assert_that(
        self, description: str, function: "Callable[..., object]", *topics: str, folder: Path | None = None
    ) -> str:
        """Something of one's own is true of the records of these topics. Of transactions, those count that
        were committed.

        Parameters:
          description: what is true, as one clause. It is the title of a failure.
          function: gets a list of `KafkaRecord` for each topic, in the order in which they are named. It
            returns True or nothing if it is true; otherwise False, or what contradicts it: records,
            sentences, or tuples of a sentence and the records that it is about. It may also raise
            AssertionError with a sentence.
          topics: at least one.
          folder: as of `assert_ok`.
        Returns: what was exercised.
        Raises: RunFailedError; PlanError if the function returns something else, or no topic is named.
        """
        from fencepost.kafka.assertions.rules import contradictions

        trace = self.end()
        records = [self.records(topic, isolation="read_committed") for topic in topics]
        found = contradictions(trace, description, function, records)
        return _check(trace, ONES_OWN, found, folder or self.folder, description)

    def _only_group(self) -> str:
        groups = self.groups()
        if len(groups) != 1:
            raise PlanError(
                expected="one consumer group",
                seen=", ".join(groups) or "none",
                where="assert_processed_once",
                hint="name it: group=...",
            )
        return groups[0]

    def _records(self, topic: str) -> "list[KafkaRecord]":
        """Of one topic, or of all that clients wrote to."""
        topics = {row.topic for row in self.end().operations if row.topic and row.function == "append"}
        return [record for name in ([topic] if topic else sorted(topics)) for record in self.records(name)]


def _check(
    trace: Trace, name: str, found: "Iterable[Problem]", folder: Path | None, promise: str = ""
) -> str:
    """As problems.check. promise: "": as always of this name."""
    from fencepost.kafka.assertions.log_assertions import PROMISES
    from fencepost.kafka.assertions.problems import check

    return check(trace, name, promise or PROMISES[name], found, folder)
