"""Consumers of the zoo, judged by their events alone: mistakes are found, correct forms never convicted.

Three of them run with the other tests, one of each library, and one in each other language, over one kill -9
each. The rest
runs where the variable FENCEPOST_EVERY_SERVICE is set, and with more seeds by `python -m tools.services
--events`.
"""

import os

import pytest

from tests.services.by_events import CONSUMER_OF, CONSUMERS, KILLS, judged
from tests.services.other_languages import GO, JAVA, JAVASCRIPT, LANGUAGES, is_written, library, programs
from tests.services.test_zoo import MOST_LINES
from tests.torture.built_client import built_or_skipped

EVERY = bool(os.environ.get("FENCEPOST_EVERY_SERVICE"))
QUICK = ("offset_of_the_record", "order_lost_in_pool", "swallowed_exception")
"""Of these every run that is killed in its work shows the mistake."""
RUN = CONSUMERS if EVERY else tuple(CONSUMER_OF[name] for name in QUICK)
SEEDS = range(5) if EVERY else range(2)


def found(consumer, seed, folder, *, mistake):
    """What the judge says of a run."""
    outcome = judged(consumer, seed, folder, mistake=mistake, kills=KILLS if EVERY else 1)
    assert outcome.events, "the consumer wrote nothing"
    return outcome.broken


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("consumer", RUN, ids=[each.name for each in RUN])
def test_no_correct_form_is_convicted(consumer, seed, tmp_path):
    """Rule: a consumer that keeps its promise is ok, wherever it is killed."""
    assert found(consumer, seed, tmp_path, mistake=False) == ()


@pytest.mark.parametrize("consumer", RUN, ids=[each.name for each in RUN])
def test_the_mistake_is_found(consumer, tmp_path):
    """Rule: one of the seeds shows it, by the name that it should have."""
    folders = [tmp_path / str(seed) for seed in SEEDS]
    for folder in folders:
        folder.mkdir()
    assert any(found(consumer, seed, folders[seed], mistake=True) for seed in SEEDS)


@pytest.mark.parametrize("mistake", [False, True])
@pytest.mark.parametrize(
    ("language", "name"),
    [
        pytest.param(JAVA, "offset_of_the_record", marks=pytest.mark.java),
        (GO, "commit_before_work"),
        (JAVASCRIPT, "commit_before_work"),
    ],
)
def test_a_consumer_in_another_language_is_judged_by_the_same_lines(language, name, mistake, tmp_path):
    """Rule: no habit of Python's clients decides what is found."""
    built_or_skipped(library(language))
    outcome = judged(CONSUMER_OF[name], 0, tmp_path, mistake=mistake, kills=1, language=language)
    assert outcome.events and bool(outcome.broken) == mistake, outcome.broken


def test_every_consumer_is_in_java_and_short():
    """Rule: as in Python, a mistake is read at a glance."""
    assert all(is_written(each.name, JAVA) for each in CONSUMERS)
    for language in LANGUAGES:
        there = programs(language)
        for name in there.keys() & {each.name.replace("_", "") for each in CONSUMERS}:
            assert len(there[name].read_text().splitlines()) <= MOST_LINES, there[name]


def test_three_libraries_are_among_them():
    """Rule: no library's habits decide what is found."""
    for some in (CONSUMERS, [CONSUMER_OF[name] for name in QUICK]):
        assert {each.service.client for each in some} == {"aiokafka", "confluent-kafka", "kafka-python"}
