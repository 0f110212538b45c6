"""The kafka check: do consumers, producers and transactions use the logs as Kafka promises?
(docs/reference/anomalies.md)

`judge_trace` checks one trace, `judge_table` all traces of an `operations` table. `measure_trace` counts what
is not a violation.
"""

from fencepost.checkers.kafka.kafka_judge import judge_operations, judge_table, judge_trace, judge_traces
from fencepost.checkers.kafka.lags import Lags
from fencepost.checkers.kafka.measurements import Measurements, Unseen, measure_columns, measure_trace
from fencepost.checkers.kafka.relations import KafkaColumns, kafka_columns_of_table, kafka_columns_of_traces

__all__ = [
    "KafkaColumns",
    "Lags",
    "Measurements",
    "Unseen",
    "judge_operations",
    "judge_table",
    "judge_trace",
    "judge_traces",
    "kafka_columns_of_table",
    "kafka_columns_of_traces",
    "measure_columns",
    "measure_trace",
]
