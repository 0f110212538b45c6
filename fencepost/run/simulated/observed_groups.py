"""What a run knows of its groups in addition to their clients' rows: offsets that expired as they may, and
groups that ended (docs/reference/traces.md).

Owns two additions to the operations of a finished run, both from recorded events alone. Must not judge.

1. An offset that its coordinator let expire, of a group that had been empty for the retention, or of a topic
   that nobody committed for so long, nor was to read since, is a
   commit of nothing by the coordinator, whose outcome nobody knows. One that went in any other state, or too
   soon, gets no such row: a consumer that misses it has a finding. Nobody can say what is too soon once a
   broker's clock was wrong: commits carry their coordinator's time.
2. A group that was removed and comes back is another group (its generations begin anew): its rows carry its
   name with a number, and commits of unknown outcome of the group before it are recorded for it, too. Who
   slept while its group ended polls on in the generation that it knows, as Kafka's consumer does until a
   request of its membership is refused: such rows belong to the group that gave it that generation, although
   another one has the name by now. A dynamic member's id says which group that is; a static member keeps its
   name, so that its joins say it. What such a member reads back is that of the group that has the name by
   then: OffsetFetch names no member.
"""

from collections.abc import Callable, Collection, Iterable

import msgspec
from attrs import define, evolve, field

from fencepost.impl.coordinator.consumer_group import name_in
from fencepost.impl.messages.group_api import NO_GENERATION
from fencepost.record.subscriptions import differ, subscriptions_of
from fencepost.run.faults.clocks import TIME_FAULTS
from fencepost.traces.events import OFFSET_DELETED, Event, Name
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.plan import Plan

FIRST_EXPIRY = 900_000_000
"""Op ids of rows about expired offsets."""
NOBODY = 1_000_000
"""Their process."""
MILLISECOND = 1_000_000
NO_EPOCH = -1
"""Of an event or an answer that names no coordinator epoch."""
TOLERANCE_PERCENT = 90
"""Of the retention: hosts have their own clocks."""


