"""The log machine counts because it fails on purpose: every planted bug of the log is found, and told as a
script that anybody can run."""

import subprocess
import sys

import msgspec
import pytest

from fencepost.bugs.storage import LOG_BUGS, log_bug
from fencepost.bugs.storage.protections import STORAGE_PROTECTIONS
from fencepost.machines.log.life import LogParts
from fencepost.traces.errors import FencepostError

FOUND_IN_ROUND = {
    "KAFKA-10471": 6,
    "KAFKA-10706": 1,
    "KAFKA-13194": 2,
    "KAFKA-17076": 120,
    "KAFKA-2477": 4,
    "KAFKA-4529": 2,
    "KAFKA-5249": 1,
    "KAFKA-5490": 2,
    "KAFKA-5634": 2,
    "KAFKA-5829": 2,
    "KAFKA-6683": 13,
    "KAFKA-7400": 59,
    "KAFKA-7866": 11,
    "LOG-FSYNCGATE": 91,
    "LOG-GOES-ON": 12,
    "LOG-NO-CHECKSUM": 4,
}
"""The first round of `fencepost.machines.log.hunt` that finds each bug, where it is not round 0. A
change of the machine moves them; then the hunt goes on to later ones. LOG-FSYNCGATE was hunted from round 65
on, before which an earlier machine found nothing."""
HUNT = [sys.executable, "-m", "fencepost.machines.log.hunt"]


def hunted(*bugs: str, shrink: bool = False) -> dict[str, dict]:
    """What a process of its own finds."""
    asked = [f"{bug}@{FOUND_IN_ROUND.get(bug, 0)}" for bug in bugs]
    quick = [] if shrink else ["--no-shrink"]
    told = subprocess.run(
        [*HUNT, *asked, *quick, "--examples", "4000"], capture_output=True, text=True, check=True
    )
    found = [msgspec.json.decode(line) for line in told.stdout.splitlines()]
    return {one["bug"]: one for one in found if "bug" in one}


def test_the_machine_finds_the_planted_bugs():
    """Rule: nothing is trusted until it has failed on purpose, and for the right reason.

    In a process of its own: Hypothesis also draws constants out of whatever modules are loaded, so that the
    examples would depend on which tests ran before.
    """
    bugs = sorted(LOG_BUGS)
    found = hunted(*bugs)
    assert sorted(found) == bugs
    for bug in bugs:
        assert found[bug]["examples"] is not None, (bug, found[bug]["others"])
        assert LOG_BUGS[bug].shown_by(found[bug]["complaint"])


def test_a_printed_script_fails_the_same_way(tmp_path):
    """Rule: what the machine found can be run, debugged and kept without the machine: the shrunk script ends
    in the same complaint."""
    found = hunted("KAFKA-6975", shrink=True)["KAFKA-6975"]
    script = tmp_path / "found.py"
    script.write_text(found["script"])
    told = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert told.returncode == 1
    assert told.stderr.splitlines()[-1].endswith(found["complaint"])
    assert 1 <= found["steps"] <= 3


@pytest.mark.parametrize("bug", sorted(LOG_BUGS))
def test_a_planted_bug_is_one_swapped_part(bug):
    """Rule: a subclass in the place of what it replaces; its story, its protection and what it breaks are
    told."""
    found = LOG_BUGS[bug]
    assert issubclass(found.part, getattr(LogParts(), found.role))
    assert found.part.__doc__ and found.protection.breaks and found.protection.bug == bug


def test_every_protection_of_the_log_is_a_method_and_has_a_bug():
    """Rule: the registry's names are those of methods of the parts, and each has failed on purpose."""
    assert {row.bug for row in STORAGE_PROTECTIONS} == set(LOG_BUGS)
    for row in STORAGE_PROTECTIONS:
        assert hasattr(getattr(LogParts(), LOG_BUGS[row.bug].role), row.name), row


def test_a_bug_that_is_not_in_the_zoo_is_refused():
    """Rule: an unknown id names the known ones."""
    with pytest.raises(FencepostError, match="KAFKA-10471"):
        log_bug("KAFKA-0")
