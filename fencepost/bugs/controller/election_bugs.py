"""Bugs of becoming and being controller: registrations, elections, resignations, and leaders that leave."""

from collections.abc import Collection

from fencepost.impl.broker.registration import Registration
from fencepost.impl.controller.context import ControllerContext
from fencepost.impl.controller.elector import ControllerElector
from fencepost.impl.controller.shared_state import ControllerState
from fencepost.impl.controller.strategies import Choice, LeaderElection
from fencepost.impl.zookeeper.interface import Data


class TakesAnOldNodeForItsOwn(Registration):
    """KAFKA-1387 (KAFKA-7165): a broker that registers again finds the node of its previous session and is
    content; the node goes with that session, and the broker lives on unregistered."""

    def own_registration(self, owner: int, session_id: int) -> bool:
        """Whoever made it."""
        return True


class IgnoresItsOwnName(ControllerElector):
    """KAFKA-13407: the election was won, its reply lost; the broker finds a controller in /controller, does
    not ask who it is, and nobody controls."""

    def names_me(self, controller: Data) -> bool:
        """Somebody else."""
        return False


class RemembersReassignments(ControllerState):
    """KAFKA-5310: what was being reassigned survives the resignation, and is begun again in a later reign,
    whatever was asked for meanwhile."""

    def reset_on_resign(self) -> ControllerContext:
        """All but that."""
        return ControllerContext(reassigning=self.context.reassigning)


class WaitsForTheIsr(LeaderElection):
    """KAFKA-1028: nobody outside the ISR is ever elected, whatever the topic prefers."""

    def outside_isr(self, assignment: tuple[int, ...], live: Collection[int]) -> Choice | None:
        """Nobody."""
        return None


class LetsTheLastLeaderGo(LeaderElection):
    """KAFKA-340: at a controlled shutdown the leadership goes to a live replica outside the ISR when nobody
    else is in it."""

    def last_in_sync_stays(self, able: list[int], stay: tuple[int, ...]) -> Choice | None:
        """If no member can, anybody."""
        return super().last_in_sync_stays(able, stay) or next(((one, (one,)) for one in able), None)
