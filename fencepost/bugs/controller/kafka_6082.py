"""KAFKA-6082: a controller that was deposed still writes to ZooKeeper before it notices."""

from fencepost.impl.controller.context import ControllerContext
from fencepost.impl.controller.writer import ControllerWriter
from fencepost.impl.zookeeper.interface import WriteOperation


class WritesUnfenced(ControllerWriter):
    """Writes without checking /controller_epoch in the same transaction."""

    def fenced_zookeeper_write(self, context: ControllerContext) -> tuple[WriteOperation, ...]:
        """Check nothing."""
        return ()
