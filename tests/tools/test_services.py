"""tools/services: the order of seeds, what is kept, and what is said."""

import pytest
from click.testing import CliRunner

from fencepost.traces.errors import ExitCode, PlanError
from tests.services.zoo import BY_NAME
from tools import services
from tools.services import MISTAKE, RIGHT, Row, seeds_of

NAME = "unread_report"


@pytest.fixture
def hunted(monkeypatch, tmp_path):
    """Run the command with services that break at certain seeds; answers the exit code, the table, and what
    was run."""
    ran = []

    def call(*words, breaks=()):
        def one(service, form, seed):
            ran.append((service.name, form, seed))
            broken = ("is missing",) if (form, seed) in breaks else ()
            return Row(
                service=service.name, form=form, seed=seed, broken=broken, strikes=("kill, idle",), took_s=0.1
            )

        monkeypatch.setattr(services, "one_seed", one)
        options = {"standalone_mode": False}
        result = CliRunner().invoke(services.command, [*words, "--out", str(tmp_path)], **options)
        if result.exception is not None:
            raise result.exception
        return result.return_value, (tmp_path / "table.md").read_text(), list(ran)

    return call


def test_seeds_are_tried_until_one_finds_the_mistake(hunted):
    """Rule: no seed after the first that finds it; every seed of the correct form."""
    code, table, ran = hunted(NAME, "--seeds", "3:9", "--correct", "2", breaks={(MISTAKE, 5)})
    assert ran == [*((NAME, MISTAKE, seed) for seed in (3, 4, 5)), *((NAME, RIGHT, seed) for seed in (3, 4))]
    assert code == ExitCode.NOTHING_FOUND
    assert f"| {NAME} | 5 | 3 | kill, idle |" in table and f"| {NAME} | 2 | 0 |" in table


def test_what_is_in_the_ledger_is_not_run_again(hunted):
    """Rule: a run goes on where the one before stopped."""
    first = hunted(NAME, "--seeds", "0:2", "--correct", "0")[2]
    again = hunted(NAME, "--seeds", "0:3", "--correct", "0")[2]
    assert again == [*first, (NAME, MISTAKE, 2)]


def test_a_mistake_that_is_missed_and_a_correct_form_that_is_convicted_fail(hunted):
    """Rule: both give the exit code of a finding."""
    assert hunted(NAME, "--seeds", "0:2", "--correct", "0")[0] == ExitCode.FINDINGS
    breaks = {(MISTAKE, 0), (RIGHT, 1)}
    other = "several_in_flight"
    assert hunted(other, "--seeds", "0:2", "--correct", "2", breaks=breaks)[0] == ExitCode.FINDINGS


def test_all_services_are_hunted_without_a_name(hunted):
    """Rule: one case for each form of each service."""
    ran = hunted("--seeds", "0:1", "--correct", "1")[2]
    assert {(name, form) for name, form, _ in ran} == {
        (name, f) for name in BY_NAME for f in (MISTAKE, RIGHT)
    }


@pytest.mark.parametrize("text", ["5", "5:", "a:b", "5:5", "7:3"])
def test_seeds_that_are_none_get_a_sentence(text):
    """Rule: expected and seen."""
    with pytest.raises(PlanError, match="expected seeds such as 0:10, saw"):
        seeds_of(text)
