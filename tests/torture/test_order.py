"""Every driver hands the commands of one client to its library in the order of their lines, while none waits
for an answer (docs/reference/drivers.md); a driver whose tools are missing is skipped by name."""

import time
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


@pytest.fixture(params=NAMES)
def running(request):
    """A driver that runs, and a cluster with the topic `t`."""
    built = built_or_skipped(request.param)
    with fencepost.kafka.cluster(transactions=COORDINATORS) as kafka, Driver.start(built) as driver:
        kafka.create_topic("t", partitions=1)
        yield driver, kafka


def append(driver, value):
    return driver.send("append", "p", topic="t", partition=0, key=None, value=encoded(value), headers=[])


def opened(driver, kafka, client, role, **config):
    given = {"bootstrap": kafka.bootstrap_servers, **config}
    return driver.send("open", client, role=role, config=given)


def in_order(commands):
    """All answered and done, and the library was called in the order of the lines."""
    assert [one.error for one in commands if not one.ok] == []
    calls = [one.answer["invoked_ns"] for one in commands]
    assert calls == sorted(calls)


def test_what_is_sent_after_begin_is_in_the_transaction(running):
    """An append on a line after `begin` is in that transaction, and one after its end is in the next one."""
    driver, kafka = running
    if not driver.ready.transactions or "begin" not in driver.ready.commands:
        pytest.skip(f"{driver.name}: no transactions of this shape")
    lines = [opened(driver, kafka, "p", "producer", idempotence=True, transactional_id="order", acks=-1)]
    ends = ["abort_transaction" if n % 3 == 2 else "commit_transaction" for n in range(TRANSACTIONS)]
    for number, end in enumerate(ends):
        lines.append(driver.send("begin", "p"))
        sent = [append(driver, b"%d %d" % (number, one)) for one in range(APPENDS)]
        assert driver.wait(sent)  # some libraries leave this to the application
        lines += [*sent, driver.send(end, "p")]
    assert driver.wait(lines)
    in_order(lines)
    outcomes = {entry.value: entry.outcome for entry in read_log(kafka.bootstrap_servers, "t")[0]}
    assert outcomes == {
        b"%d %d" % (number, one): ABORTED if end.startswith("abort") else COMMITTED
        for number, end in enumerate(ends)
        for one in range(APPENDS)
    }


def test_a_producer_that_opens_ends_what_its_transactional_id_has_under_way(running):
    """Whoever reads what is committed after that reads what the transaction before committed, and no more."""
    driver, kafka = running
    if (
        not driver.ready.transactions
        or "begin" not in driver.ready.commands
        or "session" in driver.ready.roles
    ):
        pytest.skip(f"{driver.name}: no transactions of this shape")
    config = {"idempotence": True, "transactional_id": "order", "acks": -1}
    sent = [opened(driver, kafka, "p", "producer", **config), driver.send("begin", "p"), append(driver, b"1")]
    assert driver.wait(sent) and driver.wait([opened(driver, kafka, "q", "producer", **config)])
    end = driver.send("commit_transaction", "p")
    assert driver.wait([end]) and not end.ok
    assert [one.outcome for one in read_log(kafka.bootstrap_servers, "t")[0]] == [ABORTED]


def test_nothing_is_sent_outside_of_a_transaction(running):
    """A producer of transactions that has begun none sends nothing, as Java's: its append fails."""
    driver, kafka = running
    if not driver.ready.transactions or "begin" not in driver.ready.commands:
        pytest.skip(f"{driver.name}: no transactions of this shape")
    lines = [opened(driver, kafka, "p", "producer", idempotence=True, transactional_id="order", acks=-1)]
    lines += [append(driver, b"outside")]
    assert driver.wait(lines)
    assert [one.ok for one in lines] == [True, False]
    assert read_log(kafka.bootstrap_servers, "t")[0] == ()


