"""The data path of replication as a pure transition system: the legal steps of Kafka's ZooKeeper-era
replicas, and their invariants.

Owns the slots, and which steps read and write which; replica_steps.py has the steps. Must not know an
implementation, time, or messages other than LeaderAndIsr.

Atomicity. ZooKeeper's and the controller's steps are one action each. A fetch is one action (request,
response, append at the follower). The leader learns the follower's log end from the *request*, and the
follower gets the leader's high watermark from before, so both lag as in Kafka. A truncation is one round of
OffsetsForLeaderEpoch. A leader's ISR change is one action (a CAS that succeeds). LeaderAndIsr may be delayed
or lost: each replica may learn any epoch above its own at any time, or never. The refinement covers the
remaining interleavings (refinement/). Sources: KIP-101, KIP-279, KIP-320, KAFKA-7128, KAFKA-7415; the bounds
are `Constants`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from itertools import permutations
from typing import Any, ClassVar

from attrs import field, frozen

from fencepost.model.bounded_system import BoundedSystem
from fencepost.model.explore.transition_system import Part, Rule, Symmetry, Value, rule_of
from fencepost.model.replication import replica_steps as steps
from fencepost.model.replication import replication_invariants as invariants
from fencepost.model.replication.replication_state import (
    Constants,
    Replica,
    ReplicationState,
    describe,
    renamed,
)

ACTIONS = (
    "elect",
    "shrink_by_controller",
    "become_leader",
    "become_follower",
    "append",
    "fetch",
    "truncate",
    "advance_high_watermark",
    "shrink_isr",
    "expand_isr",
    "out_of_range",
    "crash",
    "restart",
    "list_offsets",
    "delete_oldest",
    "start_over",
)


@frozen(eq=False, slots=False)
class Replication(BoundedSystem[ReplicationState]):
    """The transition system for some constants (explore/slotted.py documents the methods).

    Slots: each replica, ZooKeeper's quorum, the committed records, the used part of the bounds, and the
    answers to ListOffsets if they are enabled.
    """

    STATE: ClassVar[Any] = ReplicationState
    INVARIANTS: ClassVar[Any] = invariants
    IN_WORDS: ClassVar[Callable[[Any], str]] = describe

    constants: Constants
    checks: tuple[str, ...] = field(default=tuple(invariants.OF_STATES))

    @property
    def action_names(self) -> tuple[str, ...]:
        """The names of actions. `out_of_range` needs a follower that is ahead of its leader: a loss, or a
        missing protection."""
        constants = self.constants
        absent = set()
        if constants.crashes == 0:
            absent |= {"crash", "restart"}
        if constants.lists == 0:
            absent |= {"list_offsets"}
        if constants.log_starts == 0:
            absent |= {"delete_oldest", "start_over"}
        if not (constants.losses or constants.drop):
            absent |= {"out_of_range"}
        return tuple(name for name in ACTIONS if name not in absent)

    @cached_property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """Replicas may be renumbered. Values are numbered in the order of their appends, so they have no
        symmetry left."""
        count = self.constants.replicas
        others = range(count, len(self.kinds))
        return tuple(
            Symmetry((*numbers, *others), partial(renamed, numbers))
            for numbers in permutations(range(count))
            if numbers != tuple(range(count))
        )

    @property
    def kinds(self) -> tuple[int, ...]:
        """All replicas are of one kind."""
        return (0,) * self.constants.replicas + (1, 2, 3) + ((4,) if self.constants.lists else ())

    @property
    def spread(self) -> tuple[int | None, ...]:
        """Replicas, and the rest."""
        return (self.constants.replicas, *(None,) * 6)

    def slots_of(self, state: ReplicationState) -> tuple[Value, ...]:
        """Replicas, quorum, committed, used."""
        used = (state.values, state.crashes, state.lost)
        asked = (state.listed,) if self.constants.lists else ()
        return (*state.replicas, state.quorum, state.committed, used, *asked)

    def state_of(self, slots: Sequence[Any]) -> ReplicationState:
        """From slots."""
        count = self.constants.replicas
        quorum, committed, (values, crashes, lost), *asked = slots[count:]
        return ReplicationState(tuple(slots[:count]), quorum, committed, values, crashes, lost, *asked)

    def initial(self) -> Iterable[ReplicationState]:
        """Replica 0 leads epoch 0, all others follow it, all logs are empty, all replicas are in the ISR."""
        count = self.constants.replicas
        leader = Replica(
            (),
            steps.entered(self.constants, (), 0, 0)
            if self.constants.keeps("assign_epoch_on_election")
            else (),
            0,
            0,
            0,
            False,
            steps.no_ends(self.constants, 0, 0),
        )
        follower = Replica((), (), 0, 0, 0, False, ())
        yield ReplicationState((leader,) + (follower,) * (count - 1), ((0, (1 << count) - 1),), (), 0, 0, 0)

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """The rules of the controller, then of each replica: its role, as a leader, as a follower of each
        other one, and its crash."""
        rule = partial(rule_of, self.constants)
        count = self.constants.replicas
        quorum, committed, used = count, count + 1, count + 2
        rules = [rule(("elect", "shrink_by_controller"), (quorum,), (quorum,), steps.control)]
        for number in range(count):
            leads = Part((number,), partial(steps.leads, number))
            rules += [
                rule(
                    ("restart", "become_leader", "become_follower"),
                    (number, quorum),
                    (number,),
                    steps.role,
                    number,
                ),
                rule(("append",), (number, used), (number, used), steps.append, number, when=leads),
                rule(
                    ("advance_high_watermark",),
                    (number, quorum, committed),
                    (number, committed),
                    steps.advance,
                    number,
                    when=Part((number, quorum), partial(steps.may_advance, self.constants, number)),
                ),
                rule(
                    ("shrink_isr", "expand_isr"),
                    (number, quorum),
                    (quorum,),
                    steps.change_isr,
                    number,
                    when=leads,
                ),
                *(
                    rule(
                        ("truncate", "start_over", "out_of_range", "fetch"),
                        (number, other),
                        (number, other),
                        steps.follow,
                        number,
                        other,
                        when=Part((number,), partial(steps.leads, other)),
                    )
                    for other in range(count)
                    if other != number
                ),
                rule(("crash",), (number, used), (number, used), steps.crash, number),
            ]
            rules += self._optional_rules(number, leads)
        return tuple(rules)

    def _optional_rules(self, number: int, leads: Part) -> Iterator[Rule]:
        """The optional rules of a replica, which constants enable. leads: whether it leads."""
        rule = partial(rule_of, self.constants)
        if self.constants.log_starts:
            own = (number,)
            yield rule(("delete_oldest",), own, own, steps.delete_oldest, number)
        if self.constants.lists:
            listed = self.constants.replicas + 3
            yield rule(("list_offsets",), (number, listed), (listed,), steps.list_offsets, number, when=leads)
