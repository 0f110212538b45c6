"""The finding for a part that a decider found illegal: a minimal set of operations, and the length of the
longest order.

Owns the text of a conviction without a search. Must not know how deciders decide.

A decider returns operations that convict the part. The general search checks these operations again, together
with the operations that could explain them and no others. This makes the set minimal, and it checks the
decider with every finding.
"""

from collections.abc import Sequence

from attrs import evolve

from fencepost.checkers.linearizability.deciders import Decided, decide
from fencepost.checkers.linearizability.explain import Shrinking, bare_finding, cut, listed
from fencepost.checkers.linearizability.history import Asked
from fencepost.checkers.linearizability.interned_steps import Table
from fencepost.checkers.linearizability.limits import Guard, LimitReached
from fencepost.checkers.linearizability.search_engine import SearchAnswer
from fencepost.checkers.models.base import Model
from fencepost.checkers.verdict import Finding

Reach = tuple[int, Asked | None]
"""(how many completions can be ordered, the operation that completes next). The operation is None if the
decider cannot name one."""


def explain_decided(
    part: Sequence[Asked], decided: Decided, table: Table, guard: Guard, name: str
) -> Finding:
    """The finding for a part that its decider convicts. May raise LimitReached.

    Args:
        part: the operations of the part.
        decided: the decider's answer.
        table: the model's states, calls and steps.
        guard: the limits of time and memory.
        name: the part, as the finding calls it.

    Returns:
        the finding with its certificate.
    """
    half = Guard(evolve(guard.limits, timeout_s=max(0.0, guard.seconds_left / 2)), outer=guard)
    model = table.model
    (done, culprit), earliest, decided = _shortest(model, part, decided, half)
    proof, exact = _minimal([earliest[op] for op in decided.convicting], part, decided, earliest, table, half)
    proof.sort(key=lambda one: (one is not culprit, one.invoke))
    answer_in_words = ""
    if culprit is not None:
        answer_in_words = (
            f"the first {done} completions can be ordered, the next one cannot: "
            f"{model.describe(culprit.call)} of process {culprit.operation.process}; "
        )
    shown = listed(model, proof, exact, decided.given)
    seen = f"{answer_in_words}{decided.because}; {shown} (decided without a search)"
    proven = tuple(one.operation.op_id for one in proof)
    return evolve(bare_finding(part, model, name), seen=seen, operations=proven)


def _shortest(
    model: Model, part: Sequence[Asked], whole: Decided, guard: Guard
) -> tuple[Reach, Sequence[Asked], Decided]:
    """Find by bisection how many completions can be ordered. Also returns the shortest illegal prefix, and
    the decider's answer for it."""
    known = sorted((one for one in part if one.known), key=lambda one: one.complete)
    legal, illegal, shortest, decided = -1, len(known) - 1, part, whole
    while illegal - legal > 1:
        guard.check()
        middle = (legal + illegal) // 2
        prefix = cut(part, known[middle].complete)
        answer = decide(model, prefix)
        if answer is None:
            return (0, None), part, whole
        if answer.convicting:
            illegal, shortest, decided = middle, prefix, answer
        else:
            legal = middle
    return (illegal, known[illegal]), shortest, decided


def _minimal(
    convicting: list[Asked],
    part: Sequence[Asked],
    decided: Decided,
    prefix: Sequence[Asked],
    table: Table,
    guard: Guard,
) -> tuple[list[Asked], bool]:
    """Those of the convicting operations that are needed, and whether they are minimal (no limit ended the
    work)."""
    of = {one.operation.op_id: one for one in part}
    scope = [of[prefix[op].operation.op_id] for op in decided.scope]
    # Look in the whole part: an operation that a prefix cuts off need not happen in it, but its result may be
    # what convicts.
    needed = [answer_in_words for one in convicting if (answer_in_words := of[one.operation.op_id]).known]
    others = {one.operation.op_id for one in scope} - {one.operation.op_id for one in needed}
    shrinking = Shrinking(scope, needed, table, guard, relaxed=others)
    try:
        answer = shrinking.answer(others)
        assert answer is not SearchAnswer.LINEARIZABLE, (
            f"the decider convicts what has an order: {sorted(of)[:20]}"
        )
        shrinking.exact = answer is SearchAnswer.ILLEGAL
        if shrinking.exact:
            shrinking.without(1)
    except (LimitReached, MemoryError):
        shrinking.exact = False
        shrinking.needed = [one for one in needed if one.operation.op_id not in shrinking.relaxed]
    return shrinking.needed, shrinking.exact
