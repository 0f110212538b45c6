"""Records that were sent without the proxy: no correct cluster is convicted because of them."""

import time
from itertools import pairwise

import confluent_kafka as ck
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from proxy_lab import proxy_lab
from wire_lab import wire_lab

import fencepost.kafka
from fencepost.checkers.judges import DEFAULT_CHECKS, judge
from fencepost.checkers.verdict import Decision
from fencepost.impl.log.batch.record_batch import Record, encode_batch
from fencepost.proxy.record.earlier import Spans
from fencepost.proxy.record.lines import Lines
from fencepost.proxy.record.reads import shown
from fencepost.proxy.record.recorder import Recorder
from fencepost.proxy.record.values import Values
from fencepost.traces.jsonlines import read_lines
from fencepost.traces.operations import Function, Outcome
from fencepost.traces.parts import BEFORE
from fencepost.traces.plan import TopicOptions, TransactionOptions

ISOLATIONS = ("read_committed", "read_uncommitted")
PATIENCE_S = 600
HEAD = ['{"type":"trace","trace_id":0,"plan":"","seed":0,"software_version":"x"}\n']
TOPICS = ("log-False", "log-True", "again", "equal", "mirror", "pieces", "bypass", "reorder")


@pytest.fixture(scope="module")
def address():
    topics = [TopicOptions(name=name, partitions=2) for name in TOPICS]
    with wire_lab(*topics, brokers=1) as made:
        yield f"127.0.0.1:{made.ports[1]}"


@pytest.fixture(scope="module")
def transactions():
    """The address of a cluster with transactions."""
    options = TransactionOptions(state_topic_partitions=2, abort_check_ms=200)
    with fencepost.kafka.cluster(transactions=options) as cluster:
        for topic in ISOLATIONS:
            cluster.create_topic(topic, partitions=1)
        yield cluster.bootstrap_servers


def send(bootstrap, topic, values, partitions=(0,), **settings):
    """Send each value to each of the partitions, one request each, and hear of all."""
    producer, heard = ck.Producer({"bootstrap.servers": bootstrap, "log_level": 0, **settings}), []
    for value in values:
        for partition in partitions:
            producer.produce(topic, value, partition=partition, on_delivery=lambda e, m: heard.append(e))
            producer.flush(PATIENCE_S)
    assert heard == [None] * len(heard) and heard


def read(bootstrap, topic, count, partition=0, start=0, isolation="read_committed"):
    """Read so many records of a partition; their offsets."""
    consumer = ck.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "g", "log_level": 0, "isolation.level": isolation}
        | {"enable.auto.commit": False}
    )
    consumer.assign([ck.TopicPartition(topic, partition, start)])
    got, deadline = [], time.monotonic() + PATIENCE_S
    while len(got) < count and time.monotonic() < deadline:
        got += [one.offset() for one in consumer.consume(500, 0.2) if one.error() is None]
    consumer.close()
    assert len(got) == count, got
    return got


def numbered(first, last, word=b"value"):
    return [b"%s %d" % (word, n) for n in range(first, last)]


def convicted(trace):
    return [
        (finding.anomaly, finding.seen)
        for profile in (None, "strong")
        for verdict in judge(trace if profile is None else claimed(trace, profile), DEFAULT_CHECKS)
        for finding in verdict.findings
    ]


def claimed(trace, profile):
    return evolve(trace, claims=evolve(trace.claims, check=profile))


def decided(trace):
    """No finding under any profile, and the log check says ok."""
    assert convicted(trace) == []
    assert [one.decision for one in judge(trace, ("log",))] == [Decision.OK]
    return True


def earlier(trace):
    """The records of appends that nobody saw, by partition: their offsets."""
    found = {}
    for row in trace.operations:
        if row.function is Function.APPEND and row.argument == BEFORE:
            found.setdefault(row.partition, []).extend(record.offset for record in row.records)
    return {partition: sorted(offsets) for partition, offsets in found.items()}


