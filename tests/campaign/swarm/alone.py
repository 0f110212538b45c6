"""Plans of one feature of the swarm, without those that add something of their own."""

import pytest
from attrs import evolve

from fencepost.campaign.swarm.profiles import PROFILES
from fencepost.campaign.swarm.subset import CROWDS
from fencepost.campaign.swarm.swarm import swarm
from fencepost.traces.plan import Plan

OTHERS = (*CROWDS, "producers", "unclean", "different", "limited", "moved_settings", "file_steps")


def alone(seed: int, features: str, faults: tuple[str, ...] = (), bugs: tuple[str, ...] = ()) -> Plan:
    """The plan of a seed with these features, such as "quick+followed", and nothing else."""
    with pytest.MonkeyPatch.context() as patch:
        bare = evolve(PROFILES["default"], **dict.fromkeys(OTHERS, 0))
        patch.setitem(PROFILES, "default", bare)
        return swarm(seed, f"default+{features}", bugs, faults)
