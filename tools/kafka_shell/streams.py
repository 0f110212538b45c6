"""A Kafka Streams word count against our brokers: the counts have to be those of the words that were written.

    python -m tools.clients_java "Kafka Streams 4.3.1"

Owns the run of WordCount.java. A leader crashes in the middle (at least once: a count may be written again,
and must end where the words do).
"""

import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

import fencepost.kafka
from fencepost.torture.truth import read_log

from .jars import JVM, class_path

SOURCE = Path(__file__).with_name("WordCount.java")
INPUT, OUTPUT, PARTITIONS = "lines", "counts", 3
WORDS = ("leader", "follower", "epoch", "offset", "controller", "replica", "segment")
LINES = 2_000
START_S = 60.0
SOON_S = 60.0
LOOK_S = 0.5


class WrongCountError(Exception):
    """The counts are not those of the words."""


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


def wait_for_counts(bootstrap: str) -> dict[str, int]:
    """Wait until the output has the right counts. Raises WrongCountError."""
    deadline = time.monotonic() + SOON_S
    while (found := counted(bootstrap)) != expected():
        if time.monotonic() > deadline:
            raise WrongCountError(f"expected {expected()}, saw {found} after {SOON_S:.0f} s")
        time.sleep(LOOK_S)
    return found


def word_count(version: str, *, crash: bool) -> dict[str, int]:
    """Run it, and answer the counts. crash: a leader of the input dies in the middle. Raises
    WrongCountError."""
    from confluent_kafka import Producer

    jars = class_path(version)
    with (
        tempfile.TemporaryDirectory(prefix="fencepost-streams-") as folder,
        fencepost.kafka.cluster(process=True) as kafka,
    ):
        subprocess.run(
            ["javac", "-nowarn", "-d", folder, "-cp", jars, str(SOURCE)], check=True, timeout=START_S
        )
        for topic in (INPUT, OUTPUT):
            kafka.create_topic(topic, partitions=PARTITIONS)
        command = ["java", *JVM, "-cp", f"{folder}:{jars}", "WordCount"]
        with (Path(folder) / "streams.log").open("wb") as log:
            process = subprocess.Popen(
                [*command, kafka.bootstrap_servers, INPUT, OUTPUT, str(Path(folder) / "state")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        try:
            assert process.stdin and process.stdout
            said = process.stdout.readline().decode().strip()
            if said != "running":
                words = (Path(folder) / "streams.log").read_text(errors="replace")[-600:]
                raise WrongCountError(f"expected a word count that runs, saw {said!r}: {words}")
            producer = Producer(
                {"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True, "log_level": 0}
            )
            for number, line in enumerate(lines()):
                producer.produce(INPUT, line.encode())
                if number == LINES // 2:
                    producer.flush(SOON_S)
                    if crash:
                        kafka.crash(kafka.leader(INPUT), for_ms=1_500)
            if producer.flush(SOON_S):
                raise WrongCountError("the producer did not write all lines")
            kafka.wait_until_healthy()
            found = wait_for_counts(kafka.bootstrap_servers)
            process.stdin.close()
            if process.wait(START_S):
                raise WrongCountError(f"the word count ended with {process.returncode}")
            return found
        finally:
            process.kill()
            process.wait()
