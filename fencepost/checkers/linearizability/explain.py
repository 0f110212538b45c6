"""Why a part is not linearizable: the longest prefix that has an order, and a minimal set of operations that
exclude each other.

Owns the order of the longest linearizable prefix, and the shrinking. Must not know verdicts of other
checkers.

Shrinking relaxes operations and never deletes them. Without a write, a history may be illegal only because
reads of its value are no longer explained. A relaxed operation is treated as if its outcome were unknown: it
may have happened at any time after its invocation, or never. Relaxing only allows more histories. So what is
still illegal is a proof: *these operations fit in no order, whatever the others did*. The set is minimal: no
member of it can be relaxed too, unless a limit ended the shrinking.
"""

from collections.abc import Iterable, Sequence

from attrs import define, evolve, field

from fencepost.checkers.linearizability.history import Arrays, Asked, arrays_of, relax, with_relaxed
from fencepost.checkers.linearizability.interned_steps import Table
from fencepost.checkers.linearizability.limits import Guard, LimitReached
from fencepost.checkers.linearizability.search_engine import SearchAnswer, SearchOutcome, search
from fencepost.checkers.models.base import Model
from fencepost.checkers.operation_columns import NEVER
from fencepost.checkers.verdict import Finding
from fencepost.traces.operations import Outcome as Told

MOST_EFFORT = 10_000_000
"""Effort of all attempts to shrink one part together, in the engine's unit: one or two seconds."""
OF_ONE = 50_000
"""Effort of one attempt on a short history."""
OF_ONE_EACH = 50
"""Effort of one attempt per operation, if that is more than OF_ONE."""
PREFIX_EFFORT = 5_000_000
"""Effort of the search for the longest prefix."""
SET_UP = 20
"""Effort that is counted per operation for preparing an attempt."""


def prefix_order(arrays: Arrays, outcome: SearchOutcome, table: Table) -> tuple[list[int], int]:
    """The operations (numbers) in the order in which they happen on the way to `outcome`, and the resulting
    state.

    It follows the rule of the search: open observers that are possible happen at once.

    Args:
        arrays: the part.
        outcome: the answer of a search.
        table: the model's states, calls and steps.

    Returns:
        the operations in order, and the number of the resulting state.
    """
    part, levels = arrays.part, len(arrays.part.returns)
    happened: set[int] = set()
    waiting: list[int] = []
    order: list[int] = []
    state, level, begun = table.state(table.model.init()), 0, 0
    for op in (*outcome.path, None):
        while True:
            now = int(part.invoked[level]) if level < levels else begun
            waiting += [new for new in range(begun, now) if part.observes[new]]
            begun = now
            able = [free for free in waiting if table.step(state, int(part.call[free])) == state]
            waiting = [free for free in waiting if free not in able]
            happened.update(able)
            order += able
            if level == levels or int(part.returns[level]) not in happened:
                break
            level += 1
        if op is not None:
            state = table.step(state, int(part.call[op]))
            happened.add(op)
            order.append(op)
    return order, state


def cut(part: Iterable[Asked], end: int) -> list[Asked]:
    """Cut a part at a moment.

    Args:
        part: the operations of the part.
        end: the moment, in nanoseconds; operations invoked after it are left out.

    Returns:
        the remaining operations. One that completes after `end` keeps its result, but need not happen.
    """
    begun = (one for one in part if one.invoke <= end)
    return [one if one.complete <= end else evolve(one, complete=NEVER) for one in begun]


@define
class Shrinking:
    """The state of the shrinking of one part."""

    # All operations of the part that are considered.
    everyone: list[Asked]
    # The operations that may be needed for the proof, the least likely first.
    needed: list[Asked]
    # The states, calls and steps of the model.
    table: Table
    # The limits of time and memory.
    guard: Guard
    # Op ids of the operations that are relaxed. Disjoint from those of `needed`.
    relaxed: set[int] = field(factory=set)
    # False if a limit ended the shrinking, so that the set may not be minimal.
    exact: bool = True
    # Remaining effort, in the engine's unit.
    left: int = MOST_EFFORT

    def keep_last(self) -> None:
        """Find how many of the likeliest operations suffice, by doubling. Most proofs are short and near the
        end."""
        size = 1
        while size < len(self.needed):
            trial = {one.operation.op_id for one in self.needed[:-size]}
            if self.answer(trial) is SearchAnswer.ILLEGAL:
                self.relaxed, self.needed = trial, self.needed[-size:]
                return
            size *= 2

    def without(self, size: int) -> None:
        """Relax blocks of this many operations if the rest is still illegal."""
        kept: list[Asked] = []
        for begin in range(0, len(self.needed), size):
            block = self.needed[begin : begin + size]
            trial = self.relaxed | {one.operation.op_id for one in block}
            answer = self.answer(trial)
            if answer is SearchAnswer.ILLEGAL:
                self.relaxed = trial
            else:
                self.exact &= answer is SearchAnswer.LINEARIZABLE or size > 1
                kept += block
        self.needed = kept

    def answer(self, relaxed: set[int]) -> SearchAnswer:
        """Whether the rest is illegal while these operations are relaxed."""
        self.guard.check()
        if self.left <= 0:
            return SearchAnswer.GAVE_UP
        part = with_relaxed(self.table.model, self.everyone, relaxed)
        most = min(self.left, max(OF_ONE, OF_ONE_EACH * len(part)))
        outcome = search(arrays_of(part, self.table), self.table, self.guard, most_effort=most)
        self.left -= outcome.effort + SET_UP * len(self.everyone)
        return outcome.answer


