"""Groups corrected by cause: who owns a step, which traces move, which groups are one."""

import numpy as np
import pytest

from fencepost.mining.triage.owning import ENOUGH, by_cause, characteristic
from fencepost.mining.triage.splitting import Items


def items_of(rows: list[str], seen: str = "") -> Items:
    """Signatures as strings of letters: upper-case letters are clauses of judges, R one of the model, the
    others steps; `seen` are steps that healthy traces have too."""
    letters = sorted({letter for row in rows for letter in row})
    return Items(
        present=np.array([[letter in row for letter in letters] for row in rows]),
        names=tuple(
            f"clause: {'conformance' if one == 'R' else 'a'}: {one}" if one.isupper() else f"step: {one}"
            for one in letters
        ),
        common=np.array([0.1 if letter in seen else 0.0 for letter in letters]),
    )


def groups(*together: list[str], seen: str = "", healthy: int = ENOUGH) -> list[str]:
    """The groups that become of these, as words."""
    rows = [row for each in together for row in each]
    labels = [number for number, each in enumerate(together) for _ in each]
    found = by_cause(labels, items_of(rows, seen), [1] * len(rows), healthy)
    return sorted(
        " ".join(sorted(rows[at] for at in range(len(rows)) if found[at] == one)) for one in set(found)
    )


def test_a_trace_goes_to_the_group_that_owns_its_step() -> None:
    """Rule: a trace that ends in another verdict goes to the group that owns its strange step; a step that
    healthy traces have moves nothing."""
    assert groups(["Ax", "Ax", "Ax"], ["A", "Ay", "Ax"]) == ["A Ay", "Ax Ax Ax Ax"]
    assert groups(["Ax", "Ax", "Ax"], ["A", "Ay", "Ax"], seen="x") == ["A Ax Ay", "Ax Ax Ax"]


def test_what_a_group_owns_keeps_its_traces() -> None:
    """Rule: a trace with a foreign step stays where its own step, or a clause that nobody else has, is as
    strong."""
    assert groups(["Ax", "Ax", "Ax"], ["By", "By", "By", "Bxy"]) == ["Ax Ax Ax", "Bxy By By By"]
    assert groups(["Ax", "Ax", "A"], ["B", "B", "Bx"]) == ["A Ax Ax", "B B Bx"]


def test_groups_that_share_a_step_are_one() -> None:
    """Rule: two verdicts of one cause become one group if nearly all traces have the step and no other
    group does; a step that a third group has too joins nothing, and neither does a clause."""
    assert groups(["Ax", "Ax"], ["Bx", "Bx"], ["C", "C"]) == ["Ax Ax Bx Bx", "C C"]
    third = ["Cx"] * 3 + ["C"] * 4
    assert len(groups(["Ax", "Ax"], ["Bx", "Bx"], third)) == 3
    assert groups(["Ax", "Ax"], ["Ay", "Ay"]) == ["Ax Ax", "Ay Ay"]


def test_groups_with_causes_of_their_own_stay_apart() -> None:
    """Rule: a step that two groups share is a consequence if steps of their own exclude each other and
    explain more traces; it is the cause if it explains all, and four traces against three are luck."""
    assert groups(["Axy"] * 3 + ["Ay"], ["Bxz"] * 4) == ["Axy Axy Axy Ay", "Bxz Bxz Bxz Bxz"]
    assert len(groups(["Axy"] * 4, ["Bxz"] * 4)) == 1
    assert len(groups(["Axy"] * 3 + ["Ax"], ["Bxz"] * 3 + ["Bz"])) == 1
    assert len(groups(["Axy"] * 3 + ["Ay"], ["Bxz"] * 3)) == 1


@pytest.mark.parametrize("healthy", [0, ENOUGH])
def test_groups_of_which_the_model_refuses_the_same_step_are_one(healthy: int) -> None:
    """Rule: what the model expected is the cause, however few healthy traces there are; not of a group
    in which many traces lack it, or if another group has it too."""
    assert groups(["Rx", "Rx"], ["ARy", "ARy"], ["A", "A"], healthy=healthy) == ["A A", "ARy ARy Rx Rx"]
    assert len(groups(["Rx", "Rx"], ["Ry", "Ay", "Ay"], healthy=healthy)) == 2
    assert len(groups(["Rx", "Rx"], ["Ry", "Ry"], ["Rz"] * 3 + ["z"] * 4, healthy=healthy)) == 3


def test_the_verdict_is_no_cause() -> None:
    """Rule: that a wait never ended joins nothing."""
    items = Items(
        present=np.ones((4, 1), bool), names=("step: liveness_failed every ISR is full",), common=np.zeros(1)
    )
    assert by_cause([0, 0, 1, 1], items, [5, 5, 5, 5], ENOUGH) == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("item", "joined"),
    [
        ("left: a transaction that is open", True),
        ("answer: append: an id of two producers", True),
        ("stands: broker # runs and is not registered in ZooKeeper", False),
    ],
)
def test_a_state_that_cannot_stay_so_is_a_cause(item: str, joined: bool) -> None:
    """Rule: what is left, or was answered, may be a cause, as a step may; what a judge says of a wait is a
    verdict."""
    items = Items(present=np.ones((4, 1), bool), names=(item,), common=np.zeros(1))
    assert (len(set(by_cause([0, 0, 1, 1], items, [5, 5, 5, 5], ENOUGH))) == 1) is joined


def test_without_healthy_traces_nothing_is_a_cause() -> None:
    """Rule: where too few healthy traces say what is usual, groups stay, although all share steps."""
    assert groups(["Ax", "Ax"], ["Bx", "Bx"], healthy=ENOUGH - 1) == ["Ax Ax", "Bx Bx"]


def test_a_trace_with_two_bugs_is_in_two_groups() -> None:
    """Rule: a trace shows another group's bug too if it has most of what is characteristic of that one, a
    step and a clause among it; a step alone, or a step that healthy traces have, is not enough."""
    rows = [*["Ax"] * 3, *["By"] * 3, "ABxy", "Axy"]
    labels = [1, 1, 1, 2, 2, 2, 1, 1]

    def others(seen: str = "", healthy: int = ENOUGH) -> list[list[int]]:
        items = items_of(rows, seen)
        found = characteristic(labels, items, [1] * len(rows), healthy)
        return [found.others(label, present) for label, present in zip(labels, items.present, strict=True)]

    assert others() == [[]] * 6 + [[2], []]
    assert others(seen="y") == others(healthy=0) == [[]] * 8
