"""TLC's shortest counterexample for a dropped protection of the data path.

Owns which statements of Replication.tla are checked for the invariant that a protection preserves. Must not
know how the counterexample is used.
"""

from collections.abc import Mapping

from attrs import evolve

from fencepost.model.replication.replication_state import Constants
from fencepost.model.tla import files_of
from fencepost.model.tla.replication import constants_to_tla
from fencepost.model.tlc.result import TlcResult
from fencepost.model.tlc.tlc_run import OnProgress, RunOptions, Spec, check, private_folder
from fencepost.traces.errors import FencepostError

STATEMENTS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "COMMIT-SAFE": (("CommitSafe", "LogMatch"), ("CommitSafeSteps",)),
    "LOG-MATCH": (("CommitSafe", "LogMatch"), ("CommitSafeSteps",)),
    "HW-MONO": (("HwMono",), ()),
    "EPOCH-MONO": (("EpochMono", "OneLeader"), ("EpochMonoSteps",)),
}
"""Invariant -> (invariants, properties) of Replication.tla. Diverging logs and lost records are checked
together, and the first bad state ends the run."""


def shortest_counterexample(
    constants: Constants,
    breaks: str,
    options: RunOptions | None = None,
    on_progress: OnProgress | None = None,
) -> TlcResult:
    """Run TLC with one worker, so that the counterexample is a shortest one. breaks: the invariant that
    should fail.

    Raises FencepostError if that needs more than the data path of a log that keeps all its records
    (HW-BOUNDS: retention, for which no plan is drafted).
    """
    if breaks not in STATEMENTS:
        raise FencepostError(
            expected=f"a protection that keeps one of {', '.join(sorted(STATEMENTS))}",
            seen=f"{', '.join(sorted(constants.drop))}, which keeps {breaks}",
            where="a counterexample of Replication.tla",
        )
    invariants, properties = STATEMENTS[breaks]
    module, _ = files_of("Replication")
    with private_folder() as folder:
        config = folder / "Dropped.cfg"
        assigned = "\n".join(f"    {name} = {value}" for name, value in constants_to_tla(constants).items())
        looked_at = f"INVARIANTS {' '.join(invariants)}\n"
        if properties:
            looked_at += f"PROPERTIES {' '.join(properties)}\n"
        config.write_text(
            f"SPECIFICATION Spec\nCONSTANTS\n{assigned}\n{looked_at}CHECK_DEADLOCK FALSE\n", encoding="utf-8"
        )
        return check(Spec.at(module, config), evolve(options or RunOptions(), workers=1), on_progress)
