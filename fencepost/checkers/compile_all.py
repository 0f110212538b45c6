"""Compile and cache the kernels of all checks: `python -m fencepost.checkers.compile_all`.

Owns calls of each kernel with the argument types that the checks use. Must not know rules, and decides
nothing.

Run it once after installing Fencepost (`make setup` does). Otherwise the first large input compiles what it
needs. Two groups are not compiled here: the walks of `kafka` and the slot ranges of huge histories. Each
takes about a second to compile.
"""

import numpy as np
from attrs import evolve

from fencepost.checkers.compiled import COMPILED, engine
from fencepost.checkers.events import EventTables, judge_invariants
from fencepost.checkers.judges import CHECKS, judge
from fencepost.checkers.linearizability.screen import KERNELS as SCREEN
from fencepost.checkers.linearizability.search_engine import KERNELS as SEARCH
from fencepost.checkers.log.bounds import Bounds, worst_pair
from fencepost.checkers.log.session import regressions
from fencepost.checkers.transactions.components import components
from fencepost.traces.canonical_rows import rows_of
from fencepost.traces.operations import Function, Operation, Outcome, Record
from fencepost.traces.tables import tables_of
from fencepost.traces.trace import Trace


def trace() -> Trace:
    """A trace with one record, sent by a producer and read by a consumer."""
    sent = Operation(
        op_id=0,
        process=0,
        function=Function.APPEND,
        topic="t",
        partition=0,
        invoke_time=0,
        completion_time=1,
        outcome=Outcome.OK,
        offset=0,
        records=(Record(topic="t", partition=0, offset=0, value=1, leader_epoch=0),),
    )
    read = evolve(sent, op_id=1, function=Function.POLL, offset=None, invoke_time=2, completion_time=3)
    return Trace(trace_id=0, plan="", seed=0, software_version="", operations=(sent, read))


def compile_all() -> None:
    """Call each kernel once."""
    one, small = np.zeros(1, np.int64), trace()
    with engine(COMPILED):
        judge(small)
        bounds = Bounds(index=one, time=one, clock=one, row=one)
        worst_pair(evolve(bounds, time=one + 1), bounds, 0)
        regressions(np.zeros((4, 1), np.int64), one, one, one, np.zeros(1, np.bool_))
        components(2, one, one + 1)
        tables = EventTables(tables=tables_of([rows_of(small)]), headers=(small,))
        for name in ("log", "kafka"):
            of_table = CHECKS[name].judge_table
            assert of_table is not None, "a form that mining uses"
            of_table(tables.tables.operations, (small,))
        judge_invariants(tables)
    SEARCH.get_ready()
    SCREEN.get_ready()


if __name__ == "__main__":
    compile_all()
