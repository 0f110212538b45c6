"""The transactions check: which cycles among transactions are violations, and one verdict per trace.

Owns the classification. Must not know how edges are made (`graph`) or how cycles are found (`components`).

Kafka promises a read_committed reader that a transaction is visible after its commit. So if T1 reads what T2
wrote, T2 had committed before T1 committed. A cycle of such reads is impossible. So is a cycle of reads and
of time, in one process or anywhere: an operation that ended before another began had read before that one
committed. These cycles are findings.

Cycles with ww or rw are not findings. Kafka writes records of transactions while they are open, so two
transactions may be in two logs in two orders (G0). And Kafka does not promise a reader the latest records
(G-single, G2-item). These cycles are counted.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
from attrs import frozen

from fencepost.checkers.columns_read import LOG_COLUMNS
from fencepost.checkers.kafka.relations import TXN
from fencepost.checkers.operation_columns import Array, OperationColumns, columns_of_table, columns_of_traces
from fencepost.checkers.transactions.components import components, inside_components, shortest_cycle
from fencepost.checkers.transactions.graph import Edges, Graph, graph_of, write_edges
from fencepost.checkers.verdict import Decision, Finding, Verdict
from fencepost.traces.trace import Trace

CHECK = "transactions"
COLUMNS = LOG_COLUMNS
"""Columns of the `operations` table that this check reads."""
READS, IN_PROCESS, IN_REAL_TIME = "circular_reads", "circular_reads_in_process", "circular_reads_in_real_time"


@frozen(kw_only=True)
class Cycles:
    """The number of groups of transactions in a cycle in one trace, with Adya's and Elle's names."""

    # Name -> components. G0: of writes alone. G1c: of writes and reads. G-single: with one anti-dependency
    # (rw). G2-item: with more. -process and -realtime: with the order of a process, or of time, as further
    # edges; components that are cyclic without them are counted there as well. Only circular reads are
    # violations; the other cycles are legal in Kafka.
    found: dict[str, int]


def judge_trace(trace: Trace) -> Verdict:
    """The verdict of the check on one trace."""
    verdicts = judge_traces((trace,))
    return verdicts[0][1] if verdicts else Verdict(decision=Decision.OK, check=CHECK)


def judge_traces(traces: Sequence[Trace]) -> list[tuple[int, Verdict]]:
    """(trace id, verdict) of each trace that is not Ok, in order; all others are Ok."""
    return judge_columns(columns_of_traces(traces))


def judge_table(table: pa.Table, traces: Iterable[Trace] = ()) -> list[tuple[int, Verdict]]:
    """As `judge_traces`, for the rows of an `operations` table.

    Args:
        table: the rows.
        traces: the headers of their traces.

    Returns:
        (trace id, verdict) of each trace that is not Ok, in order.

    Raises:
        TraceError: if a column is missing.
    """
    known = tuple(traces)
    operations = columns_of_table(table, known)
    concerned = np.zeros(len(operations.traces), np.bool_)
    concerned[operations.trace[operations.function == TXN]] = True
    rows = concerned[operations.trace]
    if rows.any() and not rows.all():
        table = table.filter(pa.array(rows))
        broken = {one.trace_id: verdict for one in operations.traces if (verdict := _broken(one))}
        some = judge_columns(columns_of_table(table, operations.traces))
        verdicts = broken | dict(some)
        return [
            (one.trace_id, verdicts[one.trace_id]) for one in operations.traces if one.trace_id in verdicts
        ]
    return judge_columns(operations)


def cycles_of_trace(trace: Trace) -> Cycles:
    """The cycles of one trace by name, including those that Kafka allows.

    Args:
        trace: any trace; one without transactions has no cycles.

    Returns:
        the counts; a name without a cycle is left out.
    """
    operations = columns_of_traces((trace,))
    if not (operations.function == TXN).any():
        return Cycles(found={})
    graph = graph_of(operations)
    ww, rw = write_edges(graph)
    found: dict[str, int] = {}
    kinds: dict[str, tuple[Edges, ...]] = {
        "": (),
        "-process": (graph.process,),
        "-realtime": (graph.realtime,),
    }
    for suffix, time in kinds.items():
        counts = {
            "G0": _holding(graph, ww, *time),
            "G1c": _holding(graph, graph.wr, ww, *time),
            **_with_anti_dependencies(graph, rw, (graph.wr, ww, *time)),
        }
        found |= {name + suffix: count for name, count in counts.items() if count}
    return Cycles(found=found)


def _broken(trace: Trace) -> Verdict | None:
    reason = trace.claims.assumption_broken
    return Verdict(decision=Decision.ASSUMPTION_BROKEN, check=CHECK, reason=reason) if reason else None


def _backwards(operations: OperationColumns) -> dict[int, str]:
    """Traces with transactions in which an operation ended before it began, by index: an order of time has a
    cycle there without any transaction's fault."""
    wrong = np.flatnonzero(operations.completion_time < operations.invoke_time)[::-1]
    wrong = wrong[np.isin(operations.trace[wrong], operations.trace[operations.function == TXN])]
    return {
        int(operations.trace[row]): f"operation {operations.op_id[row]} completed before it was invoked"
        for row in wrong
    }


