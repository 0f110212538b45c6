"""The comparison of shell tools sees what differs, and nothing else: each rule has failed on a planted
difference."""

import pytest

from tools.kafka_shell.compare import Answer, row_of
from tools.kafka_shell.normal import normal
from tools.kafka_shell.script import SCRIPT, TOOLS, Step, step

DESCRIBED = """Topic: t\tTopicId: yTVmC0XjQ9eYyQWn5bYq0A\tPartitionCount: 1\tReplicationFactor: 3\tConfigs: min.insync.replicas=1
\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 3,1,2\tElr: \tLastKnownElr: 
"""  # noqa: W291 - the tool prints it so
OURS = """Topic: t\tPartitionCount: 1\tReplicationFactor: 3\tConfigs: 
\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3\tElr: N/A\tLastKnownElr: N/A
"""  # noqa: W291
ERROR = "ERROR org.apache.kafka.common.errors.TopicExistsException: Topic 't' already exists.\n"


def verdict(
    theirs: str, ours: str, *, asked: Step | None = None, statuses=(0, 0), version: str = "4.3.1"
) -> str:
    """What the comparison says of two answers to one step."""
    plain = step("describe", "topics", "--describe")
    answers = [
        Answer(status=status, text=text) for status, text in zip(statuses, (theirs, ours), strict=True)
    ]
    return row_of(asked or plain, version, *answers).verdict


def test_what_differs_from_run_to_run_is_no_difference():
    """Ports, times, ids of groups and producers, and the order of a set."""
    theirs = "g 127.0.0.1:9092 (3)\nconsole-consumer-123\nproducerId: 7 CreateTime: 1700000000001\nIsr: 3,1"
    ours = "g 127.0.0.1:40001 (2)\nconsole-consumer-99\nproducerId: 1000 CreateTime: 1800000000001\nIsr: 1,3"
    assert verdict(theirs, ours) == "equal"


def test_topic_ids_and_eligible_replicas_are_departures_by_name():
    """The row is not equal, and says which departures made it so."""
    row = row_of(SCRIPT[0], "4.3.1", Answer(status=0, text=DESCRIBED), Answer(status=0, text=OURS))
    assert row.verdict == "departure"
    assert len(row.departures) == 3
    assert not row.difference


@pytest.mark.parametrize(
    "changed",
    [
        OURS.replace("Leader: 1", "Leader: 2"),
        OURS.replace("Isr: 1,2,3", "Isr: 1,2"),
        OURS.replace("Replicas: 1,2,3", "Replicas: 2,1,3"),
        OURS.replace("PartitionCount: 1", "PartitionCount: 2"),
        OURS.splitlines()[0],
    ],
)
def test_a_planted_difference_is_seen_through_the_departures(changed):
    """What may differ hides nothing else."""
    assert verdict(DESCRIBED, changed) == "different"


def test_the_words_of_an_error_are_ours_and_its_class_is_not():
    """Its class is its code in the protocol."""
    ours = ERROR.replace("Topic 't' already exists.", "topic t: expected a new topic, saw one that exists")
    assert verdict(ERROR, ours, statuses=(1, 1)) == "equal"
    assert verdict(ERROR, ours.replace("TopicExists", "InvalidTopic"), statuses=(1, 1)) == "different"


def test_the_exit_code_counts():
    """Equal words with another exit code are another answer."""
    assert verdict("done", "done", statuses=(0, 1)) == "different"


def test_a_step_departs_only_in_its_version():
    """A reason for 4.x is none for 3.9."""
    asked = step("describe", "topics", "--describe", departure="because", departs="4")
    assert verdict("one", "two", asked=asked) == "departure"
    assert verdict("one", "two", asked=asked, version="3.9.2") == "different"


def test_lines_without_order_are_sorted_where_the_step_says_so():
    """And only there."""
    assert normal("b\na", unordered=True) == normal("a\nb", unordered=True)
    assert normal("b\na") != normal("a\nb")


def test_the_script_has_stable_names_and_every_tool_that_it_says():
    """A name is said once; each of Kafka's tools is asked at least once."""
    names = [asked.name for asked in SCRIPT]
    assert len(names) == len(set(names))
    assert {asked.tool for asked in SCRIPT} == {*TOOLS, "kcat"}
