"""The group coordinator of a broker, step by step: what it holds after a step, what it answers, which timers
it sets and what it writes, compared with the model of a group (group_model.py).

Owns what is known of each group between two steps, and of the appends under way. It only reads. Not compared:
a step in which the broker begins or ceases to coordinate, requests that only an administrator or a foreign
client sends, and an append that the log refused.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from attrs import asdict, define, field

from fencepost.campaign.observed.justified import OFFSETS_TOPIC, Reason
from fencepost.campaign.observed.steps.group_model import (
    DEAD,
    EMPTY,
    GroupModel,
    GroupStep,
    Kept,
    Then,
)
from fencepost.campaign.observed.steps.group_states import (
    count,
    differences,
    model_of,
    value_of,
    wrongly_loaded,
)
from fencepost.campaign.observed.steps.written import Batch, batches_from
from fencepost.checkers.meantime.placement import place_of
from fencepost.impl.coordinator.records import GroupKey, OffsetKey, decode_group, decode_key, decode_offset
from fencepost.impl.core.core_interface import CancelTimer, Halt, MessageArrived, Send, SetTimer, TimerFired
from fencepost.impl.messages import group_api as kafka
from fencepost.impl.messages import transaction_api
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.outcomes import ErrorCode

MILLISECOND = 1_000_000
NO_OFFSET = -1
_E = ErrorCode
OF_MEMBERSHIP = frozenset(
    {
        kafka.JoinGroupResponse,
        kafka.SyncGroupResponse,
        kafka.HeartbeatResponse,
        kafka.LeaveGroupResponse,
    }
)
"""Answers that the model gives all of."""
REQUESTS = frozenset(
    {
        kafka.JoinGroupRequest,
        kafka.SyncGroupRequest,
        kafka.HeartbeatRequest,
        kafka.LeaveGroupRequest,
        kafka.OffsetCommitRequest,
    }
)
OTHER_REQUESTS = frozenset(
    {
        kafka.DeleteGroupRequest,
        kafka.OffsetDeleteRequest,
        transaction_api.TxnOffsetCommitRequest,
        transaction_api.AddPartitionsToTxnResponse,
        transaction_api.WriteTxnMarkersRequest,
    }
)
"""Messages that may change a group in a way that the model does not decide: only what they write counts."""
OF_ONE_GROUP = frozenset({"group_join", "group_sync", "group_session"})
OTHER_TIMERS = frozenset({"group_append", "group_load", "group_unload", "transaction_verification"})
EXPIRY = "group_expiry"
OF_STORE = {
    _E.NOT_ENOUGH_REPLICAS_AFTER_APPEND: _E.COORDINATOR_NOT_AVAILABLE,
    _E.REQUEST_TIMED_OUT: _E.REBALANCE_IN_PROGRESS,
}
"""What members are told of an append of their group that failed, if it is not the append's own word."""
OF_COMMITS = {_E.NOT_ENOUGH_REPLICAS_AFTER_APPEND: _E.COORDINATOR_NOT_AVAILABLE}


class NotJudgedError(Exception):
    """The step went where the model cannot follow."""


@define
class Append:
    """An append of the coordinator that is not finished."""

    key: TopicPartition
    base: int
    required: int
    leader_epoch: int
    # What it is for, once it is durable; None if its records say so.
    then: Callable[["StepOfGroups", ErrorCode], None] | None = None


