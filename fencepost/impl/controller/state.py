"""What the controller's procedures share."""

from attrs import define, field

from fencepost.impl.controller.channels import Channels
from fencepost.impl.controller.context import ControllerContext
from fencepost.impl.controller.machines import PARTITION_TRANSITIONS, PartitionPhase
from fencepost.impl.controller.strategies import LeaderElection
from fencepost.impl.controller.writer import ControllerWriter
from fencepost.impl.messages import TopicPartition
from fencepost.impl.shell import Shell


@define
class ControllerState:
    """active: between the end of an election won and resignation. phases: the partition state machine; refused: illegal transitions that were met."""

    shell: Shell
    writer: ControllerWriter
    channels: Channels
    election: LeaderElection
    context: ControllerContext = field(factory=ControllerContext)
    active: bool = False
    phases: dict[TopicPartition, PartitionPhase] = field(factory=dict)
    refused: int = 0

    def move(self, key: TopicPartition, phase: PartitionPhase) -> bool:
        """Change a partition's phase; an illegal transition is refused and counted."""
        current = self.phases.get(key, PartitionPhase.NON_EXISTENT)
        if phase not in PARTITION_TRANSITIONS[current]:
            self.refused += 1
            return False
        self.phases[key] = phase
        return True

    def reset(self) -> None:
        """Forget everything (KAFKA-5310)."""
        self.channels.close()
        self.context = ControllerContext()
        self.phases = {}
        self.active = False