@pytest.mark.parametrize("idempotent", [False, True])
def test_a_log_with_earlier_records_is_no_reordering(address, tmp_path, idempotent):
    """Rule: what was in a log before the record began was sent before everything in the record, also where
    it is read after sends were acknowledged above it; in each partition."""
    topic, settings = f"log-{idempotent}", {"enable.idempotence": idempotent}
    send(address, topic, numbered(0, 5), (0, 1), **settings)
    with proxy_lab(address, tmp_path) as proxy:
        send(proxy.bootstrap, topic, numbered(5, 25), (0, 1), **settings)
        for partition in (0, 1):
            read(proxy.bootstrap, topic, 25, partition)
    trace = proxy.trace()
    assert decided(trace)
    assert earlier(trace) == {0: list(range(5)), 1: list(range(5))}
    assert trace.operations[0].argument == BEFORE


def test_after_a_restart_the_earlier_run_is_before_the_record(address, tmp_path):
    """Rule: a run of the proxy knows nothing of the run before it."""
    for number in range(2):
        with proxy_lab(address, tmp_path) as proxy:
            send(proxy.bootstrap, "again", numbered(10 * number, 10 * number + 10))
            read(proxy.bootstrap, "again", 10 * number + 10)
        assert decided(proxy.trace())
    assert earlier(proxy.trace()) == {0: list(range(10))}


def test_equal_records_before_and_after_are_two_records(address, tmp_path):
    """Rule: without idempotence equal records have equal ids. One at another offset than the one that was
    sent here is another record: neither a duplicate nor a phantom."""
    plain = {"enable.idempotence": False}
    send(address, "equal", [b"same"] * 5, **plain)
    with proxy_lab(address, tmp_path) as proxy:
        send(proxy.bootstrap, "equal", [b"same"], **plain)
        read(proxy.bootstrap, "equal", 6)
    assert convicted(proxy.trace()) == []
    assert earlier(proxy.trace()) == {0: list(range(5))}


def test_equal_records_of_another_partition_are_others(address, tmp_path):
    """Rule: a record that was sent here to one partition says nothing of an equal one in another."""
    plain = {"enable.idempotence": False}
    send(address, "mirror", numbered(0, 5), (1,), **plain)
    with proxy_lab(address, tmp_path) as proxy:
        read(proxy.bootstrap, "mirror", 5, 1)
        send(proxy.bootstrap, "mirror", numbered(0, 5), (0,), **plain)
        read(proxy.bootstrap, "mirror", 5, 0)
    assert convicted(proxy.trace()) == []
    assert earlier(proxy.trace()) == {1: list(range(5))}


def test_readers_at_several_places_record_each_record_once(address, tmp_path):
    """Rule: readers that go back, skip and overlap make one row of each earlier record."""
    send(address, "pieces", numbered(0, 30))
    with proxy_lab(address, tmp_path) as proxy:
        for start in (20, 5, 0, 12, 0):
            read(proxy.bootstrap, "pieces", 30 - start, start=start)
    assert earlier(proxy.trace()) == {0: list(range(30))}
    assert proxy.trace().unique_values
    assert convicted(proxy.trace()) == []


def transactional(bootstrap, topic, transactional_id, *, end=True, commit=True):
    producer = ck.Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": transactional_id, "log_level": 0}
    )
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce(topic, f"of {transactional_id}".encode(), partition=0)
    producer.flush(PATIENCE_S)
    if end and commit:
        producer.commit_transaction(PATIENCE_S)
    elif end:
        producer.abort_transaction(PATIENCE_S)
    return producer


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_transactions_from_before_are_no_finding(transactions, tmp_path, isolation):
    """Rule: committed, aborted and open transactions of before convict no one, also one that ends without
    the proxy while the record runs."""
    topic, address = isolation, transactions
    for name in ("a", "b", "c"):
        transactional(address, topic, f"{topic}-{name}", commit=name != "b")
    left_open = transactional(address, topic, f"{topic}-d", end=False)
    with proxy_lab(address, tmp_path) as proxy:
        transactional(proxy.bootstrap, topic, f"{topic}-e")
        send(proxy.bootstrap, topic, numbered(0, 5))
        left_open.commit_transaction(PATIENCE_S)
        visible = 9 if isolation == "read_committed" else 10
        read(proxy.bootstrap, topic, visible, isolation=isolation)
        read(proxy.bootstrap, topic, visible, isolation=isolation)
        read(proxy.bootstrap, topic, 10, isolation="read_uncommitted")
    assert convicted(proxy.trace()) == []
    assert proxy.trace().unique_values


