"""Each service of the zoo: its correct form keeps its promise, and its mistake is there."""

import pytest

from tests.services.running import ServiceRun, zoo_cluster
from tests.services.zoo import PROGRAMS, SERVICES

MOST_LINES = 60
AIMED = [each for each in SERVICES if each.strike is not None]
NAMES = [each.name for each in SERVICES]


def broken(service, folder, *, mistake, struck):
    """What a run of a service has broken of its promise."""
    with zoo_cluster() as kafka:
        run = ServiceRun(kafka=kafka, service=service, mistake=mistake, folder=folder)
        run.prepare()
        run.work(struck=struck)
        return run.broken()


@pytest.mark.parametrize("service", SERVICES, ids=NAMES)
def test_the_correct_form_keeps_its_promise(service, tmp_path):
    """Rule: where nothing fails, nothing is found."""
    assert broken(service, tmp_path, mistake=False, struck=False) == []


@pytest.mark.parametrize("service", AIMED, ids=[each.name for each in AIMED])
def test_the_mistake_breaks_the_promise(service, tmp_path):
    """Rule: one fault, aimed by hand, shows the mistake."""
    assert broken(service, tmp_path, mistake=True, struck=True) != []


def test_a_program_is_short_and_each_library_has_four():
    """Rule: a mistake is read at a glance, and no library's habits decide what is found."""
    for each in SERVICES:
        assert len((PROGRAMS / f"{each.name}.py").read_text().splitlines()) <= MOST_LINES, each.name
    used = [each.client for each in SERVICES]
    assert all(used.count(client) >= 4 for client in ("aiokafka", "confluent-kafka", "kafka-python"))
