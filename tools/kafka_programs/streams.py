"""A Kafka Streams word count: the counts have to be those of the words that were written.

Owns the run of WordCount.java, and the words.
"""

import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from fencepost.torture.truth import read_log
from tools.kafka_programs import ProgramError
from tools.kafka_programs.jars import JVM, class_path

SOURCE = Path(__file__).with_name("WordCount.java")
INPUT, OUTPUT, PARTITIONS = "lines", "counts", 3
WORDS = ("leader", "follower", "epoch", "offset", "controller", "replica", "segment")
LINES = 2_000
START_S = SOON_S = 240.0
LOOK_S = 0.5


def lines() -> list[str]:
    """What is counted: a fixed text in which each word has a count of its own."""
    return [" ".join(WORDS[: number % len(WORDS) + 1]) for number in range(LINES)]


def expected() -> dict[str, int]:
    """The right counts."""
    return dict(Counter(word for line in lines() for word in line.split()))


def counted(bootstrap: str) -> dict[str, int]:
    """The last count of each word in the output."""
    found: dict[str, int] = {}
    for entries in read_log(bootstrap, OUTPUT).values():
        found |= {(entry.key or b"").decode(): int(entry.value or b"-1") for entry in entries}
    return found


def wait_for_counts(bootstrap: str) -> None:
    """Wait until the output has the right counts. Raises ProgramError."""
    deadline = time.monotonic() + SOON_S
    while (found := counted(bootstrap)) != expected():
        if time.monotonic() > deadline:
            raise ProgramError(f"expected {expected()}, saw {found} after {SOON_S:.0f} s")
        time.sleep(LOOK_S)


def word_count(
    version: str,
    bootstrap: str,
    create: Callable[[str, int], None],
    *,
    guarantee: str = "at_least_once",
    replicas: int = 1,
    middle: Callable[[], None] = lambda: None,
) -> None:
    """Count words. Raises ProgramError.

    Args:
        version: of Kafka Streams.
        bootstrap: of the brokers.
        create: makes a topic of so many partitions.
        guarantee: `processing.guarantee`.
        replicas: of the topics that Streams makes.
        middle: called after half of the lines.
    """
    from confluent_kafka import Producer

    for topic in (INPUT, OUTPUT):
        create(topic, PARTITIONS)
    with tempfile.TemporaryDirectory(prefix="fencepost-streams-") as folder:
        jars, log = class_path(version), Path(folder) / "streams.log"
        subprocess.run(
            ["javac", "-nowarn", "-d", folder, "-cp", jars, str(SOURCE)], check=True, timeout=START_S
        )
        asked = (bootstrap, INPUT, OUTPUT, f"{folder}/state", str(replicas), guarantee)
        command = ["java", *JVM, "-cp", f"{folder}:{jars}", "WordCount", *asked]
        with log.open("wb") as words:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=words)
        try:
            assert process.stdin and process.stdout
            if process.stdout.readline().decode().strip() != "running":
                raise ProgramError(f"the word count does not run: {log.read_text(errors='replace')[-300:]}")
            producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0})
            for number, line in enumerate(lines()):
                producer.produce(INPUT, line.encode())
                if number == LINES // 2:
                    producer.flush(SOON_S)
                    middle()
            if producer.flush(SOON_S):
                raise ProgramError("the producer did not write all lines")
            wait_for_counts(bootstrap)
            process.stdin.close()
            if process.wait(START_S):
                raise ProgramError(f"the word count ended with {process.returncode}")
        finally:
            process.kill()
            process.wait()
