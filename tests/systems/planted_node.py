"""A broker process with a planted bug: a follower believes that more is committed than it holds. Run as a
program by test_broker_events.py."""

import sys

from fencepost.impl.broker.parts import Parts
from fencepost.impl.replication.partition import Partition
from fencepost.systems import node


class FarAhead(Partition):
    """A follower's high watermark is far above what the leader says."""

    def high_watermark_within_log(self, offset: int) -> int:
        """Beyond the log end."""
        return offset + 1_000 if offset and not self.is_leader else offset


if __name__ == "__main__":
    sys.exit(node.main(parts=Parts(partition=FarAhead)))