@define(eq=False)
class GroupSteps:
    """The groups of one broker's process."""

    # What each group was after the last step that could change it, and the coordinator's own object.
    known: dict[str, tuple[Any, GroupModel]] = field(factory=dict)
    # Appends under way by the coordinator's number.
    appends: dict[int, Append] = field(factory=dict)
    # Whether the coordinator reads groups from its log.
    loads: bool = False
    # Markers under way by the writer's number.
    markers: dict[int, Append] = field(factory=dict)

    def watches(self, core: Any, input: Any) -> "StepOfGroups | None":
        """Before a step: whether it may change groups, and what is needed to judge it.

        Args:
            core: the broker.
            input: of the step.

        Returns:
            the step; None if it can change no group.
        """
        kind, group_id, whole = type(input), None, False
        if kind is MessageArrived:
            request = type(input.message)
            if request in REQUESTS:
                group_id = input.message.group_id
            else:
                whole = request in OTHER_REQUESTS
        elif kind is TimerFired:
            word = input.key[0]
            if word in OF_ONE_GROUP:
                group_id = input.key[1]
            else:
                whole = word in OTHER_TIMERS or word == EXPIRY
        pending = core.groups.log.pending or core.transactions.writer.pending
        if (group_id is None and not whole and not pending and not self.loads) or (
            core.broker_context.broker_epoch < 0
        ):
            return None
        return StepOfGroups(self, core, input, group_id)

    def forget(self) -> None:
        """The process ends."""
        self.known.clear()
        self.loads = False
        self.appends.clear()
        self.markers.clear()


