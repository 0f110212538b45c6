"""Guided by coverage: atheris mutates frames that a connection in front of a real broker core takes.

Owns the target and the first inputs, a request of each API at each version. Needs `pip install atheris`. What
an input finds, it finds again: the broker's world is made anew every EXCHANGES inputs, and an input that ends
it ends the run. tests/wire/test_fuzz_corpus.py replays what is packed.
"""

import base64
import random
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import msgspec

from fencepost.traces.errors import EnvironmentError_, ExitCode

CHILD = "import sys; from tools.fuzz.guided import run; run(*sys.argv[1:])"
LABS = Path(__file__).parents[2] / "tests" / "wire"
"""Where hostile requests are made."""
EXCHANGES = 500
"""With one broker: its log and its groups grow with each."""
LARGEST_INPUT = 2_048
"""Bytes: several requests, and every field of one."""


def seeds(folder: Path) -> None:
    """Write the first inputs."""
    from wire_core import request_bytes
    from wire_hostile import hostile_request

    from fencepost.wire.versions import APIS

    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(1)
    for api in APIS.values():
        for version in range(max(api.lowest, api.lowest_decoded), api.highest + 1):
            data = request_bytes(1, hostile_request(api.key, version, rng))
            (folder / f"seed-{api.name}-{version}").write_bytes(data[:LARGEST_INPUT])


class Target:
    """One input: bytes of a new connection."""

    def __init__(self) -> None:
        self.count, self.attacked = 0, None

    def __call__(self, data: bytes) -> None:
        from wire_hostile import Attacked

        from fencepost.wire.connection import Close

        if self.attacked is None or self.count % EXCHANGES == 0:
            self.attacked = Attacked()
        self.count += 1
        actions = self.attacked.exchange(data)
        assert not self.attacked.halts, self.attacked.halts
        for action in actions:
            if isinstance(action, Close):
                assert "failed here" not in action.reason and "cannot be written" not in action.reason, action


def pack(folder: Path, target: Path) -> ExitCode:
    """The inputs of a corpus as lines of JSON."""
    inputs = sorted({path.read_bytes() for path in folder.iterdir() if path.is_file()})
    lines = [msgspec.json.encode(base64.b64encode(data).decode()) for data in inputs]
    target.write_bytes(b"\n".join(lines) + b"\n")
    return ExitCode.NOTHING_FOUND


def guided(corpus: Path, seconds: float) -> ExitCode:
    """Fuzz from a folder of inputs, and into it. In a process of its own: atheris counts only in modules that
    it sees being imported. Raises EnvironmentError_ without atheris."""
    if find_spec("atheris") is None:
        raise EnvironmentError_(
            expected="the library atheris", seen="none", where="--guided", hint="pip install atheris"
        )
    command = [sys.executable, "-c", CHILD, str(corpus), f"-max_total_time={seconds:.0f}"]
    return ExitCode.FINDINGS if subprocess.call(command) else ExitCode.NOTHING_FOUND


def run(corpus: str, *options: str) -> None:
    """The process of its own, which ends with it. options: libFuzzer's."""
    import atheris

    sys.path.insert(0, str(LABS))
    with atheris.instrument_imports(include=["fencepost.wire", "fencepost.impl"]):
        import wire_hostile  # noqa: F401  (imported to be instrumented)
    seeds(Path(corpus))
    bounds = (f"-max_len={LARGEST_INPUT}", "-timeout=60")
    atheris.Setup([sys.argv[0], *bounds, *options, corpus], Target())
    atheris.Fuzz()
