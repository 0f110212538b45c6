"""How processes of ours begin."""

import subprocess
import sys
from pathlib import Path

MODULE = """
import gc, sys
WHILE_LOADING = gc.isenabled()
def main():
    print(WHILE_LOADING, gc.isenabled(), gc.get_freeze_count() > 1_000, sys.argv[1:])
    return 7
"""


def test_a_module_is_loaded_without_a_search_for_garbage_and_runs_with_one(tmp_path: Path) -> None:
    """Rule: what is loaded is never searched for garbage, what the process makes is; arguments and exit code
    are the module's own."""
    (tmp_path / "a_process.py").write_text(MODULE)
    done = subprocess.run(
        [sys.executable, "-m", "fencepost.processes.begin", "a_process", "--one", "two"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == "False True True ['--one', 'two']\n", done.stderr
    assert done.returncode == 7
