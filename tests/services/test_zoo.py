"""Services of the zoo: their correct forms keep their promises, and their mistakes are there.

Six of them run with the other tests, two of each library, the quickest that never depend on luck. The rest
runs where the variable FENCEPOST_EVERY_SERVICE is set, and under chaos by `python -m tools.services`.
"""

import os

import pytest

from tests.services.running import ServiceRun, zoo_cluster
from tests.services.zoo import BY_NAME, SERVICES

MOST_LINES = 60
QUICK = (
    "commit_before_work",
    "tombstones_dropped",
    "unread_report",
    "no_transaction",
    "swallowed_exception",
    "database_then_kafka",
)
RUN = SERVICES if os.environ.get("FENCEPOST_EVERY_SERVICE") else tuple(BY_NAME[name] for name in QUICK)
SEED = 1
"""Of a chaos that kills a service."""
AIMED = [each for each in RUN if each.strike is not None]


def broken(service, folder, *, mistake, struck):
    """What a run of a service has broken of its promise."""
    with zoo_cluster() as kafka:
        run = ServiceRun(kafka=kafka, service=service, mistake=mistake, folder=folder)
        run.prepare()
        run.work(struck=struck)
        return run.broken()


@pytest.mark.parametrize("service", RUN, ids=[each.name for each in RUN])
def test_the_correct_form_keeps_its_promise(service, tmp_path):
    """Rule: where nothing fails, nothing is found."""
    assert broken(service, tmp_path, mistake=False, struck=False) == []


@pytest.mark.parametrize("service", AIMED, ids=[each.name for each in AIMED])
def test_the_mistake_breaks_the_promise(service, tmp_path):
    """Rule: one fault, aimed by hand, shows the mistake."""
    assert broken(service, tmp_path, mistake=True, struck=True) != []


def test_chaos_strikes_a_service_that_is_correct(tmp_path):
    """Rule: strikes at a real process meet it, it goes on, and a correct one keeps its promise."""
    with zoo_cluster(SEED) as kafka:
        run = ServiceRun(kafka=kafka, service=BY_NAME["swallowed_exception"], mistake=False, folder=tmp_path)
        run.prepare()
        reached = run.work_in_chaos(SEED)
        assert reached["strikes"] and reached["moments"]["a result not yet answered"]
        assert run.broken() == []


def test_a_program_is_short_and_each_library_has_four():
    """Rule: a mistake is read at a glance, and no library's habits decide what is found."""
    for each in SERVICES:
        assert len(each.program.read_text().splitlines()) <= MOST_LINES, each.name
    used = [each.client for each in SERVICES]
    assert all(used.count(client) >= 4 for client in ("aiokafka", "confluent-kafka", "kafka-python"))
