"""A counterexample of the replication model as a story: its steps, era by era.

Owns: reading counterexamples (TLC's and the explorer's, as --json prints them), and the order in which their
steps are printed. Must not know plans.

A model checker puts independent steps in any order: an old leader may append after two elections that it has
not heard of. A story is in the order of leader epochs, which is another path of the model to the same
end; where it would not be, the order stays as it was.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from attrs import frozen

from fencepost.model.explore.paths import path_through
from fencepost.model.explore.transition_system import Step
from fencepost.model.replication.replication_state import NOBODY, Constants, Replica, ReplicationState
from fencepost.model.replication.replication_system import Replication
from fencepost.traces.errors import FencepostError

CONTROL = ("elect", "shrink_by_controller")
"""Steps of the controller: each begins an era."""
FOLLOWING = ("fetch", "truncate", "out_of_range")
"""Steps of a follower with its leader."""


@frozen(kw_only=True)
class StoryStep:
    """One step."""

    action: tuple[Any, ...]
    # The states around it.
    before: ReplicationState
    after: ReplicationState
    # The leader epoch that it belongs to.
    era: int

    @property
    def name(self) -> str:
        """Of the action."""
        return str(self.action[0])

    @property
    def actor(self) -> int:
        """The replica that acts; whom the controller speaks of."""
        return int(self.action[1])


@frozen(kw_only=True)
class Story:
    """steps: in the order of eras. constants: of the model, with what is dropped."""

    constants: Constants
    steps: tuple[StoryStep, ...]

    @property
    def eras(self) -> int:
        """How many there are, the one of the beginning included."""
        return len(self.steps[-1].after.quorum)

    def at_end_of(self, era: int) -> ReplicationState:
        """The state after the last step of an era."""
        before = [step for step in self.steps if step.era <= era]
        return before[-1].after if before else self.steps[0].before


def story_of(constants: Constants, path: Sequence[Step]) -> Story:
    """The story of a path; its first step is the beginning."""
    actions = [step.action for step in path[1:]]
    if not actions:
        raise FencepostError(
            expected="a counterexample with steps", seen="the initial state", where="a counterexample"
        )
    system = Replication(constants, ())
    beginning: ReplicationState = next(iter(system.initial()))
    steps_in_order = _told(system, beginning, actions)
    assert steps_in_order is not None, "a path of the model is one"
    ordered = _told(
        system, beginning, [step.action for step in sorted(steps_in_order, key=lambda step: step.era)]
    )
    if ordered is None or ordered[-1].after != steps_in_order[-1].after:
        ordered = steps_in_order
    return Story(constants=constants, steps=tuple(ordered))


def _told(
    system: Replication, state: ReplicationState, actions: Iterable[tuple[Any, ...]]
) -> list[StoryStep] | None:
    """The steps; None if one is not enabled."""
    steps_in_order: list[StoryStep] = []
    for action in actions:
        if action not in set(system.actions(state)):
            return None
        after = system.apply(state, action)
        steps_in_order.append(
            StoryStep(action=action, before=state, after=after, era=_era(action, state, after))
        )
        state = after
    return steps_in_order


def _era(action: tuple[Any, ...], before: ReplicationState, after: ReplicationState) -> int:
    """The highest leader epoch that a step has to do with: of who acts, or of who serves."""
    if action[0] in CONTROL:
        return len(after.quorum) - 1
    if action[0] in ("shrink_isr", "expand_isr"):
        return len(before.quorum) - 1
    replica = after.replicas[int(action[1])]
    if action[0] in FOLLOWING and replica.leader > NOBODY:
        return max(replica.epoch, after.replicas[replica.leader].epoch)
    return max(replica.epoch, 0)


# ---- reading


def read_counterexample(found: Any, drop: Iterable[str], where: str) -> Story:
    """What `model tlc check --json` or `model explore --json` printed. drop: protections, by name; the
    explorer's output knows its own. Raises FencepostError."""
    try:
        if isinstance(found["counterexample"], dict):
            return _of_tlc(found["counterexample"]["states"], frozenset(drop))
        return _of_explorer(found)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, StopIteration) as error:
        raise FencepostError(
            expected="a counterexample of Replication, as `fencepost model tlc check --json` or `model "
            "explore replication --json` print it",
            seen=f"{type(error).__name__}: {error}",
            where=where,
        ) from None


def _of_explorer(found: Any) -> Story:
    bounds = {name: value for name, value in found["constants"].items() if name != "drop"}
    constants = Constants(**bounds, drop=frozenset(found["constants"]["drop"]))
    system = Replication(constants, ())
    state = next(iter(system.initial()))
    path = [Step(("init",), state)]
    for step in found["counterexample"][1:]:
        action = tuple(step["action"])
        if action not in set(system.actions(state)):
            raise ValueError(f"{action} is no step from there")
        state = system.apply(state, action)
        path.append(Step(action, state))
    return story_of(constants, path)


def _of_tlc(states: Sequence[Any], drop: frozenset[str]) -> Story:
    read = [_state(state["variables"]) for state in states]
    constants = Constants(
        replicas=len(read[0].replicas),
        log_size=1_000,
        epochs=len(read[-1].quorum) - 1,
        values=max(state.values for state in read),
        crashes=max(state.crashes for state in read),
        losses=max(state.lost for state in read),
        drop=drop,
    )
    system = Replication(constants, ())
    try:
        path = path_through(system, system.initial(), read)
    except (AssertionError, StopIteration):
        raise FencepostError(
            expected="a behaviour of Replication without the protections named by --drop",
            seen="a step that no action makes",
            where="the counterexample",
            hint="name the protection that was dropped",
        ) from None
    return story_of(constants, path)


def _state(variables: Any) -> ReplicationState:
    count = len(variables["log"])

    def of(name: str) -> list[Any]:
        return [variables[name][str(number)] for number in range(count)]

    replicas = tuple(
        Replica(
            log=tuple((record["epoch"], record["value"]) for record in log),
            epochs=tuple((entry["epoch"], entry["start"]) for entry in cache),
            high_watermark=watermark,
            epoch=epoch,
            leader=leader,
            truncating=truncating,
            ends=tuple(ends[str(number)] for number in range(count)) if ends else (),
        )
        for log, cache, watermark, epoch, leader, truncating, ends in zip(
            *(
                of(name)
                for name in ("log", "cache", "highWatermark", "leaderEpoch", "leader", "truncating", "ends")
            ),
            strict=True,
        )
    )
    return ReplicationState(
        replicas=replicas,
        quorum=tuple(
            (one["leader"], sum(1 << member for member in one["isr"])) for one in variables["quorum"]
        ),
        committed=tuple((one["epoch"], one["value"], one["exposedIn"]) for one in variables["committed"]),
        values=variables["appended"],
        crashes=variables["crashes"],
        lost=variables["lost"],
        listed=tuple((one["epoch"], one["end"]) for one in variables["listed"]),
    )
