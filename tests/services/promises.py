"""What a service promises of its results, and where it has broken that.

Owns the promises. Must not know any service, nor how results were read: some are in a database, so that they
are compared with their rule here, and not by `assert_output`, whose comparison it is.
"""

from collections.abc import Sequence

from attrs import frozen

from fencepost.kafka.assertions.rules import Output, Result, not_as_the_rule_says
from fencepost.kafka.topic_records import KafkaRecord
from fencepost.traces.trace import Trace

NOTHING = Trace(trace_id=0, plan="", seed=0, software_version="0")
"""A run of which no operation is cited."""


@frozen(kw_only=True)
class Promise:
    """How results follow from what a rule says."""

    name: str
    # As of `assert_output`.
    how: str
    order: str | None = None

    def broken(self, expected: Sequence[Result], seen: Sequence[Result]) -> list[str]:
        """Sentences.

        Args:
            expected: by the rule.
            seen: in the order of each partition, or of the table.
        """
        results = [
            KafkaRecord(topic="results", partition=0, offset=place, key=key, value=value, value_id=place)
            for place, (key, value) in enumerate(seen)
        ]
        output = Output(rule=lambda _: expected, how=self.how, order=self.order)
        return [problem.says for problem in not_as_the_rule_says(NOTHING, output, [], [], results)]


AT_LEAST = Promise(name="at least once", how="at_least")
AT_MOST = Promise(name="at most once", how="at_most")
EXACTLY = Promise(name="exactly once", how="exactly")
IN_ORDER = Promise(name="at least once, in the order of each key", how="at_least", order="key")
