"""Each kernel that decides something, made to say that all is well: which of these faults does the comparison
with the plain code not notice?

Run by test_event_screens.py with NUMBA_DISABLE_JIT=1, because a compiled kernel cannot be replaced. Prints
the faults that went unnoticed.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pkgutil import iter_modules
from random import Random
from typing import Any

from fencepost.checkers.events import kernels
from fencepost.traces.trace import Trace
from tests.checkers.conformance_variants import stories
from tests.checkers.control_traces import control_trace
from tests.checkers.event_screens import bent, bounded, compacted, missed
from tests.checkers.test_invariants_differential import events_trace, reads_trace

FAULTS: dict[str, dict[str, Any]] = {
    "invariants": {
        "bounded": True,
        "dumps_differ": False,
        "fenced": False,
        "lost": False,
        "names_another": False,
        "within": True,
        "above": False,
        "isr_outside": False,
        "asked_for": True,
        "assignment": False,
        "reassignment": False,
        "deletion_of_wanted": False,
        "topic_deletion": False,
        "gone_from": False,
        "failed_over": False,
        "proposed": False,
        "believes": False,
        "deleted": False,
        "mark": False,
        "compacted_away": False,
        "superseded": True,
        "keyed_at": -1,
        "became": False,
        "exposed": False,
        "partition_state": False,
        "request_applied": False,
    },
    "conformance": {
        "at_log_end": True,
        "follower_may_advance": True,
        "held": True,
        "is_copy": True,
        "known_end": 10**6,
        "leader_may_write": True,
        "leads": True,
        "may_elect": True,
        "controller_may_write": True,
        "may_recover": True,
        "may_take_role": True,
        "isr_updated": False,
        "dumped": False,
        "truncated": False,
    },
}


@contextmanager
def planted(name: str, answer: Any) -> Iterator[None]:
    """Every kernel of this name says `answer`."""
    modules = [
        import_module(f"{kernels.__name__}.{module.name}") for module in iter_modules(kernels.__path__)
    ]
    owners = [(module, getattr(module, name)) for module in modules if hasattr(module, name)]
    assert owners, name
    for module, _ in owners:
        setattr(module, name, lambda *_: answer)
    try:
        yield
    finally:
        for module, kernel in owners:
            setattr(module, name, kernel)


def corpus() -> Iterator[list[Trace]]:
    """Traces in batches, so that a fault that is noticed costs little."""
    legal = stories()
    for batch in range(40):
        seeds = range(batch * 30, batch * 30 + 30)
        traces = [bent(Random(f"fault {seed}"), legal[seed % len(legal)]) for seed in seeds]
        traces += [bounded(events_trace(Random(f"fault {seed}"))) for seed in seeds]
        traces += [control_trace(Random(f"fault {seed}")) for seed in seeds]
        traces += [
            compacted(Random(f"gone {seed}"), one) for seed, one in zip(seeds, traces[30:60], strict=True)
        ]
        yield traces + [bounded(reads_trace(Random(f"fault {seed}"))) for seed in seeds]


def main() -> None:
    """Name the faults that no trace shows."""
    batches: list[list[Trace]] = []
    left = corpus()
    for check, faults in FAULTS.items():
        for name, answer in faults.items():
            with planted(name, answer):
                noticed = any(missed(check, batch) for batch in batches)
                while not noticed and (batch := next(left, None)):
                    batches.append(batch)
                    noticed = bool(missed(check, batch))
            if not noticed:
                sys.stdout.write(f"{check}: {name}\n")


if __name__ == "__main__":
    sys.exit(main())