def shrunk(arrays: Arrays, outcome: SearchOutcome, table: Table, guard: Guard) -> tuple[list[Asked], bool]:
    """Find a minimal set of operations that proves the part illegal.

    Args:
        arrays: the part.
        outcome: the answer of the search that found it illegal.
        table: the model's states, calls and steps.
        guard: the limits of time and memory.

    Returns:
        the operations of the set, first the one that fits in no order; and whether the set is minimal (False
        if a limit ended the shrinking).
    """
    culprit = arrays.asked[int(arrays.part.returns[outcome.level])].operation.op_id
    # a search that gave up knows no illegal prefix: all operations together are the prefix
    end = arrays.asked[int(arrays.part.returns[outcome.level])].complete
    part = cut(arrays.asked, end) if outcome.answer is SearchAnswer.ILLEGAL else list(arrays.asked)
    answered = [one for one in part if one.operation.outcome is Told.OK]
    answered.sort(key=lambda one: (one.operation.op_id == culprit, one.known, one.complete))
    shrinking = Shrinking(part, answered, table, guard)
    try:
        shrinking.keep_last()
        size = len(shrinking.needed) // 2
        while size:
            shrinking.without(size)
            size //= 2
        # try again with all operations: those that completed after the prefix count there
        shrinking.everyone = list(arrays.asked)
        proof = {one.operation.op_id for one in shrinking.needed}
        shrinking.relaxed = {one.operation.op_id for one in arrays.asked} - proof
        shrinking.without(1)
    except (LimitReached, MemoryError):
        shrinking.exact = False
        shrinking.needed = [one for one in shrinking.needed if one.operation.op_id not in shrinking.relaxed]
    order = sorted(shrinking.needed, key=lambda one: (one.operation.op_id != culprit, one.invoke))
    return order, shrinking.exact


def bare_finding(part: Iterable[Asked], model: Model, name: str) -> Finding:
    """The finding without shrinking: all operations of the part together have no order.

    Args:
        part: the operations of the part.
        model: the sequential model.
        name: the part, as the finding calls it.

    Returns:
        the finding.
    """
    known = tuple(one.operation.op_id for one in part if one.known)
    return Finding(
        anomaly="not_linearizable",
        check="linearizability",
        expected=f"an order of the operations{f' on {name}' if name else ''} that the model {model.name} "
        f"allows",
        seen=f"{len(known)} operations that fit in no order (the proof was not shrunk)",
        operations=known,
    )


def _wide(model: Model, part: Sequence[Asked]) -> Table:
    """A table for a part in which any operation may be relaxed."""
    relaxed = (relax(model, one) for one in part)
    return Table(model, lens=model.lens([one.call for one in (*part, *relaxed) if one is not None]))


def listed(model: Model, proof: Sequence[Asked], exact: bool, given: str) -> str:
    """A proof as text.

    Args:
        model: the sequential model.
        proof: the operations of the proof.
        exact: whether the proof is minimal.
        given: what else it depends on.

    Returns:
        the text.
    """
    words = "; ".join(f"{model.describe(one.call)} [op {one.operation.op_id}]" for one in proof[:8])
    more = f" and {len(proof) - 8} more" if len(proof) > 8 else ""
    fits = "this one fits in no order" if len(proof) == 1 else f"these {len(proof)} fit in no order"
    return f"{'' if exact else 'not further shrunk: '}{fits}, {given}: {words}{more}"


def explain(arrays: Arrays, outcome: SearchOutcome, table: Table, guard: Guard, name: str) -> Finding:
    """Explain why a part is not linearizable.

    Args:
        arrays: the part.
        outcome: the answer of the search that found it illegal.
        table: the model's states, calls and steps.
        guard: the limits of time and memory.
        name: the part, as the finding calls it.

    Returns:
        the finding with its certificate.

    Raises:
        LimitReached: in any step, once a limit is reached.
    """
    half = Guard(evolve(guard.limits, timeout_s=max(0.0, guard.seconds_left / 2)), outer=guard)
    model = table.model
    if arrays.foresees:  # this search ends early; the longest prefix needs another search, without foresight
        outcome = search(evolve(arrays, foresees=False), table, half, most_effort=PREFIX_EFFORT)
        assert outcome.answer is not SearchAnswer.LINEARIZABLE, (
            f"rule 3 refused a history that is linearizable: {name}"
        )
    least = "" if outcome.answer is SearchAnswer.ILLEGAL else "at least "
    culprit = arrays.asked[int(arrays.part.returns[outcome.level])]
    _, state = prefix_order(arrays, outcome, table)
    proof, exact = shrunk(arrays, outcome, _wide(model, arrays.asked), half)
    seen = (
        f"{least}the first {outcome.level} completions can be ordered (for instance to the state "
        f"{str(model.describe_state(table.states[state]))[:200]}), the next one cannot: "
        f"{model.describe(culprit.call)} of process "
        f"{culprit.operation.process}; {listed(model, proof, exact, 'whatever the others did')}"
    )
    proven = tuple(one.operation.op_id for one in proof)
    return evolve(bare_finding(arrays.asked, model, name), seen=seen, operations=proven)
