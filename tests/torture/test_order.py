"""Every driver hands the commands of one client to its library in the order of their lines, while none waits
for an answer (docs/reference/drivers.md); a driver whose tools are missing is skipped by name."""

import time
from contextlib import contextmanager
from itertools import pairwise

import pytest

import fencepost.kafka
from fencepost.torture.driver_process import Driver
from fencepost.torture.libraries import libraries
from fencepost.torture.protocol import encoded
from fencepost.torture.scenario_run import TRANSACTIONS as COORDINATORS
from fencepost.torture.truth import ABORTED, COMMITTED, read_log
from tests.torture.built_client import built_or_skipped

NAMES = sorted(libraries())
TRANSACTIONS, APPENDS, RECORDS, POLLED = 6, 3, 30, 3
UNTIL_S = 300
"""Longest wait for a first record: a crowded machine."""


@contextmanager
def driver_and_cluster(name):
    """A driver that runs, and a cluster."""
    built = built_or_skipped(name)
    with fencepost.kafka.cluster(transactions=COORDINATORS) as kafka, Driver.start(built) as driver:
        yield driver, kafka


@pytest.fixture(scope="module", params=NAMES)
def served(request):
    """Those of all tests of a library."""
    with driver_and_cluster(request.param) as both:
        yield both


class Running:
    """What is of one test only: a topic, whose name its group and transactions have, too, and clients."""

    def __init__(self, driver, kafka, topic):
        self.driver, self.kafka, self.topic = driver, kafka, topic
        kafka.create_topic(topic, partitions=1)

    def send(self, command, client, **fields):
        return self.driver.send(command, f"{client} {self.topic}", **fields)

    def append(self, value):
        value = encoded(value)
        return self.send("append", "p", topic=self.topic, partition=0, key=None, value=value, headers=[])

    def opened(self, client, role, **config):
        given = {"bootstrap": self.kafka.bootstrap_servers, **config}
        return self.send("open", client, role=role, config=given)

    def producer_of_transactions(self, client="p"):
        return self.opened(client, "producer", idempotence=True, transactional_id=self.topic, acks=-1)

    def consumer(self, **config):
        return self.opened("c", "consumer", offset_reset="earliest", auto_commit=False, **config)

    def log(self):
        return read_log(self.kafka.bootstrap_servers, self.topic)[0]

    def poll(self):
        return self.send("poll", "c", timeout_ms=300, max_records=POLLED)

    def until_records(self):
        """Polls, three on lines at once, until one has a record: all offsets, in the order of the lines."""
        end = time.monotonic() + UNTIL_S
        while time.monotonic() < end:
            polls = [self.poll() for _ in range(3)]
            assert self.driver.wait(polls)
            offsets = [offset for one in polls for offset in offsets_of(one)]
            if offsets:
                return offsets
        pytest.fail(f"{self.driver.name}: no record within {UNTIL_S} s")


def offsets_of(poll):
    return [row["offset"] for row in poll.answer.get("records") or ()]


@pytest.fixture
def running(request, served):
    made = Running(*served, topic=request.function.__name__)
    yield made
    made.driver.wait([made.send("close", "c", timeout_ms=1_000)])  # or its heartbeats are another test's


def transactional(driver):
    """Skips where the library has no transactions of this shape."""
    if not driver.ready.transactions or "begin" not in driver.ready.commands:
        pytest.skip(f"{driver.name}: no transactions of this shape")


def in_order(commands):
    """All answered and done, and the library was called in the order of the lines."""
    assert [one.error for one in commands if not one.ok] == []
    calls = [one.answer["invoked_ns"] for one in commands]
    assert calls == sorted(calls)


