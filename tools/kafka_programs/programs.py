"""Programs of Apache Kafka, and transactions of librdkafka, each a function of a bootstrap address.

Owns their command lines. Must not know whose brokers they are run against. One that fails raises ProgramError
with its last words.
"""

import subprocess
from collections.abc import Callable

from tools.kafka_programs import ProgramError
from tools.kafka_programs.jars import JVM, class_path

RECORDS = 5_000
TRANSACTIONS = 30
BOUND_S = 240
CONSOLE = {
    "3.9.2": ("kafka.tools.ConsoleProducer", "org.apache.kafka.tools.consumer.ConsoleConsumer"),
    "4.3.1": ("org.apache.kafka.tools.ConsoleProducer", "org.apache.kafka.tools.consumer.ConsoleConsumer"),
}
"""By version; 4.0 moved the producer."""
PERFORMANCE = ("org.apache.kafka.tools.ProducerPerformance", "org.apache.kafka.tools.ConsumerPerformance")
Create = Callable[[str, int], None]
"""Makes a topic of so many partitions."""


def _java(version: str, *arguments: str, given: str = "") -> str:
    command = ["java", *JVM, "-cp", class_path(version), *arguments]
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=BOUND_S, check=False)
    if done.returncode:
        raise ProgramError(
            f"{arguments[0]} ended with {done.returncode}: {(done.stderr or done.stdout)[-300:]}"
        )
    return done.stdout


def console(version: str, bootstrap: str, create: Create) -> None:
    """kafka-console-producer writes keyed lines, kafka-console-consumer reads them in a group. Raises
    ProgramError."""
    create("console", 3)
    producer, consumer = CONSOLE[version]
    lines = "".join(f"key {n % 50}:line {n}\n" for n in range(RECORDS))
    keyed = ("--property", "parse.key=true", "--property", "key.separator=:")
    where = ("--bootstrap-server", bootstrap, "--topic", "console")
    _java(version, producer, *where, *keyed, given=lines)
    bounds = (
        "--from-beginning",
        "--group",
        "console",
        "--max-messages",
        str(RECORDS),
        "--timeout-ms",
        "60000",
    )
    read = _java(version, consumer, *where, *bounds)
    if sorted(read.split("\n")[:-1]) != sorted(f"line {n}" for n in range(RECORDS)):
        raise ProgramError(f"expected {RECORDS} lines, saw {read.count(chr(10))}")


def performance(version: str, bootstrap: str, create: Create) -> None:
    """kafka-producer-perf-test with and without transactions, kafka-consumer-perf-test reads. Raises
    ProgramError."""
    create("performance", 3)
    producer, consumer = PERFORMANCE
    size = (
        "--topic",
        "performance",
        "--num-records",
        str(RECORDS),
        "--record-size",
        "100",
        "--throughput",
        "-1",
    )
    for more in ((), ("--transactional-id", "performance", "--transaction-duration-ms", "100")):
        _java(
            version, producer, *size, "--producer-props", f"bootstrap.servers={bootstrap}", "acks=all", *more
        )
    asked = (
        "--topic",
        "performance",
        "--messages",
        str(2 * RECORDS),
        "--timeout",
        "60000",
        "--group",
        "perf",
    )
    _java(version, consumer, "--bootstrap-server", bootstrap, *asked)


def librdkafka_transactions(bootstrap: str, create: Create) -> None:
    """confluent-kafka reads, writes and commits offsets in transactions, every third aborted. Raises
    ProgramError."""
    import confluent_kafka as ck

    for topic in ("from", "to"):
        create(topic, 2)
    common = {"bootstrap.servers": bootstrap, "log_level": 0}
    first = ck.Producer(common)
    for number in range(TRANSACTIONS * 10):
        first.produce("from", b"%d" % number, b"k%d" % (number % 9))
    first.flush(BOUND_S)
    reads = {"group.id": "copy", "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = ck.Consumer(common | reads)
    consumer.subscribe(["from"])
    producer = ck.Producer(common | {"transactional.id": "copy"})
    producer.init_transactions(BOUND_S)
    for number in range(TRANSACTIONS):
        producer.begin_transaction()
        for message in consumer.consume(10, 30):
            if message.error():
                raise ProgramError(str(message.error()))
            producer.produce("to", message.value(), message.key())
        places = consumer.position(consumer.assignment())
        producer.send_offsets_to_transaction(
            [one for one in places if one.offset >= 0], consumer.consumer_group_metadata(), BOUND_S
        )
        if number % 3:
            producer.commit_transaction(BOUND_S)
        else:
            producer.abort_transaction(BOUND_S)
    consumer.close()