def test_appends_without_a_transaction_are_sent_in_order(running):
    """Not one waits for the answer to the one before; a library that promises an order keeps it."""
    driver, kafka = running
    config = {"idempotence": True, "acks": -1} if driver.ready.idempotence else {"acks": -1}
    lines = [opened(driver, kafka, "p", "producer", **config)]
    lines += [append(driver, b"%d" % one) for one in range(RECORDS)]
    assert driver.wait(lines)
    in_order(lines)
    values = [entry.value for entry in read_log(kafka.bootstrap_servers, "t")[0]]
    wanted = [b"%d" % one for one in range(RECORDS)]
    promised = libraries()[driver.name.partition("@")[0]].promises.get("reordered") != ""
    assert (values if promised else sorted(values)) == (wanted if promised else sorted(wanted))


def test_polls_and_a_seek_keep_the_order_of_their_lines(running):
    """The records of one poll come before those of the next, and after a seek they begin where it said."""
    driver, kafka = running
    sent = [opened(driver, kafka, "p", "producer", acks=-1)]
    for one in range(RECORDS):
        sent.append(append(driver, b"%d" % one))
        assert driver.wait(sent)
    config = {"offset_reset": "earliest", "auto_commit": False}
    if "assign" in driver.ready.commands:
        lines = [opened(driver, kafka, "c", "consumer", **config)]
        lines.append(driver.send("assign", "c", partitions=[{"topic": "t", "partition": 0, "offset": -2}]))
    else:
        lines = [opened(driver, kafka, "c", "consumer", group="g", **config)]
        lines.append(driver.send("subscribe", "c", topics=["t"]))
    read = until_records(driver)
    assert read == list(range(len(read)))
    if "seek" in driver.ready.commands:
        lines.append(poll(driver))
        lines.append(driver.send("seek", "c", topic="t", partition=0, offset=1))
        again = until_records(driver)
        before = offsets_of(lines[-2])
        assert before == list(range(len(read), len(read) + len(before)))
        assert again == list(range(1, len(again) + 1))
    assert driver.wait(lines)
    in_order(lines)


def test_an_error_of_the_group_delivers_no_record_twice(running):
    """A record that waits for a poll while a heartbeat fails is handed out once; after a rebalance all begins
    anew, for nothing is committed."""
    driver, kafka = running
    lines = [opened(driver, kafka, "p", "producer", acks=-1)]
    lines += [append(driver, b"%d" % one) for one in range(RECORDS)]
    config = {"offset_reset": "earliest", "auto_commit": False, "heartbeat_interval_ms": 100}
    lines.append(opened(driver, kafka, "c", "consumer", group="g", **config))
    lines.append(driver.send("subscribe", "c", topics=["t"]))
    assert driver.wait(lines)
    read = until_records(driver)
    kafka.request_fault("cut before Heartbeat, once")
    end = time.monotonic() + UNTIL_S
    while any(row["hits"] == 0 for row in kafka.request_faults()):
        assert time.monotonic() < end, f"{driver.name}: no heartbeat within {UNTIL_S} s"
        time.sleep(0.05)
    while read[-1] < RECORDS - 1:
        read += until_records(driver)
    assert [pair for pair in pairwise(read) if pair[1] not in (pair[0] + 1, 0)] == []


def poll(driver):
    return driver.send("poll", "c", timeout_ms=300, max_records=POLLED)


def offsets_of(poll):
    return [row["offset"] for row in poll.answer.get("records") or ()]


def until_records(driver):
    """Polls, three on lines at once, until one has a record: all offsets, in the order of the lines."""
    end = time.monotonic() + UNTIL_S
    while time.monotonic() < end:
        polls = [poll(driver) for _ in range(3)]
        assert driver.wait(polls)
        offsets = [offset for one in polls for offset in offsets_of(one)]
        if offsets:
            return offsets
    pytest.fail(f"{driver.name}: no record within {UNTIL_S} s")
