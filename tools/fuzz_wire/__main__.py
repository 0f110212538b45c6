"""`python -m tools.fuzz_wire CORPUS [libFuzzer's options]`: atheris mutates frames for as long as it is told
to.

    python -m tools.fuzz_wire out/fuzz-wire -max_total_time=3600
    python -m tools.fuzz_wire --pack out/fuzz-wire tests/wire/fuzz_corpus.jsonl

Owns the target and the first inputs, a request of each API at each version. Needs `pip install atheris`. What
an input finds, it finds again: the broker's world is made anew every EXCHANGES inputs, and an input that ends
it ends the run. tests/wire/test_fuzz_corpus.py replays what is packed.
"""

import base64
import random
import sys
from pathlib import Path
from typing import Any

import msgspec

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "wire"))

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


def pack(folder: Path, target: Path) -> None:
    """The inputs of a corpus as lines of JSON."""
    inputs = sorted({path.read_bytes() for path in folder.iterdir() if path.is_file()})
    lines = [msgspec.json.encode(base64.b64encode(data).decode()) for data in inputs]
    target.write_bytes(b"\n".join(lines) + b"\n")


def main(arguments: list[str]) -> Any:
    """Fuzz, or pack."""
    if not arguments or arguments[0] in ("-h", "--help"):
        sys.stdout.write(f"usage: {__doc__}")
        return 0
    if arguments[0] == "--pack":
        return pack(Path(arguments[1]), Path(arguments[2]))
    import atheris

    with atheris.instrument_imports(include=["fencepost.wire", "fencepost.impl"]):
        import wire_hostile  # noqa: F401  (imported to be instrumented)
    corpus = Path(arguments[0])
    seeds(corpus)
    options = [f"-max_len={LARGEST_INPUT}", "-timeout=60", *arguments[1:], str(corpus)]
    atheris.Setup([sys.argv[0], *options], Target())
    return atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
