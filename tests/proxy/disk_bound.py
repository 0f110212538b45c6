"""A record that reaches its bound on disk, in front of whatever cluster: what has to hold afterwards."""

import time

import confluent_kafka as ck
from proxy_lab import proxy_lab

from fencepost.proxy.server.record_files import TO_END_BYTES, Bounds
from fencepost.proxy.server.recording_proxy import WhenFull
from fencepost.traces.operations import Function, Outcome


def sent_until_it_stops(proxy, topic, count):
    """(offsets that the producer was given, by partition; how many records failed). It gives up once it is
    refused."""
    few = {"linger.ms": 0, "batch.num.messages": 10, "max.in.flight": 1}
    producer = ck.Producer({"bootstrap.servers": proxy.bootstrap, "log_level": 0, **few})
    given, failed = {0: set(), 1: set()}, []

    def heard(error, message):
        if error is None:
            given[message.partition()].add(message.offset())
        else:
            failed.append(error)

    for n in range(count):
        producer.produce(topic, b"%d" % n, partition=n % 2, on_delivery=heard)
        producer.poll(0)
    deadline = time.monotonic() + 600
    while len(producer) and not proxy.proxy.refuses() and time.monotonic() < deadline:
        producer.poll(0.05)
    if proxy.proxy.refuses():
        producer.purge()
    producer.flush(600)
    return given, len(failed)


def ends(bootstrap, topic):
    """Log end offsets of both partitions, asked around the proxy."""
    consumer = ck.Consumer({"bootstrap.servers": bootstrap, "group.id": "ends", "log_level": 0})
    found = [consumer.get_watermark_offsets(ck.TopicPartition(topic, n), timeout=60)[1] for n in (0, 1)]
    consumer.close()
    return found


def judged_at_the_bound(bootstrap, folder, topic, when_full, kept):
    """Send to a topic of two partitions until the record is full, and see what is on disk and in the log."""
    count, bound = 3_000, 60_000
    recording = {"bounds": Bounds(part_ns=10**8, disk_bytes=bound), "when_full": when_full, "kept": kept}
    with proxy_lab(bootstrap, folder, recording) as proxy:
        given, failed = sent_until_it_stops(proxy, topic, count)
        assert proxy.record.stopped
        in_the_log = ends(bootstrap, topic)
    known = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and path.name != "ports")
    assert bound - TO_END_BYTES - 2_000 < known <= bound
    assert not list(folder.rglob(".part*"))
    appends = [row for row in proxy.trace().operations if row.function is Function.APPEND]
    for partition in (0, 1):
        rows = [row for row in appends if row.partition == partition]
        ok_offsets = sorted(
            record.offset for row in rows if row.outcome is Outcome.OK for record in row.records
        )
        assert ok_offsets == list(range(len(ok_offsets))) != []
        unknown = sum(len(row.records) for row in rows if row.outcome is Outcome.UNKNOWN)
        if when_full is WhenFull.STOP_TRAFFIC:
            assert in_the_log[partition] <= len(ok_offsets) + unknown
            assert len(given[partition] - set(ok_offsets)) <= unknown
    if when_full is WhenFull.STOP_RECORDING:
        assert (failed, sum(map(len, given.values())), sum(in_the_log)) == (0, count, count)
    else:
        assert failed > 0
