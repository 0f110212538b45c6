"""Java's own client against an embedded cluster, through its driver; skipped by name without Maven and a
JDK."""

import time

import fencepost.kafka
from fencepost.torture.driver_process import Driver
from fencepost.torture.protocol import encoded
from fencepost.torture.truth import read_log
from tests.torture.built_client import built_or_skipped

RECORDS = 300


def test_what_javas_idempotent_producer_acknowledged_is_in_the_log_once():
    """Each at the offset of its answer, in the order of the calls; the consumer hands all of it out."""
    built = built_or_skipped("kafka-clients")
    with fencepost.kafka.cluster() as kafka, Driver.start(built) as driver:
        kafka.create_topic("t", partitions=2)
        bootstrap = kafka.bootstrap_servers
        driver.call(
            "open",
            "p",
            role="producer",
            config={"bootstrap": bootstrap, "idempotence": True, "compression": "zstd"},
        )
        sent = [
            driver.send(
                "append", "p", topic="t", partition=n % 2, key=None, value=encoded(b"%d" % n), headers=[]
            )
            for n in range(RECORDS)
        ]
        assert driver.wait(sent)
        log = read_log(bootstrap, "t")
        for partition, entries in log.items():
            mine = [command for command in sent if command.fields["partition"] == partition]
            assert [command.answer["offset"] for command in mine] == [entry.offset for entry in entries]
            assert [command.fields["value"] for command in mine] == [
                encoded(entry.value) for entry in entries
            ]
            assert {entry.codec for entry in entries} == {"zstd"}
        driver.call("open", "c", role="consumer", config={"bootstrap": bootstrap, "offset_reset": "earliest"})
        driver.call(
            "assign", "c", partitions=[{"topic": "t", "partition": n, "offset": -2} for n in range(2)]
        )
        read: set[str] = set()
        end = time.monotonic() + 600
        while time.monotonic() < end:
            read |= {
                row["value"] for row in driver.call("poll", "c", timeout_ms=500, max_records=500)["records"]
            }
            if len(read) == RECORDS:
                break
        assert len(read) == RECORDS
