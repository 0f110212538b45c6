"""The data path of replication as a pure transition system: what Kafka's ZooKeeper-era replicas may do, and what must hold.

Owns: the actions and how they change a state. Must not know how an implementation does it, nor time, nor messages other than LeaderAndIsr.

Atomicity. ZooKeeper's and the controller's steps are one action each. A fetch is one action (request, answer, append at the follower): the leader learns the
follower's log end from the *request*, the follower gets the leader's high watermark as it was, so both lag as in Kafka. A truncation is one round of
OffsetsForLeaderEpoch. A leader's ISR change is one action (a CAS that succeeds). LeaderAndIsr is delayed and lost freely: each
replica may learn any epoch above its own at any time, or never. The interleavings that remain between those are the refinement's matter (refinement/).
Sources: KIP-101, KIP-279, KIP-320, KAFKA-7128, KAFKA-7415; the bounds are `Constants`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from attrs import frozen

from fencepost.model import epochs as cache
from fencepost.model import guards
from fencepost.model import replication_invariants as invariants
from fencepost.model.explore.system import Action
from fencepost.model.replication_state import DOWN, NOBODY, Constants, Replica, State, describe

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
)


def members(isr: int, replicas: int) -> list[int]:
    """The replicas of a bit set."""
    return [replica for replica in range(replicas) if isr >> replica & 1]


def _with(state: State, number: int, replica: Replica) -> tuple[Replica, ...]:
    """The replicas with one exchanged."""
    return (*state.replicas[:number], replica, *state.replicas[number + 1 :])


@frozen
class Replication:
    """The transition system for some constants (explore/system.py says what each method promises). checks: the invariants to check, by name."""

    constants: Constants
    checks: tuple[str, ...] = tuple(invariants.OF_STATES)

    def _keeps(self, protection: str) -> bool:
        return protection not in self.constants.drop

    @property
    def action_names(self) -> tuple[str, ...]:
        """`out_of_range` needs a follower that is ahead of its leader: a loss, or a missing protection."""
        constants = self.constants
        absent = set()
        if constants.crashes == 0:
            absent |= {"crash", "restart"}
        if not (constants.losses or constants.drop):
            absent |= {"out_of_range"}
        return tuple(name for name in ACTIONS if name not in absent)

    @property
    def invariants(self) -> Mapping[str, Callable[[State], bool]]:
        """Of each state."""
        return {name: holds for name, holds in invariants.OF_STATES.items() if name in self.checks}

    @property
    def step_invariants(self) -> Mapping[str, Callable[[State, Action, State], bool]]:
        """Of each step."""
        return {name: holds for name, holds in invariants.OF_STEPS.items() if name in self.checks}

    @property
    def sometimes(self) -> Mapping[str, Callable[[State], bool]]:
        """What a useful set of constants reaches."""
        return invariants.SOMETIMES

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

    # ---- what is enabled

    def actions(self, state: State) -> Iterator[Action]:
        """The enabled actions, the controller's first, then each replica's."""
        yield from self._controller_actions(state)
        for number, replica in enumerate(state.replicas):
            if replica.leader == DOWN:
                yield "restart", number
                continue
            yield from self._role_actions(state, number, replica)
            if replica.leader == number:
                yield from self._leader_actions(state, number, replica)
            elif replica.leader != NOBODY:
                yield from self._follower_actions(state, number, replica)
            if state.crashes < self.constants.crashes:
                for lost in range(min(len(replica.log), self.constants.losses - state.lost) + 1):
                    yield "crash", number, lost

    def _controller_actions(self, state: State) -> Iterator[Action]:
        """An election keeps the ISR, or takes the old leader out (it failed). A shrink takes out a failed follower, and raises the epoch too."""
        leader, isr = state.quorum[-1]
        if (
            not guards.follows(len(state.quorum) - 1, len(state.quorum))
            or len(state.quorum) > self.constants.epochs
        ):
            return
        now = members(isr, self.constants.replicas)
        for replica in now:
            for after in {isr, isr & ~(1 << leader)}:
                if guards.may_elect(replica, now, members(after, self.constants.replicas)):
                    yield "elect", replica, after
            if replica != leader:
                yield "shrink_by_controller", replica

    def _role_actions(self, state: State, number: int, replica: Replica) -> Iterator[Action]:
        """Any LeaderAndIsr that was ever sent may arrive, or never; fencing decides."""
        fenced = self._keeps("leader_epoch_fencing")
        for epoch, (leader, _) in enumerate(state.quorum):
            if epoch != replica.epoch and guards.may_learn(replica.epoch, epoch, fenced=fenced):
                yield "become_leader" if leader == number else "become_follower", number, epoch

    def _leader_actions(self, state: State, number: int, leader: Replica) -> Iterator[Action]:
        isr = state.quorum[leader.epoch][1]
        if len(leader.log) < self.constants.log_size and state.values < self.constants.values:
            yield "append", number
        end = self._in_sync_end(number, leader, isr)
        if end > leader.high_watermark and guards.may_advance(leader.high_watermark, end, end):
            yield "advance_high_watermark", number
        if leader.epoch != len(state.quorum) - 1:
            return  # the CAS of a deposed leader meets a bad version
        for follower in range(self.constants.replicas):
            if follower == number:
                continue
            if isr >> follower & 1:
                yield "shrink_isr", number, follower
            elif leader.ends[follower] >= 0 and guards.may_join_isr(
                leader.ends[follower],
                leader.high_watermark,
                leader.ends[number],
                after_epoch_start=self._keeps("isr_expand_after_epoch_start"),
            ):
                yield "expand_isr", number, follower

    def _in_sync_end(self, number: int, leader: Replica, isr: int) -> int:
        return guards.in_sync_end_offset(
            len(leader.log) if member == number else leader.ends[member]
            for member in members(isr | 1 << number, self.constants.replicas)
        )

    def _follower_actions(self, state: State, number: int, follower: Replica) -> Iterator[Action]:
        if follower.truncating and not self._keeps("truncate_by_epoch"):
            yield "truncate", number
            return
        leader = state.replicas[follower.leader]
        if leader.leader != follower.leader or not guards.may_serve(
            leader.epoch, follower.epoch, fenced=self._keeps("fetch_fencing")
        ):
            return
        if follower.truncating:
            yield "truncate", number
        elif len(follower.log) > len(leader.log):
            yield "out_of_range", number
        else:
            yield "fetch", number

    # ---- what happens

    def apply(self, state: State, action: Action) -> State:
        """The state after an enabled action."""
        name, *arguments = action
        step: Callable[..., State] = getattr(self, f"_{name}")
        return step(state, *arguments)

    def _elect(self, state: State, leader: int, isr: int) -> State:
        return state._replace(quorum=(*state.quorum, (leader, isr)))

    def _shrink_by_controller(self, state: State, replica: int) -> State:
        leader, isr = state.quorum[-1]
        return state._replace(quorum=(*state.quorum, (leader, isr & ~(1 << replica))))

    def _become_leader(self, state: State, number: int, epoch: int) -> State:
        replica = state.replicas[number]
        entries, end = replica.epochs, len(replica.log)
        if self._keeps("assign_epoch_on_election"):
            entries = cache.assign(entries, epoch, end)
        leader = Replica(
            replica.log, entries, replica.high_watermark, epoch, number, False, self._no_ends(number, end)
        )
        return state._replace(replicas=_with(state, number, leader))

    def _become_follower(self, state: State, number: int, epoch: int) -> State:
        replica = state.replicas[number]
        follower = Replica(
            replica.log,
            replica.epochs,
            replica.high_watermark,
            epoch,
            state.quorum[epoch][0],
            bool(replica.log),
            (),
        )
        return state._replace(replicas=_with(state, number, follower))

    def _append(self, state: State, number: int) -> State:
        leader = state.replicas[number]
        after = leader._replace(
            log=(*leader.log, (leader.epoch, state.values)),
            epochs=cache.assign(leader.epochs, leader.epoch, len(leader.log)),
        )
        return state._replace(replicas=_with(state, number, after), values=state.values + 1)

    def _fetch(self, state: State, number: int) -> State:
        follower = state.replicas[number]
        leader = state.replicas[follower.leader]
        end = len(follower.log)
        ends = (*leader.ends[:number], end, *leader.ends[number + 1 :])
        state = state._replace(replicas=_with(state, follower.leader, leader._replace(ends=ends)))
        log, entries = follower.log, follower.epochs
        if end < len(leader.log):
            record = leader.log[end]
            log, entries = (*log, record), cache.assign(entries, record[0], end)
        after = follower._replace(
            log=log, epochs=entries, high_watermark=min(leader.high_watermark, len(log))
        )
        return state._replace(replicas=_with(state, number, after))

    def _truncate(self, state: State, number: int) -> State:
        follower = state.replicas[number]
        if not self._keeps("truncate_by_epoch"):
            return self._cut(state, number, follower.high_watermark, True)
        leader = state.replicas[follower.leader]
        answers = (
            cache.end_offset_for if self._keeps("truncate_below_own_epoch") else cache.end_offset_for_kip_101
        )
        answer = answers(leader.epochs, len(leader.log), cache.latest_epoch(follower.epochs))
        end, done = cache.next_truncation(follower.epochs, len(follower.log), follower.high_watermark, answer)
        return self._cut(state, number, end, done)

    def _out_of_range(self, state: State, number: int) -> State:
        return self._cut(state, number, len(state.replicas[state.replicas[number].leader].log), True)

    def _cut(self, state: State, number: int, end: int, done: bool) -> State:
        follower = state.replicas[number]
        after = follower._replace(
            log=follower.log[:end],
            epochs=cache.truncate(follower.epochs, end),
            high_watermark=min(follower.high_watermark, end),
            truncating=not done and end > 0,
        )
        return state._replace(replicas=_with(state, number, after))

    def _advance_high_watermark(self, state: State, number: int) -> State:
        leader = state.replicas[number]
        end = self._in_sync_end(number, leader, state.quorum[leader.epoch][1])
        exposed = [
            (*record[:2], min(record[2], leader.epoch)) if offset < end else record
            for offset, record in enumerate(state.committed)
        ]
        exposed += [(epoch, value, leader.epoch) for epoch, value in leader.log[len(exposed) : end]]
        after = leader._replace(high_watermark=end)
        return state._replace(replicas=_with(state, number, after), committed=tuple(exposed))

    def _shrink_isr(self, state: State, number: int, follower: int) -> State:
        leader, isr = state.quorum[-1]
        return state._replace(quorum=(*state.quorum[:-1], (leader, isr & ~(1 << follower))))

    def _expand_isr(self, state: State, number: int, follower: int) -> State:
        leader, isr = state.quorum[-1]
        return state._replace(quorum=(*state.quorum[:-1], (leader, isr | 1 << follower)))

    def _crash(self, state: State, number: int, lost: int) -> State:
        replica = state.replicas[number]
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
        return state._replace(
            replicas=_with(state, number, after), crashes=state.crashes + 1, lost=state.lost + lost
        )

    def _restart(self, state: State, number: int) -> State:
        """broker_epoch_fencing (KIP-380): only LeaderAndIsr that was made for this incarnation counts, so nothing older than ZooKeeper's present epoch."""
        floor = len(state.quorum) - 2 if self._keeps("broker_epoch_fencing") else -1
        after = state.replicas[number]._replace(leader=NOBODY, epoch=floor)
        return state._replace(replicas=_with(state, number, after))
