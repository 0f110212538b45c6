"""Controller election (C1), decided by one multi.

Owns the race for /controller. Must not know what a controller does.
"""

from collections.abc import Generator
from typing import Any

from attrs import define

from fencepost.impl.core.broker_context import MILLISECOND, BrokerContext
from fencepost.impl.core.broker_states import BrokerState
from fencepost.impl.zookeeper import interface as zk
from fencepost.impl.zookeeper import znodes

ATTEMPTS = 16
"""Rounds of one election before it waits for the next trigger. Reason: a round fails only because of another
write."""


@define
class ControllerElector:
    """Runs for controller."""

    broker_context: BrokerContext

    def run(
        self,
    ) -> Generator[zk.ZooKeeperRequest | tuple[zk.ZooKeeperRequest, ...], Any, tuple[int, int] | None]:
        """Run for controller. Returns (controller epoch, version of /controller_epoch) if this broker is the
        controller, None if another one is. In both cases a watch on /controller is set."""
        for _ in range(ATTEMPTS):
            current = yield zk.GetData(znodes.CONTROLLER, watch=True)
            if isinstance(current, zk.Data) and not self.names_me(current):
                return None
            epoch = yield zk.GetData(znodes.CONTROLLER_EPOCH)
            if not isinstance(epoch, zk.Data):
                yield zk.Create(znodes.CONTROLLER_EPOCH, b"0")
                continue
            try:
                number = znodes.decode_controller_epoch(epoch.data)
            except znodes.BadZnodeError as error:
                self.broker_context.refuse_znode(error)
                again = yield zk.GetData(znodes.CONTROLLER_EPOCH, watch=True)  # so that a repair is noticed
                if isinstance(again, zk.Data) and again.data == epoch.data:
                    return None
                continue
            if isinstance(current, zk.Data):
                if (yield from self.still_names_me()):
                    return number, epoch.stat.version
                continue
            if self.shutting_down():
                return None
            won = yield zk.Multi(
                (
                    zk.Create(
                        znodes.CONTROLLER,
                        znodes.encode_controller(
                            self.broker_context.node, self.broker_context.now // MILLISECOND
                        ),
                        ephemeral=True,
                    ),
                    zk.SetData(znodes.CONTROLLER_EPOCH, str(number + 1).encode(), epoch.stat.version),
                )
            )
            if isinstance(won, zk.MultiDone):
                if self.shutting_down():  # since the request was sent
                    yield zk.Delete(znodes.CONTROLLER)
                    return None
                yield zk.Exists(znodes.CONTROLLER, watch=True)
                return number + 1, epoch.stat.version + 1
            assert isinstance(won, zk.Failed), won
            # lost the race, or the reply to an earlier attempt was lost: the current content decides
        return None

    def shutting_down(self) -> bool:
        """A broker that has closed its logs does not run any more. Its own /controller node goes with its
        last words, and the watch on it fires: elected again it would end at once, and nobody would be the
        controller until its session ends. (KafkaController.shutdown closes the event queue first.)"""
        return self.broker_context.broker_state == BrokerState.SHUTTING_DOWN

    def still_names_me(self) -> Generator[zk.ZooKeeperRequest, Any, bool]:
        """Whether the epoch that was read after /controller is ours.

        While this broker holds /controller, no other broker raises the epoch, so the node must not have
        changed hands. A broker that paused between the two reads would adopt its successor's epoch
        (KAFKA-1096).
        """
        current = yield zk.GetData(znodes.CONTROLLER, watch=True)
        return isinstance(current, zk.Data) and self.names_me(current)

    def names_me(self, controller: zk.Data) -> bool:
        """Protection KAFKA-13407: /controller may name me because my own multi was done and its reply lost;
        then I am the controller."""
        try:
            named = znodes.decode_controller(controller.data)
        except znodes.BadZnodeError as error:
            self.broker_context.refuse_znode(error)  # nothing goes on until somebody removes it
            return False
        return (
            named == self.broker_context.node
            and controller.stat.ephemeral_owner == self.broker_context.session_id
        )
