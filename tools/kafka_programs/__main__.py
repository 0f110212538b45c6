"""Apache Kafka's own programs against our brokers, each version in a cluster of its own.

    python -m tools.kafka_programs [WORD ...]

A case is a program and a version: kafka-console-producer and -consumer, the performance tests, and a word
count of Kafka Streams, also with a crash of a leader in the middle. Words choose cases by their names. A case
whose toolchain this machine lacks is skipped by name. Exit code 1 if one failed.
"""

import subprocess
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import rich_click as click

import fencepost.kafka
from fencepost.console.output import Output
from fencepost.kafka import KafkaCluster
from fencepost.traces.errors import ExitCode, FencepostError
from fencepost.traces.plan import TransactionOptions
from tools import program
from tools.kafka_programs import ProgramError, programs, streams
from tools.kafka_programs.jars import VERSIONS, missing
from tools.program import FAILED, SKIPPED, Done, run_cases

REPLICAS = 3
TRANSACTIONS = TransactionOptions(state_topic_partitions=4, version=2)


def plain(run: Callable[..., None], version: str, kafka: KafkaCluster, **more: Any) -> None:
    """A program that wants brokers, and topics."""

    def create(topic: str, partitions: int) -> None:
        kafka.create_topic(topic, partitions=partitions)

    run(version, kafka.bootstrap_servers, create, **more)


def crossed(version: str, kafka: KafkaCluster) -> None:
    """The word count; a leader of its input crashes in the middle (at least once: a count may be written
    again, and must end where the words do)."""
    middle = partial(_crash_leader, kafka)
    plain(streams.word_count, version, kafka, replicas=REPLICAS, middle=middle)


def _crash_leader(kafka: KafkaCluster) -> None:
    kafka.crash(kafka.leader(streams.INPUT), for_ms=1_500)


counting = partial(plain, streams.word_count, replicas=REPLICAS)
PROGRAMS: Mapping[str, Callable[[str, KafkaCluster], None]] = {
    "console tools": partial(plain, programs.console),
    "perf tools": partial(plain, programs.performance),
    "Streams word count": counting,
    "Streams word count, exactly once": partial(counting, guarantee="exactly_once_v2"),
    "Streams word count, a leader crashes": crossed,
}


def outcome_of(case: str, run: Callable[[str, KafkaCluster], None], version: str) -> Done:
    """What became of a case."""
    if why := missing():
        return Done(case=case, outcome=SKIPPED, why=why)
    try:
        with fencepost.kafka.cluster(process=True, transactions=TRANSACTIONS) as kafka:
            run(version, kafka)
    except (FencepostError, ProgramError, subprocess.SubprocessError) as error:
        return Done(case=case, outcome=FAILED, why=str(error))
    return Done(case=case)


@click.command("kafka_programs", help=__doc__)
@click.argument("words", nargs=-1)
def command(words: tuple[str, ...]) -> ExitCode:
    """Run the cases with one of these words in their names; all without one."""
    cases = {
        (case := f"{name}, {version}"): partial(outcome_of, case, run, version)
        for name, run in PROGRAMS.items()
        for version in VERSIONS
    }
    return run_cases(cases, words, Output())


if __name__ == "__main__":
    program.run(command, "kafka_programs")
