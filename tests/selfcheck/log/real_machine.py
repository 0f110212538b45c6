"""The log machine on real files in a temporary directory: crashes of the process, no power loss.

Owns the directory, which goes with the machine.
"""

import shutil
import tempfile

from fencepost.impl.runtime.real_file_system import RealFiles
from fencepost.machines.log.log_machine import LogMachine


class RealMachine(LogMachine):
    """where: the directory."""

    def make_files(self) -> RealFiles:
        """A directory of its own."""
        self.where = tempfile.mkdtemp(prefix="fencepost-log-")
        return RealFiles(self.where)

    def teardown(self) -> None:
        """Remove the directory."""
        super().teardown()
        shutil.rmtree(self.where)
