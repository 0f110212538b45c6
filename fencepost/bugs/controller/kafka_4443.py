"""KAFKA-4443: a new controller gives roles before it tells who is alive.

1. b2 has just started: it has heard of nobody yet
2. the controller dies before it has sent b2 anything; b3 takes over and sends LeaderAndIsr, then
   UpdateMetadata
3. b2 is to follow b1, does not know that b1 is alive, and refuses; nobody sends it again
4. b2 never fetches, and never comes back into the ISR
"""

from attrs import define

from fencepost.impl.controller.channels import Channels
from fencepost.impl.controller.context import ControllerContext


@define
class GivesRolesFirst(Channels):
    """owes: whether brokers are yet to hear who is alive."""

    owes: bool = False

    def introduce(self, context: ControllerContext) -> None:
        """With the roles, after them."""
        self.add_metadata(context.states)
        self.owes = True

    def flush(self, context: ControllerContext, *, metadata_always: bool = False) -> None:
        """A batch sends LeaderAndIsr before UpdateMetadata."""
        super().flush(context, metadata_always=metadata_always or self.owes)
        self.owes = False
