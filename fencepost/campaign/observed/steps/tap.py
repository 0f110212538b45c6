"""The steps of one broker's process: each is compared with what the models of its parts say.

Owns the order: look before the step, step, compare. It only reads: a run is the same with it. What is wrong
is recorded as an event (ANSWERED), and judged by the check `meantime`.
"""

from collections.abc import Callable, Iterable
from typing import Any

from attrs import define, field

from fencepost.campaign.observed.differences import NOWHERE, Differences
from fencepost.campaign.observed.justified import Reason
from fencepost.campaign.observed.steps.follower_steps import FollowerSteps
from fencepost.campaign.observed.steps.group_steps import GroupSteps
from fencepost.campaign.observed.steps.transaction_steps import TransactionSteps
from fencepost.impl.core.core_interface import Effect, Input
from fencepost.sim.host import Host
from fencepost.traces.events import Event


@define(eq=False)
class StepTap:
    """The steps of one broker."""

    host: Host
    # Virtual nanoseconds.
    now: Callable[[], int]
    record: Callable[[Event], None]
    groups: GroupSteps = field(factory=GroupSteps)
    followers: FollowerSteps = field(factory=FollowerSteps)
    transactions: TransactionSteps = field(factory=TransactionSteps)
    differences: Differences = field(init=False)

    @differences.default
    def _none_yet(self) -> Differences:
        return Differences(self.now, self.record)

    def step(self, core: Any, input: Input, now: int) -> list[Effect]:
        """Step the broker, and look at what it did.

        Args:
            core: the broker.
            input: of the step.
            now: host time in nanoseconds.

        Returns:
            the effects of the step.
        """
        groups = self.groups.watches(core, input)
        followers = self.followers.watches(core, input)
        transactions = self.transactions.watches(core, input)
        timers = None if groups is None else set(self.host.timers)
        effects: list[Effect] = core.step(input, now)
        if core.shutdown.shutting_down:
            return effects
        if groups is not None and timers is not None:
            self._add(groups.judged(effects, timers))
        if followers is not None:
            self._add(followers.judged())
        if transactions is not None:
            self._add(transactions.judged(effects))
        return effects

    def _add(self, reasons: Iterable[Reason]) -> None:
        for reason in reasons:
            self.differences.add(self.host.node, "step", NOWHERE, "a step", reason)

    def ended(self) -> None:
        """The process ends."""
        self.groups.forget()
        self.transactions.forget()