def test_what_is_sent_after_begin_is_in_the_transaction(running):
    """An append on a line after `begin` is in that transaction, and one after its end is in the next one."""
    transactional(running.driver)
    lines = [running.producer_of_transactions()]
    ends = ["abort_transaction" if n % 3 == 2 else "commit_transaction" for n in range(TRANSACTIONS)]
    for number, end in enumerate(ends):
        lines.append(running.send("begin", "p"))
        sent = [running.append(b"%d %d" % (number, one)) for one in range(APPENDS)]
        assert running.driver.wait(sent)  # some libraries leave this to the application
        lines += [*sent, running.send(end, "p")]
    assert running.driver.wait(lines)
    in_order(lines)
    outcomes = {entry.value: entry.outcome for entry in running.log()}
    assert outcomes == {
        b"%d %d" % (number, one): ABORTED if end.startswith("abort") else COMMITTED
        for number, end in enumerate(ends)
        for one in range(APPENDS)
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_producer_that_opens_ends_what_its_transactional_id_has_under_way(name):
    """Whoever reads what is committed after that reads what the transaction before committed, and no more."""
    with driver_and_cluster(name) as (driver, kafka):
        transactional(driver)
        if "session" in driver.ready.roles:
            pytest.skip(f"{driver.name}: no transactions of this shape")
        running = Running(driver, kafka, "t")
        lines = [running.producer_of_transactions(), running.send("begin", "p"), running.append(b"1")]
        assert driver.wait(lines) and driver.wait([running.producer_of_transactions("q")])
        end = running.send("commit_transaction", "p")
        assert driver.wait([end]) and not end.ok
        assert [one.outcome for one in running.log()] == [ABORTED]


def test_nothing_is_sent_outside_of_a_transaction(running):
    """A producer of transactions that has begun none sends nothing, as Java's: its append fails, once."""
    transactional(running.driver)
    lines = [running.producer_of_transactions(), running.append(b"outside")]
    assert running.driver.wait(lines) and running.driver.wait([running.send("close", "p", timeout_ms=1_000)])
    assert [one.ok for one in lines] == [True, False]
    assert running.log() == ()


def test_appends_without_a_transaction_are_sent_in_order(running):
    """Not one waits for the answer to the one before; a library that promises an order keeps it."""
    driver = running.driver
    config = {"idempotence": True, "acks": -1} if driver.ready.idempotence else {"acks": -1}
    lines = [running.opened("p", "producer", **config)]
    lines += [running.append(b"%d" % one) for one in range(RECORDS)]
    assert driver.wait(lines)
    in_order(lines)
    values = [entry.value for entry in running.log()]
    wanted = [b"%d" % one for one in range(RECORDS)]
    promised = libraries()[driver.name.partition("@")[0]].promises.get("reordered") != ""
    assert (values if promised else sorted(values)) == (wanted if promised else sorted(wanted))


def test_polls_and_a_seek_keep_the_order_of_their_lines(running):
    """The records of one poll come before those of the next, and after a seek they begin where it said."""
    driver, topic = running.driver, running.topic
    sent = [running.opened("p", "producer", acks=-1)]
    for one in range(RECORDS):
        sent.append(running.append(b"%d" % one))
        assert driver.wait(sent)
    if "assign" in driver.ready.commands:
        lines = [running.consumer()]
        place = {"topic": topic, "partition": 0, "offset": -2}
        lines.append(running.send("assign", "c", partitions=[place]))
    else:
        lines = [running.consumer(group=topic), running.send("subscribe", "c", topics=[topic])]
    read = running.until_records()
    assert read == list(range(len(read)))
    if "seek" in driver.ready.commands:
        lines.append(running.poll())
        lines.append(running.send("seek", "c", topic=topic, partition=0, offset=1))
        again = running.until_records()
        before = offsets_of(lines[-2])
        assert before == list(range(len(read), len(read) + len(before)))
        assert again == list(range(1, len(again) + 1))
    assert driver.wait(lines)
    in_order(lines)


def test_an_error_of_the_group_delivers_no_record_twice(running):
    """A record that waits for a poll while a heartbeat fails is handed out once; after a rebalance all begins
    anew, for nothing is committed."""
    driver, kafka = running.driver, running.kafka
    lines = [running.opened("p", "producer", acks=-1)]
    lines += [running.append(b"%d" % one) for one in range(RECORDS)]
    lines.append(running.consumer(group=running.topic, heartbeat_interval_ms=100))
    lines.append(running.send("subscribe", "c", topics=[running.topic]))
    assert driver.wait(lines)
    read = running.until_records()
    kafka.request_fault("cut before Heartbeat, once")
    end = time.monotonic() + UNTIL_S
    while any(row["hits"] == 0 for row in kafka.request_faults()):
        assert time.monotonic() < end, f"{driver.name}: no heartbeat within {UNTIL_S} s"
        time.sleep(0.05)
    while read[-1] < RECORDS - 1:
        read += running.until_records()
    assert [pair for pair in pairwise(read) if pair[1] not in (pair[0] + 1, 0)] == []
