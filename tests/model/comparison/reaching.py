"""Whether TLC reaches what a shipped specification's MC module says is never so, for all of those at once:
one JVM instead of one each."""

import re
from pathlib import Path

from fencepost.model.tla import files_of
from fencepost.model.tlc import RunOutcome, Spec, check
from tests.model.quick import QUICK


def nevers(name: str) -> tuple[str, ...]:
    """The statements of the MC module, by name."""
    module, _ = files_of(name)
    return tuple(re.findall(r"^(\w+) *==", module.read_text(), re.MULTILINE))


def reaches_all(name: str, folder: Path, constants: dict[str, str] | None = None) -> bool:
    """Whether reachable states of the small configuration refute each of them: a module notes what it has
    seen, and is violated when it has seen all."""
    module, config = files_of(name)
    numbered = list(enumerate(nevers(name), 1))
    seen = "".join(f"    /\\ {never} \\/ TLCSet({at}, TRUE)\n" for at, never in numbered)
    every = " /\\ ".join(f"TLCGet({at})" for at, _ in numbered)
    (folder / "Reached.tla").write_text(
        f"---- MODULE Reached ----\nEXTENDS MC{name}, TLC\n"
        f"ASSUME \\A i \\in 1..{len(numbered)} : TLCSet(i, FALSE)\n"
        f"NotAll ==\n{seen}    /\\ ~({every})\n====\n"
    )
    for file in module.parent.glob("*.tla"):
        (folder / file.name).write_text(file.read_text())
    text = config.read_text()
    mine = folder / "Reached.cfg"
    mine.write_text(text[: text.index("INVARIANTS")] + "INVARIANT NotAll\nCHECK_DEADLOCK FALSE\n")
    found = check(Spec.at(folder / "Reached.tla", mine, constants), QUICK)
    assert found.outcome in (RunOutcome.VIOLATED, RunOutcome.HOLDS), found.reason
    return found.outcome is RunOutcome.VIOLATED