@define(eq=False)
class StepOfGroups:
    """One step."""

    steps: GroupSteps
    core: Any
    input: Any
    # Of the request or timer; None if it may be about any.
    group_id: str | None
    # Leader epochs in which the broker coordinates, by partition of __consumer_offsets, before the step.
    owned: dict[int, int] = field(init=False)
    # Log ends by partition of __consumer_offsets.
    ends: dict[TopicPartition, int] = field(init=False)
    # Batches that the step wrote, which are still to be explained.
    written: dict[TopicPartition, list[Batch]] = field(factory=dict)
    # By group: the model of what must be after the step.
    expected: dict[str, GroupStep] = field(factory=dict)
    # Of requests that are answered by what becomes of an append.
    answers: dict[tuple[int, int], Any] = field(factory=dict)
    found: list[Reason] = field(factory=list)
    now_ms: int = 0

    def __attrs_post_init__(self) -> None:
        table = self.core.groups.table
        self.owned = self._owned()
        self.ends = {
            key: one.log.log_end_offset
            for number in self.owned
            if (one := self._partition(key := TopicPartition(OFFSETS_TOPIC, number))) is not None
        }
        names = table.groups if self.group_id is None else (self.group_id,)
        for name in names:
            group, known = table.groups.get(name), self.steps.known.get(name)
            if group is not None and (known is None or known[0] is not group):
                self.steps.known[name] = group, model_of(group)

    # ---- what the broker is

    def _partition(self, key: TopicPartition) -> Any:
        return self.core.replicas.partitions.get(key)

    def _owned(self) -> dict[int, int]:
        """The partitions that it coordinates."""
        node, found = self.core.broker_context.node, {}
        for number, place in self.core.groups.table.places.items():
            partition = self._partition(TopicPartition(OFFSETS_TOPIC, number))
            leads = partition is not None and partition.leader == node
            if leads and place.owned_epoch == partition.leader_epoch >= 0:
                found[number] = place.owned_epoch
        return found

    def _number(self, group_id: str) -> int:
        return place_of(group_id, max(1, self.core.groups.table.count))

    # ---- after the step

    def judged(self, effects: Iterable[Any], timers: Iterable[tuple[Any, ...]]) -> Iterator[Reason]:
        """What is wrong with the step.

        Args:
            effects: of the step.
            timers: that were set before it.

        Yields:
            of what, expected, seen.
        """
        effects, after = list(effects), self._owned()
        if any(type(one) is Halt for one in effects):
            return
        self.now_ms = self.core.broker_context.now // MILLISECOND
        try:
            if after == self.owned:
                self._new_batches()
                self._finished()
                self._apply()
                self._transactional()
                yield from self.found
                yield from self._compared(effects, set(timers))
        except NotJudgedError:
            yield from self.found
        for number in after:
            if self.owned.get(number) != after[number]:
                partition = self._partition(TopicPartition(OFFSETS_TOPIC, number))
                yield from wrongly_loaded(partition.log, self.core.groups.table.groups)
        self._remember()

    def _remember(self) -> None:
        """The state after the step is that before the next one."""
        table, known = self.core.groups.table, self.steps.known
        self.steps.loads = any(place.load is not None for place in table.places.values())
        names = table.groups if self.group_id is None else {self.group_id, *self.expected}
        for name in names:
            if name in table.groups:
                known[name] = table.groups[name], model_of(table.groups[name])
        for name in [name for name in known if name not in table.groups]:
            del known[name]
        for kept, there in (
            (self.steps.appends, self.core.groups.log.pending),
            (self.steps.markers, self.core.transactions.writer.pending),
        ):
            for number in [number for number in kept if number not in there]:
                del kept[number]
            for number, one in there.items():
                if number not in kept and one.partition.topic == OFFSETS_TOPIC:
                    kept[number] = Append(
                        one.partition, one.base_offset, one.required_offset, one.leader_epoch
                    )

    def _new_batches(self) -> None:
        for key, end in self.ends.items():
            partition = self._partition(key)
            if partition is not None and partition.log.log_end_offset > end:
                self.written[key] = list(batches_from(partition.log, end))

    def _of(self, group_id: str) -> GroupStep | None:
        """The step of one group; None of a group that there is not."""
        found = self.expected.get(group_id)
        known = self.steps.known.get(group_id)
        if found is None and known is not None:
            found = self._begin(known[1])
        return found

    def _begin(self, group: GroupModel) -> GroupStep:
        options = self.core.broker_context.options.groups
        step = self.expected[group.group_id] = GroupStep(
            group=group,
            now_ms=self.now_ms,
            delay_ms=options.initial_rebalance_delay_ms,
            retention_ms=options.offsets_retention_ms,
            coordinator_epoch=self.owned.get(self._number(group.group_id), -1),
            store=self._store,
        )
        return step

    # ---- appends

    def _store(self, group: GroupModel, shares: Mapping[str, bytes], then: Then) -> None:
        """The group is written: what is in the log must be what it is now."""
        batch = self._next(group.group_id)
        record = batch.records[0]
        value = None if record.value is None else decode_group(record.value)
        seen = None if value is None else asdict(value, recurse=True)
        expected = {
            "protocol_type": group.protocol_type,
            "generation": group.generation,
            "protocol": group.protocol,
            "leader": group.leader,
            "since_ms": group.since_ms,
            "members": tuple(
                {
                    "member_id": one.member_id,
                    "group_instance_id": one.instance,
                    "client_id": one.client_id,
                    "client_host": one.host,
                    "rebalance_timeout_ms": one.rebalance_ms,
                    "session_timeout_ms": one.session_ms,
                    "subscription": one.says(group.protocol),
                    "assignment": shares.get(one.member_id, b""),
                }
                for one in group.members.values()
            ),
        }
        if seen is not None:
            seen["members"] = tuple(seen["members"])
        if seen != expected or decode_key(record.key) != GroupKey(group.group_id):
            self.found.append((f"record of group {group.group_id}", expected, seen))

        def durable(later: StepOfGroups, error: ErrorCode) -> None:
            step = later._of(group.group_id)
            if step is not None:
                then(step, OF_STORE.get(error, error))

        self._wait(batch, group.group_id, durable)

    def _next(self, group_id: str) -> Batch:
        """The next batch that this step wrote into the group's partition."""
        key = TopicPartition(OFFSETS_TOPIC, self._number(group_id))
        batches = self.written.get(key)
        if not batches:
            if self._may_write(key):
                return self._unwritten(group_id)
            raise NotJudgedError
        return batches.pop(0)

    def _may_write(self, key: TopicPartition) -> bool:
        """Whether nothing keeps the coordinator from writing."""
        partition = self._partition(key)
        return partition is not None and self._in_sync(partition)

    def _unwritten(self, group_id: str) -> Batch:
        self.found.append((f"append for group {group_id}", "one", "none"))
        raise NotJudgedError

    def _in_sync(self, partition: Any) -> bool:
        minimum = self.core.broker_context.topic_options(OFFSETS_TOPIC).min_insync_replicas
        return bool(len(partition.isr) >= min(minimum, len(partition.replicas) or 1))

    def _wait(self, batch: Batch, group_id: str, then: Callable[["StepOfGroups", ErrorCode], None]) -> None:
        """Go on once the batch is durable: at once, or in a later step."""
        key = TopicPartition(OFFSETS_TOPIC, self._number(group_id))
        partition = self._partition(key)
        if partition.high_watermark > batch.last:
            then(self, _E.NONE if self._in_sync(partition) else _E.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
            return
        for number, one in self.core.groups.log.pending.items():
            if one.partition == key and one.base_offset == batch.base:
                epoch = partition.leader_epoch
                self.steps.appends[number] = Append(key, batch.base, batch.last + 1, epoch, then)
                return
        self.found.append((f"append {batch.base} to {key}", "it waits until it is durable", "it does not"))

    def _finished(self) -> None:
        """What became of earlier appends."""
        for kept, there in (
            (self.steps.markers, self.core.transactions.writer.pending),
            (self.steps.appends, self.core.groups.log.pending),
        ):
            for number, one in list(kept.items()):
                if number in there:
                    continue
                del kept[number]
                error = self._outcome(one)
                if one.then is not None:
                    one.then(self, error)
                else:
                    self._records(one, error)

    def _outcome(self, append: Append) -> ErrorCode:
        partition = self._partition(append.key)
        if partition is None or partition.leader_epoch != append.leader_epoch:
            raise NotJudgedError
        if partition.high_watermark < append.required:
            return _E.REQUEST_TIMED_OUT
        return _E.NONE if self._in_sync(partition) else _E.NOT_ENOUGH_REPLICAS_AFTER_APPEND

    def _records(self, append: Append, error: ErrorCode) -> None:
        """What the records of a durable append say: tombstones, markers, offsets of a transaction."""
        partition = self._partition(append.key)
        batch = next(batches_from(partition.log, append.base, append.required), None)
        if batch is None or batch.base != append.base:
            raise NotJudgedError
        if batch.commits is not None:
            if error is _E.NONE:
                self._marked(append.key, batch)
            return
        if batch.producer_id >= 0:
            return
        self._forgotten(batch, error)

    def _forgotten(self, batch: Batch, error: ErrorCode) -> None:
        """Tombstones are durable: an offset goes, unless it was committed again after them."""
        for record in batch.records:
            key = decode_key(record.key)
            step = None if key is None else self._of(key.group)
            if not isinstance(key, OffsetKey) or step is None or record.value is not None:
                raise NotJudgedError
            if step.group.phase == DEAD:
                raise NotJudgedError  # it is removed as a whole
            step.group.expiring.discard(key.partition)
            for offsets in (step.group.offsets, *step.group.open.values()):
                known = offsets.get(key.partition)
                if error is _E.NONE and known is not None and known.at < record.offset:
                    del offsets[key.partition]

    def _marked(self, key: TopicPartition, batch: Batch) -> None:
        """Offsets of a transaction that ends count, or never will."""
        for name in list(self.steps.known):
            if self._number(name) != key.partition:
                continue
            step = self._of(name)
            assert step is not None
            for partition, kept in step.group.open.pop(batch.producer_id, {}).items():
                if batch.commits:
                    count(step.group, partition, kept)

    def _transactional(self) -> None:
        """Offsets that a transaction commits wait for its marker."""
        for batches in self.written.values():
            for batch in batches:
                if batch.producer_id < 0 or batch.commits is not None:
                    continue
                for record in batch.records:
                    key, value = decode_key(record.key), decode_offset(record.value or b"")
                    if not isinstance(key, OffsetKey) or value is None:
                        continue
                    step = self._of(key.group) or self._begin(self._created(key.group))
                    waiting = step.group.open.setdefault(batch.producer_id, {})
                    waiting[key.partition] = Kept(value_of(value), record.offset)

    def _created(self, group_id: str) -> GroupModel:
        return GroupModel(group_id, since_ms=self.now_ms)

    # ---- inputs

    def _apply(self) -> None:
        if type(self.input) is TimerFired:
            self._timer(self.input.key)
        elif type(self.input) is MessageArrived and type(self.input.message) in REQUESTS:
            self._request((self.input.source, self.input.message.correlation_id), self.input.message)

    def _timer(self, key: tuple[Any, ...]) -> None:
        if key[0] == EXPIRY:
            self._expire()
        if key[0] not in OF_ONE_GROUP or self._number(key[1]) not in self.owned:
            return  # the group waits to be forgotten
        step = self._of(key[1])
        if step is None:
            return
        if key[0] == "group_session":
            step.session_ends(key[2])
        elif key[0] == "group_join":
            step.join_time_over()
        else:
            step.sync_time_over()

    def _expire(self) -> None:
        for name in sorted(self.steps.known):
            step = self._of(name) if self._number(name) in self.owned else None
            if step is None:
                continue
            group = step.group
            keys = [key for key in step.expired() if key not in group.expiring]
            if keys and self._in_sync(self._partition(TopicPartition(OFFSETS_TOPIC, self._number(name)))):
                group.expiring |= set(keys)
                self._tombstones(group, keys)
            elif keys or group.phase == DEAD:
                raise NotJudgedError
            elif group.phase == EMPTY and not (group.offsets or group.pending or group.open):
                group.phase, group.since_ms = DEAD, self.now_ms
                if not group.generation or self.written:
                    raise NotJudgedError  # gone at once

    def _tombstones(self, group: GroupModel, keys: list[TopicPartition]) -> None:
        batch = self._next(group.group_id)
        seen = [(decode_key(record.key), record.value) for record in batch.records]
        expected = [(OffsetKey(group.group_id, key), None) for key in keys]
        if seen != expected:
            self.found.append((f"tombstones for {group.group_id}", expected, seen))
        self._wait(batch, group.group_id, lambda later, error: later._forgotten(batch, error))

    def _request(self, asker: tuple[int, int], request: Any) -> None:
        name = request.group_id
        if not name or self._number(name) not in self.owned:
            return  # the answer is compared with what the broker is
        step = self._of(name)
        kind: Any = type(request)
        if kind is kafka.JoinGroupRequest:
            self._join(step, asker, request)
        elif kind is kafka.OffsetCommitRequest:
            self._commit(step, asker, request)
        elif step is None:
            answer: Any = {
                kafka.SyncGroupRequest: kafka.SyncGroupResponse,
                kafka.HeartbeatRequest: kafka.HeartbeatResponse,
                kafka.LeaveGroupRequest: kafka.LeaveGroupResponse,
            }[kind]
            self.answers[asker] = answer(correlation_id=asker[1], error=_E.UNKNOWN_MEMBER_ID)
        elif kind is kafka.SyncGroupRequest:
            step.sync(asker, request)
        elif kind is kafka.HeartbeatRequest:
            step.heartbeat(asker, request)
        else:
            step.leave(asker, request)

    def _join(self, step: GroupStep | None, asker: tuple[int, int], request: Any) -> None:
        options = self.core.broker_context.options.groups
        least_ms, most_ms = options.min_session_timeout_ms, options.max_session_timeout_ms
        error = _E.NONE
        if not least_ms <= request.session_timeout_ms <= most_ms:
            error = _E.INVALID_SESSION_TIMEOUT
        elif step is None and request.member_id:
            error = _E.UNKNOWN_MEMBER_ID
        elif step is not None and step.group.phase == DEAD:
            error = _E.COORDINATOR_NOT_AVAILABLE
        if error is not _E.NONE:
            self.answers[asker] = kafka.JoinGroupResponse(
                correlation_id=asker[1], error=error, member_id=request.member_id
            )
            return
        if step is None:
            step = self._begin(self._created(request.group_id))
        step.join(asker, request, self._new_id(step.group, request))

    def _new_id(self, group: GroupModel, request: Any) -> str:
        """The id that the coordinator gave out in this step: nobody had it before, and it begins with the
        name of the client or of the instance."""
        if request.member_id:
            return str(request.member_id)
        now = self.core.groups.table.groups.get(group.group_id)
        ids = () if now is None else (*now.members, *now.pending)
        fresh = [one for one in ids if one not in group.members and one not in group.pending]
        name = request.group_instance_id or request.client_id
        if len(fresh) == 1 and fresh[0].startswith(f"{name}-"):
            return str(fresh[0])
        return ""

    def _commit(self, step: GroupStep | None, asker: tuple[int, int], request: Any) -> None:
        epoch = self.owned[self._number(request.group_id)]
        if step is None and request.generation_id >= 0:
            error = _E.ILLEGAL_GENERATION
        else:
            if step is None:
                step = self._begin(self._created(request.group_id))
            error = step.may_commit(request)
        if error is _E.NONE and step is not None:
            step.heard(request.member_id)
        if error is not _E.NONE or not request.offsets or step is None:
            self.answers[asker] = kafka.OffsetCommitResponse(
                correlation_id=asker[1], error=error, coordinator_epoch=epoch
            )
            return
        batch = self._next(request.group_id)
        expected = [
            (
                OffsetKey(request.group_id, one.partition),
                (one.offset, one.leader_epoch, one.metadata, self.now_ms, NO_OFFSET),
            )
            for one in request.offsets
        ]
        seen = [
            (decode_key(record.key), None if value is None else value_of(value))
            for record in batch.records
            for value in (decode_offset(record.value or b""),)
        ]
        if seen != expected:
            self.found.append((f"records of a commit of {request.group_id}", expected, seen))
        group = self.core.groups.table.groups.get(request.group_id)

        def durable(later: StepOfGroups, error: ErrorCode) -> None:
            later.answers[asker] = kafka.OffsetCommitResponse(
                correlation_id=asker[1],
                error=OF_COMMITS.get(error, error),
                appended=True,
                coordinator_epoch=epoch,
            )
            now = later._of(request.group_id)
            same = later.core.groups.table.groups.get(request.group_id) is group
            if error is _E.NONE and now is not None and same:
                for record, (key, value) in zip(batch.records, expected, strict=True):
                    count(now.group, key.partition, Kept(value, record.offset))

        self._wait(batch, request.group_id, durable)

    # ---- comparison

    def _compared(self, effects: list[Any], timers: set[tuple[Any, ...]]) -> Iterator[Reason]:
        table = self.core.groups.table
        for name, step in self.expected.items():
            now = table.groups.get(name)
            if now is None:
                yield f"group {name}", step.group.phase, "none"
                continue
            yield from differences(step.group, model_of(now))
            yield from self._timers(name, step.effects.timers, effects, timers)
            self.answers |= step.effects.answers
        seen = {(one.target, one.message.correlation_id): one.message for one in effects if type(one) is Send}
        for asker, answer in self.answers.items():
            if seen.get(asker) != answer:
                yield f"answer to {asker[0]}", answer, seen.get(asker)
        if self.group_id is None or self._number(self.group_id) not in self.owned:
            return
        for asker, message in seen.items():
            if type(message) in OF_MEMBERSHIP and asker not in self.answers:
                yield f"answer to {asker[0]}", "none", message

    def _timers(
        self,
        name: str,
        expected: Mapping[tuple[Any, ...], int | None],
        effects: list[Any],
        before: set[tuple[Any, ...]],
    ) -> Iterator[Reason]:
        now = self.core.broker_context.now
        seen: dict[tuple[Any, ...], int | None] = {}
        for one in effects:
            if type(one) is SetTimer and one.key[0] in OF_ONE_GROUP and one.key[1] == name:
                seen[one.key] = one.at
            elif type(one) is CancelTimer and one.key[0] in OF_ONE_GROUP and one.key[1] == name:
                seen[one.key] = None
        for key in sorted({*seen, *expected}):
            at = expected.get(key, 0)
            wanted = None if at is None else now + at * MILLISECOND
            if key in expected and key in seen and seen[key] == wanted:
                continue
            if key not in before and seen.get(key) is None and expected.get(key) is None:
                continue  # it was not set
            yield f"timer {key}", _timer(key in expected, wanted), _timer(key in seen, seen.get(key))


def _timer(said: bool, at: int | None) -> str:
    if not said:
        return "left alone"
    return "cancelled" if at is None else f"set to {at}"
