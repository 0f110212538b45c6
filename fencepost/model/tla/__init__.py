"""The TLA+ twins of the models: where the modules are, and how their states and constants read in Python.

Replication.tla, MCReplication.tla     the twin of model/replication/replication_system.py;
MCReplicationSmall.cfg,
                                       ...Medium.cfg, ...Large.cfg
ReplicationGuards.tla                  when its actions are allowed; asked by Replication.tla and by
                                       ReplicationTrace.tla
ReplicationTrace.tla, RecordedRuns.tla recorded runs compared with these guards (model/conform); the second is
                                       an example of what is generated
Controller.tla, MCController.tla       the twin of model/controller/controller_system.py;
MCControllerSmall.cfg,
                                       ...Medium.cfg, ...Large.cfg
Group.tla, MCGroup.tla                 the twin of model/group/group_system.py; MCGroupSmall.cfg,
...Medium.cfg,
                                       ...Large.cfg
Transaction.tla, MCTransaction.tla     the twin of model/transaction/transaction_system.py;
MCTransactionSmall.cfg,
                                       ...Medium.cfg, ...Large.cfg
"""

from pathlib import Path
from typing import Literal, get_args

from fencepost.traces.errors import FencepostError, unknown_name

FOLDER = Path(__file__).parent

Size = Literal["small", "medium", "large"]
SIZES: tuple[Size, ...] = get_args(Size)
MODULES = ("Replication", "Controller", "Group", "Transaction")
"""The shipped specifications by name."""


def files_of(name: str, size: Size = "small") -> tuple[Path, Path]:
    """The module and the configuration of a shipped specification.

    Args:
        name: one of MODULES.
        size: the size of the configuration.

    Returns:
        the paths of the .tla and the .cfg file.
    """
    if name not in MODULES:
        raise FencepostError(
            expected=f"a shipped specification: {', '.join(MODULES)}",
            seen=unknown_name(name, MODULES),
            where="a TLA+ specification",
        )
    return FOLDER / f"MC{name}.tla", FOLDER / f"MC{name}{size.capitalize()}.cfg"