def judge_columns(operations: OperationColumns) -> list[tuple[int, Verdict]]:
    """As `judge_traces`, for operations that are already columns, with their traces."""
    findings: dict[int, list[Finding]] = defaultdict(list)
    backwards = _backwards(operations)
    concerned = set(operations.trace[operations.function == TXN].tolist()) - set(backwards)
    if concerned:
        for of, found in findings_of(graph_of(operations, suspects_only=True), concerned):
            findings[of].append(found)
    verdicts = []
    for index, trace in enumerate(operations.traces):
        verdict = _broken(trace)
        if verdict is None and index in backwards:
            verdict = Verdict(decision=Decision.ASSUMPTION_BROKEN, check=CHECK, reason=backwards[index])
        if verdict is None and index in findings:
            verdict = Verdict(decision=Decision.ILLEGAL, check=CHECK, findings=tuple(findings[index]))
        if verdict is not None:
            verdicts.append((trace.trace_id, verdict))
    return verdicts


def findings_of(graph: Graph, concerned: set[int]) -> Iterable[tuple[int, Finding]]:
    """The findings of some traces.

    Args:
        graph: the graph of the traces.
        concerned: the indices of those that are judged.

    Yields:
        (trace, finding): a shortest cycle of its smallest component, of the first kind that it has.
    """
    seen: set[int] = set()
    if not len(graph.wr):  # time alone is in no circle
        return
    weigh = np.arange(graph.nodes) < graph.rows
    for anomaly, kinds in (
        (READS, (graph.wr,)),
        (IN_PROCESS, (graph.wr, graph.process)),
        (IN_REAL_TIME, (graph.wr, graph.realtime)),
    ):
        best: dict[int, Array] = {}
        source, target, edges = _components(graph, kinds)
        for one in edges:
            nodes = source[one]
            trace = int(graph.trace[nodes[nodes < graph.rows].min()])
            if (
                trace not in seen
                and trace in concerned
                and (trace not in best or len(one) < len(best[trace]))
            ):
                best[trace] = one
        for trace, one in best.items():
            seen.add(trace)
            yield (
                trace,
                _finding(
                    graph,
                    anomaly,
                    _cycle(shortest_cycle(one, source, target, weigh), source, target, graph.rows),
                ),
            )


def _joined(kinds: Sequence[Edges]) -> tuple[Array, Array, Array, Array, Array]:
    source, target, log, offset, part = (
        np.concatenate([getattr(edges, name) for edges in kinds])
        for name in ("source", "target", "log", "offset", "part")
    )
    return source, target, log, offset, part


def _components(graph: Graph, kinds: Sequence[Edges]) -> tuple[Array, Array, list[Array]]:
    """All these edges, and for each component with a cycle its edges, as indices."""
    source, target, *_ = _joined(kinds)
    return source, target, inside_components(components(graph.nodes, source, target), source, target)


def _holding(graph: Graph, needed: Edges, *others: Edges) -> int:
    """The number of components that contain a cycle and an edge of the required kind."""
    _, _, edges = _components(graph, (needed, *others))
    return sum(bool((one < len(needed)).any()) for one in edges)


def _with_anti_dependencies(graph: Graph, rw: Edges, others: Sequence[Edges]) -> dict[str, int]:
    """Components with rw edges inside: G-single if one such edge closes a cycle of the others, otherwise
    G2-item."""
    counts = {"G-single": 0, "G2-item": 0}
    source, target, edges = _components(graph, (rw, *others))
    for one in edges:
        is_rw = one < len(rw)
        if not is_rw.any():
            continue
        beyond: dict[int, list[int]] = {}
        for edge in one[~is_rw].tolist():
            beyond.setdefault(int(source[edge]), []).append(int(target[edge]))
        closing = one[is_rw].tolist()
        single = any(_leads(beyond, int(target[edge]), int(source[edge])) for edge in closing)
        counts["G-single" if single else "G2-item"] += 1
    return counts


def _leads(beyond: dict[int, list[int]], start: int, goal: int) -> bool:
    todo, done = [start], {start}
    while todo:
        node = todo.pop()
        if node == goal:
            return True
        fresh = [other for other in beyond.get(node, ()) if other not in done]
        done.update(fresh)
        todo += fresh
    return False


def _cycle(edges: list[int], source: Array, target: Array, rows: int) -> list[tuple[int, int, int]]:
    """A cycle as hops between operations: (from row, to row, edge); edge is -1 for the order of time."""
    hops: list[tuple[int, int, int]] = []
    begun = -1
    for edge in edges:
        one, other = int(source[edge]), int(target[edge])
        begun = one if one < rows else begun
        if other < rows:
            hops.append((begun, other, edge if one < rows else -1))
    return hops


def _finding(graph: Graph, anomaly: str, hops: list[tuple[int, int, int]]) -> Finding:
    operations, wr = graph.columns.operations, graph.wr
    words, rows = [], []
    for one, other, edge in hops:
        name, next_name = (f"operation {operations.op_id[row]}" for row in (one, other))
        rows.append(one)
        if edge < 0:
            words.append(f"{name} ended before {next_name} began")
            continue
        poll, log = int(wr.part[edge]), int(wr.log[edge])
        rows.append(poll)
        topic = operations.topics[graph.columns.log_topic[log]]
        where = f"{topic}-{graph.columns.log_partition[log]} at offset {wr.offset[edge]}"
        words.append(f"{next_name} read what {name} wrote to {where}")
    first = next(edge for _, _, edge in hops if edge >= 0)
    log = int(wr.log[first])
    return Finding(
        anomaly=anomaly,
        check=CHECK,
        expected="an order of these transactions in which each is read after its commit",
        seen="; ".join(words),
        topic=operations.topics[graph.columns.log_topic[log]],
        partition=int(graph.columns.log_partition[log]),
        offset=int(wr.offset[first]),
        operations=tuple(int(operations.op_id[row]) for row in dict.fromkeys(rows)),
    )
