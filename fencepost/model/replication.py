"""The data path of replication as a pure transition system: what Kafka's ZooKeeper-era replicas may do, and what must hold.

Owns: the actions and how they change a state. Must not know how an implementation does it, nor time, nor messages other than LeaderAndIsr.

Atomicity. ZooKeeper's and the controller's steps are one action each. A fetch is one action (request, answer, append at the follower): the leader learns the
follower's log end from the *request*, the follower gets the leader's high watermark as it was, so both lag as in Kafka. A truncation is one round of
OffsetsForLeaderEpoch. A leader's ISR change is one action (a CAS that succeeds). LeaderAndIsr is delayed and lost freely: each
replica may learn any epoch above its own at any time, or never. The interleavings that remain between those are the refinement's matter (refinement/).
Sources: KIP-101, KIP-279, KIP-320, KAFKA-7128, KAFKA-7415; the bounds are `Constants`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import permutations
from typing import Any

from attrs import field, frozen

from fencepost.model import epochs as cache
from fencepost.model import guards
from fencepost.model import replication_invariants as invariants
from fencepost.model.explore.slotted import SlottedSystem
from fencepost.model.explore.system import Action, Part, Rule, Symmetry, Value
from fencepost.model.replication_state import (
    DOWN,
    NOBODY,
    Committed,
    Constants,
    Listed,
    Quorum,
    Replica,
    State,
    Used,
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
)

Steps = Iterator[tuple[Action, tuple[Value, ...]]]
"""Enabled actions, each with the values that it writes."""


def members(isr: int, replicas: int) -> list[int]:
    """The replicas of a bit set."""
    return [replica for replica in range(replicas) if isr >> replica & 1]


@frozen(eq=False, slots=False)
class Replication(SlottedSystem[State]):
    """The transition system for some constants (explore/slotted.py says what each method promises). checks: the invariants to check, by name.

    Slots: each replica, ZooKeeper's quorum, what was committed, how much of the bounds is used, and what ListOffsets told if anybody asks.
    """

    constants: Constants
    checks: tuple[str, ...] = field(default=tuple(invariants.OF_STATES))

    def _keeps(self, protection: str) -> bool:
        return protection not in self.constants.drop

    @property
    def action_names(self) -> tuple[str, ...]:
        """`out_of_range` needs a follower that is ahead of its leader: a loss, or a missing protection."""
        constants = self.constants
        absent = set()
        if constants.crashes == 0:
            absent |= {"crash", "restart"}
        if constants.lists == 0:
            absent |= {"list_offsets"}
        if not (constants.losses or constants.drop):
            absent |= {"out_of_range"}
        return tuple(name for name in ACTIONS if name not in absent)

    @cached_property
    def parts(self) -> Mapping[str, tuple[Part, ...]]:
        """Invariants of each state."""
        made = invariants.parts(self.constants.replicas, self.constants.lists)
        return {name: made[name] for name in invariants.OF_STATES if name in self.checks}

    @cached_property
    def goals(self) -> Mapping[str, tuple[Part, ...]]:
        """What a useful set of constants reaches."""
        return invariants.goals(self.constants.replicas)

    @property
    def step_invariants(self) -> Mapping[str, Callable[[State, Action, State], bool]]:
        """Of each step."""
        return {name: holds for name, holds in invariants.OF_STEPS.items() if name in self.checks}

    @cached_property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """Replicas may change their numbers. Values are numbered in the order of their appends, so they have no symmetry left."""
        count = self.constants.replicas
        others = range(count, len(self.kinds))
        return tuple(
            Symmetry((*numbers, *others), partial(renamed, numbers))
            for numbers in permutations(range(count))
            if numbers != tuple(range(count))
        )

    @property
    def kinds(self) -> tuple[int, ...]:
        """Replicas are of one kind."""
        return (0,) * self.constants.replicas + (1, 2, 3) + ((4,) if self.constants.lists else ())

    def slots_of(self, state: State) -> tuple[Value, ...]:
        """Replicas, quorum, committed, used."""
        used = (state.values, state.crashes, state.lost)
        asked = (state.listed,) if self.constants.lists else ()
        return (*state.replicas, state.quorum, state.committed, used, *asked)

    def state_of(self, slots: Sequence[Any]) -> State:
        """From slots."""
        count = self.constants.replicas
        quorum, committed, (values, crashes, lost), *asked = slots[count:]
        return State(tuple(slots[:count]), quorum, committed, values, crashes, lost, *asked)

    def describe(self, state: State) -> str:
        """The state for a person."""
        return describe(state)

    def initial(self) -> Iterable[State]:
        """Replica 0 leads epoch 0, all others follow it, all logs are empty, everybody is in the ISR."""
        count = self.constants.replicas
        leader = Replica(
            (),
            ((0, 0),) if self._keeps("assign_epoch_on_election") else (),
            0,
            0,
            0,
            False,
            self._no_ends(0, 0),
        )
        follower = Replica((), (), 0, 0, 0, False, ())
        yield State((leader,) + (follower,) * (count - 1), ((0, (1 << count) - 1),), (), 0, 0, 0)

    def _no_ends(self, leader: int, epoch_start_offset: int) -> tuple[int, ...]:
        return tuple(epoch_start_offset if r == leader else -1 for r in range(self.constants.replicas))

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """The controller's, then each replica's: its role, as a leader, as a follower of each other one, and its crash."""
        count = self.constants.replicas
        quorum, committed, used = count, count + 1, count + 2
        rules = [Rule(("elect", "shrink_by_controller"), (quorum,), (quorum,), self._control)]
        for number in range(count):
            leads = Part((number,), partial(_leads, number))
            rules += [
                Rule(
                    ("restart", "become_leader", "become_follower"),
                    (number, quorum),
                    (number,),
                    partial(self._role, number),
                ),
                Rule(("append",), (number, used), (number, used), partial(self._append, number), leads),
                Rule(
                    ("advance_high_watermark",),
                    (number, quorum, committed),
                    (number, committed),
                    partial(self._advance, number),
                    Part((number, quorum), partial(self._may_advance, number)),
                ),
                Rule(
                    ("shrink_isr", "expand_isr"),
                    (number, quorum),
                    (quorum,),
                    partial(self._change_isr, number),
                    leads,
                ),
                *(
                    Rule(
                        ("truncate", "out_of_range", "fetch"),
                        (number, other),
                        (number, other),
                        partial(self._follow, number, other),
                        Part((number,), partial(_leads, other)),
                    )
                    for other in range(count)
                    if other != number
                ),
                Rule(("crash",), (number, used), (number, used), partial(self._crash, number)),
            ]
            if self.constants.lists:
                listed = count + 3
                rules.append(
                    Rule(("list_offsets",), (number, listed), (listed,), partial(self._list, number), leads)
                )
        return tuple(rules)

    # ---- the controller

    def _control(self, quorum: Quorum) -> Steps:
        """An election keeps the ISR, or takes the old leader out (it failed). A shrink takes out a failed follower, and raises the epoch too."""
        leader, isr = quorum[-1]
        if not guards.follows(len(quorum) - 1, len(quorum)) or len(quorum) > self.constants.epochs:
            return
        now = members(isr, self.constants.replicas)
        for replica in now:
            for after in sorted({isr, isr & ~(1 << leader)}):
                if guards.may_elect(replica, now, members(after, self.constants.replicas)):
                    yield ("elect", replica, after), ((*quorum, (replica, after)),)
            if replica != leader:
                shrunk = (leader, isr & ~(1 << replica))
                yield ("shrink_by_controller", replica), ((*quorum, shrunk),)

    # ---- roles

    def _role(self, number: int, replica: Replica, quorum: Quorum) -> Steps:
        """Any LeaderAndIsr that was ever sent may arrive, or never; fencing decides.

        broker_epoch_fencing (KIP-380): after a restart only what was made for this incarnation counts, so nothing older than ZooKeeper's present epoch.
        """
        if replica.leader == DOWN:
            floor = len(quorum) - 2 if self._keeps("broker_epoch_fencing") else -1
            yield ("restart", number), (replica._replace(leader=NOBODY, epoch=floor),)
            return
        fenced = self._keeps("leader_epoch_fencing")
        for epoch, (leader, _) in enumerate(quorum):
            if epoch == replica.epoch or not guards.may_learn(replica.epoch, epoch, fenced=fenced):
                continue
            if leader == number:
                yield ("become_leader", number, epoch), (self._as_leader(number, replica, epoch),)
            else:
                after = replica._replace(epoch=epoch, leader=leader, truncating=bool(replica.log), ends=())
                yield ("become_follower", number, epoch), (after,)

    def _as_leader(self, number: int, replica: Replica, epoch: int) -> Replica:
        entries, end = replica.epochs, len(replica.log)
        if self._keeps("assign_epoch_on_election"):
            entries = cache.assign(entries, epoch, end)
        return replica._replace(
            epochs=entries, epoch=epoch, leader=number, truncating=False, ends=self._no_ends(number, end)
        )

    # ---- as a leader

    def _append(self, number: int, leader: Replica, used: Used) -> Steps:
        values, crashes, lost = used
        bounds = self.constants
        if len(leader.log) >= bounds.log_size or values >= bounds.values:
            return
        after = leader._replace(
            log=(*leader.log, (leader.epoch, values)),
            epochs=cache.assign(leader.epochs, leader.epoch, len(leader.log)),
        )
        yield ("append", number), (after, (values + 1, crashes, lost))

    def _list(self, number: int, leader: Replica, listed: Listed) -> Steps:
        """offset_not_available (KIP-207): a new leader's high watermark lags, so it does not tell it before it has reached the start of the epoch."""
        may_tell = not self._keeps("offset_not_available") or leader.high_watermark >= leader.ends[number]
        if len(listed) < self.constants.lists and may_tell:
            yield ("list_offsets", number), ((*listed, (leader.epoch, leader.high_watermark)),)

    def _may_advance(self, number: int, leader: Replica, quorum: Quorum) -> bool:
        if leader.leader != number:
            return False
        end = self._in_sync_end(number, leader, quorum)
        return end > leader.high_watermark and guards.may_advance(leader.high_watermark, end, end)

    def _advance(self, number: int, leader: Replica, quorum: Quorum, committed: Committed) -> Steps:
        end = self._in_sync_end(number, leader, quorum)
        exposed = [
            (*record[:2], min(record[2], leader.epoch)) if offset < end else record
            for offset, record in enumerate(committed)
        ]
        exposed += [(epoch, value, leader.epoch) for epoch, value in leader.log[len(exposed) : end]]
        yield ("advance_high_watermark", number), (leader._replace(high_watermark=end), tuple(exposed))

    def _in_sync_end(self, number: int, leader: Replica, quorum: Quorum) -> int:
        isr = quorum[leader.epoch][1]
        return guards.in_sync_end_offset(
            len(leader.log) if member == number else leader.ends[member]
            for member in members(isr | 1 << number, self.constants.replicas)
        )

    def _change_isr(self, number: int, leader: Replica, quorum: Quorum) -> Steps:
        """A compare-and-set: that of a deposed leader meets a bad version."""
        if leader.epoch != len(quorum) - 1:
            return
        elected, isr = quorum[-1]
        for follower in range(self.constants.replicas):
            if follower == number:
                continue
            if isr >> follower & 1:
                shrunk = (elected, isr & ~(1 << follower))
                yield ("shrink_isr", number, follower), ((*quorum[:-1], shrunk),)
            elif leader.ends[follower] >= 0 and guards.may_join_isr(
                leader.ends[follower],
                leader.high_watermark,
                leader.ends[number],
                after_epoch_start=self._keeps("isr_expand_after_epoch_start"),
            ):
                yield ("expand_isr", number, follower), ((*quorum[:-1], (elected, isr | 1 << follower)),)

    # ---- as a follower

    def _follow(self, number: int, other: int, follower: Replica, leader: Replica) -> Steps:
        """One round with the leader that it believes in: truncate until they agree, then fetch."""
        by_epoch = self._keeps("truncate_by_epoch")
        if follower.truncating and not by_epoch:
            yield ("truncate", number), (_cut(follower, follower.high_watermark, True), leader)
            return
        if leader.leader != other or not guards.may_serve(
            leader.epoch, follower.epoch, fenced=self._keeps("fetch_fencing")
        ):
            return
        if follower.truncating:
            yield ("truncate", number), (self._truncated(follower, leader), leader)
        elif len(follower.log) > len(leader.log):
            yield ("out_of_range", number), (_cut(follower, len(leader.log), True), leader)
        else:
            yield ("fetch", number), _fetched(number, follower, leader)

    def _truncated(self, follower: Replica, leader: Replica) -> Replica:
        answers = (
            cache.end_offset_for if self._keeps("truncate_below_own_epoch") else cache.end_offset_for_kip_101
        )
        answer = answers(leader.epochs, len(leader.log), cache.latest_epoch(follower.epochs))
        end, done = cache.next_truncation(follower.epochs, len(follower.log), follower.high_watermark, answer)
        return _cut(follower, end, done)

    # ---- and down

    def _crash(self, number: int, replica: Replica, used: Used) -> Steps:
        values, crashes, lost_before = used
        if replica.leader == DOWN or crashes >= self.constants.crashes:
            return
        for lost in range(min(len(replica.log), self.constants.losses - lost_before) + 1):
            end = len(replica.log) - lost
            after = Replica(
                replica.log[:end],
                cache.truncate(replica.epochs, end) if lost else replica.epochs,
                min(replica.high_watermark, end),
                -1,
                DOWN,
                False,
                (),
            )
            yield ("crash", number, lost), (after, (values, crashes + 1, lost_before + lost))


def _leads(leader: int, replica: Replica) -> bool:
    """Whether this is the leader that the replica believes in."""
    return replica.leader == leader


def _cut(follower: Replica, end: int, done: bool) -> Replica:
    return follower._replace(
        log=follower.log[:end],
        epochs=cache.truncate(follower.epochs, end),
        high_watermark=min(follower.high_watermark, end),
        truncating=not done and end > 0,
    )


def _fetched(number: int, follower: Replica, leader: Replica) -> tuple[Replica, Replica]:
    """Follower and leader after a fetch."""
    end = len(follower.log)
    ends = (*leader.ends[:number], end, *leader.ends[number + 1 :])
    log, entries = follower.log, follower.epochs
    if end < len(leader.log):
        record = leader.log[end]
        log, entries = (*log, record), cache.assign(entries, record[0], end)
    after = follower._replace(log=log, epochs=entries, high_watermark=min(leader.high_watermark, len(log)))
    return after, leader._replace(ends=ends)