@define
class GroupFacts:
    """What a run knows of its groups, by their names."""

    retention: int
    # When members of a group were to read a topic, where they differ in their topics: what nobody reads any
    # more expires in a stable group, too. None: they do not.
    to_read: Callable[[str, str, Collection[int]], list[tuple[int, int]]] | None = None
    # How many groups of this name have ended.
    ended: dict[str, int] = field(factory=dict)
    # How many groups of the name had ended when a member id was first seen.
    of_member: dict[tuple[str, str], int] = field(factory=dict)
    # (time, groups of the name that had ended) of each generation that a coordinator announced, by group,
    # client or instance of the member, generation and coordinator epoch.
    announced: dict[tuple[str, str, int, int], list[tuple[int, int]]] = field(factory=dict)
    # (time, groups of the name that had ended) of each generation in which a process took part, by process,
    # session, group, member and generation.
    joined: dict[tuple[int, int, str, str, int], list[tuple[int, int]]] = field(factory=dict)
    # (time, coordinator epoch) of each end of a group.
    ends: dict[str, list[tuple[int, int]]] = field(factory=dict)
    # (coordinator epoch, time) of the last event about a group: since then it is in its state, at this
    # coordinator.
    busy: dict[str, tuple[int, int]] = field(factory=dict)
    # When consumers that are no members committed and heard that they had, by group, topic and partition.
    commits: dict[tuple[str, str, int], list[tuple[int, int]]] = field(factory=dict)
    # When members committed, by group, topic and partition.
    committed: dict[tuple[str, str, int], list[int]] = field(factory=dict)
    # Processes of the members that a coordinator named last, by group.
    members: dict[str, list[int]] = field(factory=dict)
    rows: list[Operation] = field(factory=list)

    def learn(self, event: Event) -> None:
        """Take one event in."""
        if event.name is Name.GROUP_PHASE:
            detail = msgspec.json.decode(event.detail)
            group, ended = detail["group"], self.ended.get(detail["group"], 0)
            numbers = (name_in(member).rpartition("-")[2] for member in detail["members"])
            self.members[group] = [int(number) for number in numbers if number.isdecimal()]
            for member in detail["members"]:
                self.of_member.setdefault((group, member), ended)
                key = (group, name_in(member), detail["generation"], event.leader_epoch)
                self.announced.setdefault(key, []).append((event.time, ended))
            if detail["generation"] and event.leader_epoch >= self.busy.get(group, (-1, 0))[0]:
                # not a coordinator of the past, and not a group that never had a member
                self.busy[group] = (event.leader_epoch, event.time)
        elif event.name is Name.GROUP_REMOVED:
            self.ended[event.detail] = self.ended.get(event.detail, 0) + 1
            self.ends.setdefault(event.detail, []).append((event.time, event.leader_epoch))
        elif event.name is Name.GROUP_OFFSET_EXPIRED:
            self._expired(event)
        elif event.name is Name.FAULT_BEGAN and event.cause in TIME_FAULTS:
            self.retention = 0

    def _expired(self, event: Event) -> None:
        detail = msgspec.json.decode(event.detail)
        group = detail["group"]
        commits = self.commits.get((group, detail["topic"], detail["partition"]), ())
        since = max((begun for begun, heard in commits if heard <= event.time), default=0)
        waited = event.time - max(self.busy.get(group, (-1, 0))[1], since)
        if event.cause == "Stable":
            times = self.committed.get((group, detail["topic"], detail["partition"]), ())
            last = max((time for time in times if time <= event.time), default=0)
            waited = event.time - last if self._left(group, detail["topic"], last, event.time) else -1
        elif event.cause != "Empty":
            waited = -1
        in_time = waited * 100 >= self.retention * TOLERANCE_PERCENT
        if not in_time and event.cause != OFFSET_DELETED:
            return
        self.rows.append(
            Operation(
                op_id=FIRST_EXPIRY + len(self.rows),
                process=NOBODY,
                function=Function.COMMIT,
                invoke_time=event.time,
                outcome=Outcome.UNKNOWN,
                argument="expired",
                group=group,
                topic=detail["topic"],
                partition=detail["partition"],
                leader_epoch=event.leader_epoch,
                node=event.node,
            )
        )

    def _left(self, group: str, topic: str, since: int, until: int) -> bool:
        """Whether there was a moment in which none of those that are members now was to read the topic."""
        if self.to_read is None:
            return False
        stretches = self.to_read(group, topic, self.members.get(group, ()))
        return not any(begin <= since and until < end for begin, end in stretches)

    def learn_commit(self, row: Operation) -> None:
        """Take in one row: the offsets of a group without members count from their commits (KIP-211), from
        those that were made."""
        if row.function is not Function.COMMIT or row.outcome is not Outcome.OK:
            return
        alone = row.generation == NO_GENERATION and row.completion_time
        for each in row.positions:
            key = (row.group or "", each.topic, each.partition)
            if self.to_read and row.group:
                self.committed.setdefault(key, []).append(row.invoke_time)
            if alone:
                self.commits.setdefault(key, []).append((row.invoke_time, row.completion_time or 0))

    def learn_join(self, row: Operation) -> None:
        """Take in one row: of a static member's join the coordinator recorded the generation before it
        answered, so that the last telling counts."""
        done, generation = row.completion_time, row.generation
        if (
            row.function is not Function.JOIN
            or row.outcome is not Outcome.OK
            or done is None
            or generation is None
        ):
            return
        group, member = row.group or "", row.member or ""
        epoch = NO_EPOCH if row.leader_epoch is None else row.leader_epoch
        before = [one for one in self.announced.get((group, member, generation, epoch), ()) if one[0] <= done]
        if before:
            key = (row.process, row.session, group, member, generation)
            self.joined.setdefault(key, []).append((done, max(before)[1]))

    def named(self, operation: Operation) -> Operation:
        """The row with the name of its group."""
        group = operation.group
        if group is None or group not in self.ended:
            return operation
        known = self.of_member.get((group, operation.member or ""))
        if known is None:
            known = self._of_generation(operation)
        if known is None:
            known = self._ended_by(group, operation.invoke_time)
        elif operation.function is Function.FETCH_COMMITTED and operation.completion_time is not None:
            first = self._ended_by(group, operation.invoke_time, operation.leader_epoch)
            last = self._ended_by(group, operation.completion_time, operation.leader_epoch)
            known = min(max(known, first), last)
        return evolve(operation, group=f"{group}#{known + 1}") if known else operation

    def _ended_by(self, group: str, time: int, epoch: int | None = None) -> int:
        """How many groups of this name had ended by then, as far as a coordinator of this epoch (None: not
        told) must know."""
        return sum(at <= time and (epoch is None or of <= epoch) for at, of in self.ends[group])

    def _of_generation(self, row: Operation) -> int | None:
        """How many groups of this name had ended when this static member joined the generation that the row
        names; None: it did not join one."""
        if row.generation is None:
            return None
        by = row.completion_time if row.function is Function.JOIN else row.invoke_time
        key = (row.process, row.session, row.group or "", row.member or "", row.generation)
        joins = [join for join in self.joined.get(key, ()) if by is not None and join[0] <= by]
        return max(joins)[1] if joins else None

    def carried_over(self, rows: list[Operation]) -> list[Operation]:
        """Commits of unknown outcome of a group that ended: they may be in the log, and then they are read
        back in the group that has its name next."""
        carried: list[Operation] = []
        for row in rows:
            group, _, number = (row.group or "").partition("#")
            if row.function is not Function.COMMIT or row.outcome is not Outcome.UNKNOWN:
                continue
            for later in range(int(number or 1) + 1, self.ended.get(group, 0) + 2):
                op_id = FIRST_EXPIRY + len(self.rows) + len(carried)
                carried.append(
                    evolve(
                        row,
                        op_id=op_id,
                        group=f"{group}#{later}",
                        member=None,
                        generation=None,
                        argument="earlier",
                    )
                )
        return carried


def with_group_facts(
    plan: Plan, operations: tuple[Operation, ...], events: Iterable[Event]
) -> tuple[Operation, ...]:
    """The operations of a run with what is known of its groups in addition."""
    events = tuple(events)
    begun = next((one.time for one in events if one.name is Name.PHASE and one.cause == "safety"), 0)
    end = max((one.time for one in events), default=0)

    def to_read(group: str, topic: str, processes: Collection[int]) -> list[tuple[int, int]]:
        planned = (one for one in plan.operations if one.process in processes)
        return subscriptions_of(planned, begun, end).get((group, topic), [])

    retention = plan.cluster.groups.offsets_retention_ms * MILLISECOND
    facts = GroupFacts(retention, to_read if differ(plan.operations) else None)
    for operation in operations:
        facts.learn_commit(operation)
    for event in events:
        facts.learn(event)
    for operation in operations:
        facts.learn_join(operation)
    everything = [facts.named(operation) for operation in (*operations, *facts.rows)]
    everything += facts.carried_over(everything)
    return tuple(sorted(everything, key=lambda operation: (operation.invoke_time, operation.op_id)))
