"""A late EndTxn and the producer's next transaction (KAFKA-17754), on our own brokers."""

import fencepost.kafka
from fencepost.checkers.judges import judge
from fencepost.traces.operations import Function, Outcome
from fencepost.traces.plan import TransactionOptions
from fencepost.traces.trace import Trace
from tests.kafka.transaction_session import Session, history


def test_in_the_first_version_a_late_end_commits_the_next_transaction():
    """Rule (KAFKA-17754): as Apache Kafka 3.9 does. EndTxn names id and epoch, which both transactions have;
    the judges convict by the record that a reader was shown although its producer aborted."""
    options = TransactionOptions(state_topic_partitions=1, version=1)
    with fencepost.kafka.cluster(brokers=1, transactions=options) as kafka:
        session = Session(int(kafka.bootstrap_servers.rpartition(":")[2]), False)
        try:
            rows = history(session, 1)
        finally:
            session.close()
    said = [line for line in session.said if "EndTxn" in line]
    assert said == [
        "EndTxn(commit=True): none",
        "the late EndTxn: none",
        "EndTxn(commit=False): invalid_txn_state",
    ]
    aborted = [row for row in rows if row.function is Function.TXN and row.outcome is Outcome.FAIL]
    assert len(aborted) == 1
    trace = Trace(trace_id=0, plan="", seed=0, software_version="", operations=rows)
    found = [finding for verdict in judge(trace) for finding in verdict.findings]
    assert [finding.anomaly for finding in found] == ["failed_append_visible"]
    calm = Trace(trace_id=0, plan="", seed=0, software_version="", operations=rows[:2])
    assert not [finding for verdict in judge(calm) for finding in verdict.findings]


def test_in_the_second_version_it_is_fenced():
    """Rule (KIP-890): as Apache Kafka 4 does, over Kafka's protocol: the leader adds the partition, EndTxn
    gives the next epoch, and whoever comes late has another one."""
    options = TransactionOptions(state_topic_partitions=1, version=2)
    with fencepost.kafka.cluster(brokers=1, transactions=options) as kafka:
        session = Session(int(kafka.bootstrap_servers.rpartition(":")[2]), True)
        try:
            rows = history(session, 2)
        finally:
            session.close()
    said = [line for line in session.said if "EndTxn" in line]
    assert said == 2 * [
        "EndTxn(commit=True): none",
        "the late EndTxn: producer_fenced",
        "EndTxn(commit=False): none",
    ]
    epochs = [row.producer_epoch for row in rows if row.function is Function.TXN]
    assert epochs == [0, 1, 2, 3]
    trace = Trace(trace_id=0, plan="", seed=0, software_version="", operations=rows)
    assert not [finding for verdict in judge(trace) for finding in verdict.findings]
