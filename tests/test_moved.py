"""What users import has two paths through 0.2, the old one too, and both lead to the same thing."""

import subprocess
import sys
from importlib import import_module
from pkgutil import walk_packages

import pytest

from fencepost import machines
from fencepost.moved import MOVED, new_path

ELSEWHERE = {
    "fencepost.campaign.bugs": ("BUGS", "parts_with"),
    "fencepost.campaign.run.group_consumer": ("PollLoop", "make_consumer"),
    "fencepost.campaign.run.run": ("run",),
    "fencepost.campaign.run.simulated_cluster": ("SimulatedCluster",),
    "fencepost.campaign.faults.table": ("FAULTS",),
}
"""Names of docs/reference/api.md and of the how-to pages."""
PUBLIC = {
    "replicated_log": ("ReplicatedLogMachine",),
    "system_under_test": ("ReadResult", "RefusedError", "SystemUnderTest", "UnclearError"),
    "cluster.steps": ("ClusterSteps",),
    "cluster.rules": (
        *("AppendRules", "ClientRules", "ElectionRules", "NetworkRules", "ProcessRules", "RestartRules"),
        *("SessionRules", "TimeRules"),
    ),
    "cluster.fall_rules": ("ReturnRules", "SilenceRules"),
    "cluster.operator_rules": ("OperatorRules",),
    "cluster.relay_rules": ("RelayRules",),
    "cluster.machines": (
        *("ClusterMachine", "ElectionMachine", "OutageMachine", "RaceMachine", "ReassignmentMachine"),
        "RelayMachine",
    ),
    "log.disk_rot": ("DiskMachine",),
    "log.planted": ("planted",),
}
"""The names of docs/how-to/machines.md, and of the scripts that `campaign bugs hunt` leaves, by module."""


@pytest.mark.parametrize(("module", "name"), [(module, name) for module in PUBLIC for name in PUBLIC[module]])
def test_a_public_name_is_the_same_by_its_old_path(module, name):
    """A machine that a user wrote against 0.1 has the base, and the errors, that the new room has."""
    new = getattr(import_module(f"fencepost.machines.{module}"), name)
    assert getattr(import_module(f"fencepost.campaign.machines.{module}"), name) is new


@pytest.mark.parametrize("module", ELSEWHERE)
def test_a_public_name_elsewhere_is_the_same_by_its_old_path(module):
    """And the module keeps what Python knows of it."""
    old, new = import_module(module), import_module(new_path(module) or "")
    assert old is new and all(hasattr(new, name) for name in ELSEWHERE[module])
    assert new.__spec__ is not None and new.__spec__.name == new.__name__ == new_path(module)


def test_every_old_path_leads_somewhere():
    """Each row of the table."""
    for old in MOVED:
        assert import_module(old) is import_module(MOVED[old])
    assert new_path("fencepost.campaign.swarm.swarm") is None


def test_no_module_of_the_room_is_there_twice():
    """Also what is not public: an exception of a second copy would escape who means the first."""
    import_module("fencepost.campaign.machines")
    rooms = [one.name for one in walk_packages(machines.__path__, "fencepost.machines.")]
    assert len(rooms) > 15
    for name in rooms:
        old = import_module(name.replace("fencepost.", "fencepost.campaign.", 1))
        assert old is import_module(name)


@pytest.mark.parametrize(
    "statement",
    [
        "from fencepost.campaign.machines.cluster.rules import ClientRules",
        "import fencepost.campaign.machines.replicated_log as room; room.ReplicatedLogMachine",
        "import fencepost.campaign.machines.log.planted; fencepost.campaign.machines.log.planted.planted",
    ],
)
def test_the_old_path_is_enough_for_a_process_of_its_own(statement):
    """Nothing of the new room was imported before, and each form of an import statement works."""
    done = subprocess.run([sys.executable, "-c", statement], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