def test_records_that_bypass_the_proxy_have_no_known_time(address, tmp_path):
    """Rule: with --others-write, a record of another client may have been sent at any time of the record: it
    is in no order with what was acknowledged here."""
    with proxy_lab(address, tmp_path, {"others": frozenset({"bypass"})}) as proxy:
        for n in range(6):
            send(proxy.bootstrap if n % 2 else address, "bypass", numbered(n, n + 1))
        send(proxy.bootstrap, "bypass", numbered(6, 10))
        read(proxy.bootstrap, "bypass", 10)
    assert convicted(proxy.trace()) == []
    assert earlier(proxy.trace()) == {0: [0, 2, 4]}


def test_a_real_reordering_above_earlier_records_is_found(address, tmp_path):
    """Rule: what is known of earlier records excuses nothing else: an append below one that was acknowledged
    before it began is convicted."""
    send(address, "reorder", numbered(0, 5))
    with proxy_lab(address, tmp_path) as proxy:
        send(proxy.bootstrap, "reorder", numbered(5, 10))
        read(proxy.bootstrap, "reorder", 10)
    trace = proxy.trace()
    assert decided(trace)
    acknowledged = [row for row in trace.operations if row.outcome is Outcome.OK and row.acks is not None]
    first, last = acknowledged[0], acknowledged[-1]
    moved = {
        record.value: other.offset for row, other in ((first, last), (last, first)) for record in row.records
    }

    def swapped(row):
        if not row.records or row.argument == BEFORE:
            return row
        records = sorted(
            (evolve(one, offset=moved.get(one.value, one.offset)) for one in row.records),
            key=lambda one: one.offset,
        )
        changed = {"offset": records[0].offset} if row.function is Function.APPEND else {}
        return evolve(row, records=tuple(records), **changed)

    bad = evolve(trace, operations=tuple(map(swapped, trace.operations)))
    assert "append_inversion" in {anomaly for anomaly, _ in convicted(bad)}


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 12)), max_size=30))
def test_spans_are_a_set_of_offsets(ranges):
    """Rule: what is new of a range is what no range before it had; nothing is kept twice."""
    spans, known = Spans(), set()
    for start, size in ranges:
        new = [n for low, high in spans.add(start, start + size) for n in range(low, high)]
        assert new == sorted(set(range(start, start + size)) - known)
        known |= set(range(start, start + size))
        held = list(zip(spans.starts, spans.ends, strict=True))
        assert {n for low, high in held for n in range(low, high)} == known
        assert all(before[1] < after[0] for before, after in pairwise(held))


@pytest.mark.parametrize("position", [0, 1])
def test_an_earlier_record_that_compaction_took_away_is_no_loss(position):
    """Rule: in a compacted topic the rows of earlier records have their keys, so that an older record of a
    key may be gone."""
    lines, values = [], Values(key=b"k" * 32)
    recorder = Recorder(lines=Lines(lines.append), values=values, compacted=frozenset({"t"}), began=5)
    recorder.earlier.ends_at("t", 0, 4)
    records = [Record(n, 5, key, b"%d" % n) for n, key in enumerate((b"a", b"b", b"b", b"a"))]
    batch = encode_batch(records, base_offset=0, leader_epoch=0)
    for run in shown(batch, position, values, None, keyed=True).runs:
        recorder.earlier.shown("t", 0, run, may_abort=False)
    (trace,) = read_lines(HEAD + lines, where="lines")
    rows = [(row.key, [record.offset for record in row.records]) for row in trace.operations]
    a, b = values.key_text(b"a"), values.key_text(b"b")
    assert rows == [(a, [0]), (b, [1, 2]), (a, [3])][position:]
