"""Rows about groups: who is a member stays one, gets what is written, and gets it once.

Owns these rows. They read what consumers recorded, so that they hold of every system with such clients.
"""

import contextlib
import re
from collections.abc import Iterator

import msgspec

from fencepost.checkers.liveness.forms import Case, Form, Row
from fencepost.model.group.recorded_groups import LOADED, GroupDetail
from fencepost.record import bounds
from fencepost.record.facts import JOIN_LAPSE_MS, Facts, Key, acknowledged, fault_detail, place_of
from fencepost.record.settings import MILLISECOND, Settings
from fencepost.record.timeline import FOR_EVER, Kind, Subject, Timeline
from fencepost.traces.decoding import from_json
from fencepost.traces.events import Name
from fencepost.traces.kafka_names.internal_topics import OFFSETS_TOPIC
from fencepost.traces.operations import (
    ACKS_ALL,
    CHANGED,
    COOPERATIVE,
    LATE,
    SEEK,
    Function,
    Operation,
    Outcome,
)
from fencepost.traces.trace import plain

EXPECTED = frozenset({"MEMBER_ID_REQUIRED", "REBALANCE_IN_PROGRESS", "UNSTABLE_OFFSET_COMMIT", None})
"""Errors that a member may get in calm: they are steps of the protocol."""
INCONSISTENT = "INCONSISTENT_GROUP_PROTOCOL"
"""Nor is that one wrong where members have no assignor in common, or are of a group that was loaded: of what
they named its log has only the one that was chosen (GroupMetadataManager, MemberMetadata)."""
OF_MEMBERS = frozenset({Function.JOIN, Function.COMMIT, Function.FETCH_COMMITTED})
KEPT = ("auto", "before", "sync")
"""Modes of a consumer that commits before it gives a partition up."""
Place = tuple[str, str, int]
"""Group, topic and partition."""
INSTANCE = re.compile(r"instance-\d+")
FENCED = "FENCED_INSTANCE_ID"


def _plain(facts: Facts) -> frozenset[int]:
    """Processes of groups in which nobody writes in transactions: those commit offsets by themselves, and
    begin again where one was aborted."""
    plain = facts.once(plain_groups)
    return frozenset(one.process for one in facts.operations if one.group in plain)


def plain_groups(facts: Facts) -> frozenset[str]:
    """Groups in which nobody writes in transactions. facts: of the trace."""
    writing = {one.process for one in facts.operations if one.function is Function.TXN}
    of_groups = {(one.process, one.group) for one in facts.operations if one.group}
    others = {group for process, group in of_groups if process in writing}
    return frozenset(group for _, group in of_groups if group and group not in others)


def _end(one: Operation) -> int:
    return one.invoke_time if one.completion_time is None else one.completion_time


def _refused(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    """A member that was served is refused with an error that no step of the protocol explains. Who is no
    member sends no heartbeats: it hears from its coordinator, or that it has another one, when it asks."""
    plain = facts.once(_plain)
    heard: dict[int, int] = {}
    alike = bool(facts.settings.assignors) and len({one.assignor for one in facts.settings.consumers}) < 2
    loaded = {} if alike else facts.once(_loaded)
    for one in facts.operations:
        if one.function in OF_MEMBERS and one.group and one.process in plain and one.argument != LATE:
            asked = one.invoke_time
            if not one.member and one.function is not Function.JOIN:
                asked, heard[one.process] = heard.get(one.process, asked), asked
            yield Case(
                subject=(Subject.GROUP, one.group),
                since=_end(one),
                more=_end(one) - asked + facts.asks_the_dead(one.invoke_time, _end(one)),
                fine=one.outcome is Outcome.OK
                or one.error in EXPECTED
                or (one.error == INCONSISTENT and not alike and _may_differ(facts, loaded, one)),
                expected=f"member {one.member or 'of ' + one.group} to be served",
                seen=f"{one.function.value} got {one.error}",
                operations=(one.op_id,),
            )


def _loaded(facts: Facts) -> dict[str, int]:
    """When a coordinator first loaded a generation of a group, by its name."""
    found: dict[str, int] = {}
    for _, event in facts.of(Name.GROUP_PHASE):
        with contextlib.suppress(msgspec.DecodeError):  # a trace may come from any tool
            if (detail := from_json(event.detail, GroupDetail)).why == LOADED:
                found.setdefault(detail.group, event.time)
    return found


def _may_differ(facts: Facts, loaded: dict[str, int], one: Operation) -> bool:
    """Whether who asked may have no assignor that the group has: nobody names one that all have, or it names
    a single one, and a member that was loaded is known with another."""
    settings = facts.settings
    its = settings.consumers[(one.process + one.session) % len(settings.consumers)]
    alone = not its.second_assignor or its.second_assignor == its.assignor
    return not settings.assignors or (alone and loaded.get(one.group or "", FOR_EVER) < _end(one))


def _late_joins(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    plain = facts.once(_plain)
    for one in facts.operations:
        if one.function is Function.JOIN and one.group and one.process in plain:
            yield Case(
                subject=(Subject.GROUP, one.group),
                since=one.invoke_time,
                until=min(_calm_end(timeline, one), one.completion_time or _own_end(facts, one)),
                more=facts.asks_the_dead(one.invoke_time, _end(one)),
                expected=f"member {one.member or one.process} to be in the next generation of {one.group}",
                seen=f"{one.outcome.value} {one.error or ''}".strip(),
                operations=(one.op_id,),
            )


def _calm_end(timeline: Timeline, one: Operation) -> int:
    """When the calm ends in which a member asked: what disturbs its group later may take the answer."""
    calm = timeline.calm_at((Subject.GROUP, one.group), one.invoke_time)
    return one.invoke_time if calm is None else calm.end


def _own_end(facts: Facts, one: Operation) -> int:
    """When the process of an operation ended or left, after it began."""
    ends = [
        row.invoke_time
        for row in facts.operations
        if row.function is Function.CRASH and row.process == one.process
    ]
    ends += [moment for process, moment in facts.leavings() if process == one.process]
    return min((end for end in ends if end >= one.invoke_time), default=FOR_EVER)


def _rebalances(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    """The first join of each generation."""
    first: dict[tuple[str, int], Operation] = {}
    plain = facts.once(_plain)
    for one in facts.operations:
        if one.process not in plain or one.generation is None or one.generation < 0:
            continue
        if one.function is Function.JOIN and one.group:
            known = first.get((one.group, one.generation))
            if known is None or _end(one) < _end(known):
                first[one.group, one.generation] = one
    for (group, generation), one in first.items():
        yield Case(
            subject=(Subject.GROUP, group),
            since=one.invoke_time,
            expected=f"group {group} to stay in its generation",
            seen=f"generation {generation} began",
            decider=generation,
            operations=(one.op_id,),
        )


def _again(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    """A record that another member, or a later generation, got again."""
    if facts.settings.consumer.commit not in KEPT:
        return
    plain = facts.once(_plain)
    polls = [
        one
        for one in facts.operations
        if one.function is Function.POLL and one.group and one.records and one.process in plain
    ]
    polls.sort(key=lambda one: (_end(one), one.op_id))
    got: dict[tuple[Place, int], Operation] = {}
    last: dict[tuple[Place, str | None, int | None], Operation] = {}
    for poll in polls:
        for record in poll.records:
            place = poll.group or "", record.topic, record.partition
            earlier = got.get((place, record.offset))
            if earlier is not None and (earlier.member, earlier.generation) != (poll.member, poll.generation):
                owner = place, earlier.member, earlier.generation
                kept = facts.settings.consumer.commit != "sync" or last.get(owner) is not earlier
                if (
                    kept
                    and timeline.calm_at((Subject.GROUP, place[0]), earlier.invoke_time, MEMBERS) is not None
                ):
                    yield _repeated(place, earlier, poll, record.offset)
            got[place, record.offset] = poll
            last[place, poll.member, poll.generation] = poll


def _repeated(place: Place, earlier: Operation, later: Operation, offset: int) -> Case:
    group, topic, partition = place
    return Case(
        subject=(Subject.GROUP, group),
        since=_end(later),
        more=_end(later) - earlier.invoke_time,
        expected=f"group {group} to go on after what member {earlier.member} had got and committed",
        seen=f"member {later.member} got offset {offset} again in generation {later.generation}",
        topic=topic,
        partition=partition,
        offset=offset,
        operations=(earlier.op_id, later.op_id),
    )


def _undelivered(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    """A record that was acknowledged is handed out by a group that reads its partition, while a member owns
    it: its polls bring records, or go on and bring none. Who seeks passes what lies below, and so does who
    commits: a member that commits first may end at work, and its poll is not recorded."""
    plain = facts.once(_plain)
    owners: dict[Place, list[Operation]] = {}
    reached: dict[Place, list[tuple[int, int]]] = {}
    seekers = {one.process for one in facts.operations if _seeks(one)}
    for one in sorted(facts.operations, key=lambda one: (_end(one), one.op_id)):
        polled = one.function is Function.POLL
        commits = one.function is Function.COMMIT and one.outcome is Outcome.OK
        if not (polled or commits) or not one.group or one.process not in plain:
            continue
        for position in one.positions if polled else ():
            owners.setdefault((one.group, position.topic, position.partition), []).append(one)
        passed = one.positions if commits or one.process in seekers else ()
        places = [(each.topic, each.partition, each.offset - 1) for each in passed]
        places += [(each.topic, each.partition, each.offset) for each in one.records]
        for topic, partition, offset in places:
            known = reached.setdefault((one.group, topic, partition), [])
            if not known or offset > known[-1][1]:
                known.append((_end(one), offset))
    for place, polls in owners.items():
        yield from _waiting(facts, place, polls, reached.get(place, []))


def _seeks(one: Operation) -> bool:
    return one.function is Function.ASSIGN and one.argument == SEEK


def _replicated(facts: Facts) -> dict[Key, list[Operation]]:
    """What was acknowledged with acks=all and an offset, of each partition."""
    found: dict[Key, list[Operation]] = {}
    for one in acknowledged(facts):
        if one.acks == ACKS_ALL:
            found.setdefault((one.topic or "", one.partition or 0), []).append(one)
    return found


def _waiting(
    facts: Facts, place: Place, polls: list[Operation], reached: list[tuple[int, int]]
) -> Iterator[Case]:
    group, topic, partition = place
    began, stopped = polls[0].invoke_time, _end(polls[-1])
    work, name = facts.settings.consumer.processing_ms * MILLISECOND, plain(topic)
    for one in facts.once(_replicated).get((topic, partition), ()):
        assert one.offset is not None
        wanted, no_more = facts.subscribed(group, name, max(_end(one), began))
        since = max(_end(one), began, wanted)
        if since > facts.end:
            continue
        until = next((time for time, offset in reached if offset >= one.offset), FOR_EVER)
        if until == FOR_EVER and stopped < facts.end:
            until = max(stopped, since)  # nobody reads there any more
        gone = _deleted(facts, (topic, partition), one.offset, one.invoke_time, one.key)
        until = min(until, max(since, gone))
        until = min(until, max(since, no_more)) if no_more <= facts.end else until
        busy = sum(since <= _end(poll) <= until for poll in polls if poll.records)
        yield Case(
            subject=(Subject.GROUP, group),
            since=since,
            until=until,
            more=2 * busy * (work + bounds.answered(facts.settings)) + facts.asks_the_dead(since, until),
            expected=f"group {group} to get offset {one.offset}",
            seen="it did not" if until == FOR_EVER else "it took longer",
            topic=topic,
            partition=partition,
            offset=one.offset,
            operations=(one.op_id,),
        )


def _deleted(facts: Facts, place: Key, offset: int, since: int, key: str | None = None) -> int:
    """When, from `since` on, a log first began above a record, or was cleaned after it if it has a key: it
    need not be handed out from then on."""
    cleaning = () if key is None else (Name.COMPACTED,)
    for _, event in facts.of(Name.LOG_START, *cleaning):
        above = event.log_start_offset if event.name is Name.LOG_START else event.offset
        if (event.topic, event.partition) == place and above > offset and event.time >= since:
            return event.time
    return FOR_EVER


def _uncommitted(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    """What a poll returned is committed, as the mode says: with each poll, or with the first one after the
    interval. Who seeks commits where it went. A cooperative member that polls while it joins commits then."""
    mode, plain = facts.settings.consumer.commit, facts.once(_plain)
    if mode not in KEPT:
        return  # an asynchronous commit is not repeated, nor made while the coordinator is not known
    joins: dict[int, list[Operation]] = {}
    commits: dict[tuple[int, str, str | None, int | None], list[Operation]] = {}
    polls: dict[tuple[int, str, str | None, int | None], list[Operation]] = {}
    for one in facts.operations:
        kept = {Function.COMMIT: commits, Function.POLL: polls, Function.ASSIGN: commits}.get(one.function)
        if kept is not None and one.group and one.process in plain:
            kept.setdefault((one.process, one.group, one.member, one.generation), []).append(one)
        elif one.function is Function.JOIN and one.argument == COOPERATIVE:
            joins.setdefault(one.process, []).append(one)
    for owner, mine in polls.items():
        last = max(_end(poll) for poll in mine)
        for poll in mine:
            if not poll.records or poll.completion_time is None:
                continue
            record, done = poll.records[-1], poll.completion_time
            ends = (
                one.completion_time or facts.end
                for one in joins.get(owner[0], ())
                if one.invoke_time <= done <= (one.completion_time or facts.end)
            )
            joined = max(ends, default=done)
            covering = (
                one.invoke_time
                for one in commits.get(owner, ())
                if one.invoke_time >= poll.invoke_time
                and (_seeks(one) or _covers(one, record.topic, record.partition, record.offset))
            )
            until = next(covering, FOR_EVER)
            if until == FOR_EVER:
                until = max(poll.completion_time, last - 1)  # its last polls may go without
                if until + 1 >= facts.end:
                    until = FOR_EVER
            yield Case(
                subject=(Subject.GROUP, poll.group or ""),
                since=joined,
                until=max(until, joined),
                expected=f"member {poll.member} to commit ({mode}) what its poll {poll.op_id} returned",
                seen=f"no commit of {record.topic}-{record.partition} beyond offset {record.offset}",
                topic=record.topic,
                partition=record.partition,
                offset=record.offset,
                operations=(poll.op_id,),
            )


def _given_up(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    """An eager member of the mode auto commits what it got before it joins again: then it gives all up. Not
    where the log begins above it by then: whose position is reset has none to commit."""
    consumers = facts.settings.consumers or (facts.settings.consumer,)
    if facts.settings.cooperative or any(one.commit != "auto" for one in consumers):
        return
    plain, asked = facts.once(_plain), (Function.JOIN, Function.POLL, Function.COMMIT, Function.ASSIGN)
    members: dict[tuple[int, str], list[Operation]] = {}
    for one in facts.operations:
        if one.process in plain and one.function in asked and not INSTANCE.match(one.member or "instance-0"):
            members.setdefault((one.process, one.member or ""), []).append(one)
    for (_, member), mine in members.items():
        last: Operation | None = None
        for one in sorted(mine, key=_end):
            if one.function is Function.POLL and one.records:
                last = one
            elif one.function is Function.ASSIGN:
                last = None  # it sought: what it commits is where it went
            elif one.function is Function.COMMIT and last is not None and one.invoke_time >= _end(last):
                record = last.records[-1]
                last = None if _covers(one, record.topic, record.partition, record.offset) else last
            elif one.function is Function.JOIN and last is not None:
                record = last.records[-1]
                gone = _deleted(facts, (record.topic, record.partition), record.offset, last.invoke_time)
                if gone > one.invoke_time:
                    yield Case(
                        subject=(Subject.GROUP, one.group),
                        since=one.invoke_time,
                        expected=f"member {member} to commit what poll {last.op_id} returned before it joins",
                        seen=f"no commit before its JoinGroup {one.op_id}",
                        operations=(last.op_id, one.op_id),
                    )
                last = None


def _covers(commit: Operation, topic: str, partition: int, offset: int) -> bool:
    return any(
        (place.topic, place.partition) == (topic, partition) and place.offset > offset
        for place in commit.positions
    )


def _commit_bound(of: Settings) -> int:
    consumer = of.consumer
    interval = consumer.auto_commit_interval_ms if consumer.commit == "auto" else 0
    wait_ms = (
        2 * interval + consumer.processing_ms + 2 * consumer.poll_timeout_ms + consumer.request_timeout_ms
    )
    return wait_ms * MILLISECOND + bounds.answered(of)


def _hand_over(of: Settings) -> int:
    return bounds.expelled(of) + bounds.rejoined(of)


def _fenced(facts: Facts, timeline: Timeline) -> Iterator[Case]:
    """A static member is fenced when another process has its instance, or by a coordinator that is deposed
    and does not know who is who. An id with which it never got its assignment may be forgotten: it was in the
    memory of the coordinator alone. A request that was under way when its process subscribed again is of the
    former member. Only our own consumers name their instance in their member id."""
    joined: dict[str, list[Operation]] = {}
    served: set[str | None] = set()
    again = [
        one for one in facts.operations if one.function is Function.SUBSCRIBE and one.argument != CHANGED
    ]
    refused: set[str] = set()  # whose last JoinGroup failed: the id that it was given may be in no log
    for one in facts.operations:
        instance = None if one.member is None else INSTANCE.match(one.member)
        if instance is None or one.argument == LATE:
            continue
        mine = joined.setdefault(instance[0], [])
        if one.outcome is Outcome.OK:
            served.add(one.member)
            if one.function is Function.JOIN:
                mine.append(one)
                refused.discard(instance[0])
        elif one.function is Function.JOIN:
            refused.add(instance[0])
        elif one.error == FENCED and one.generation is not None and one.generation >= 0:
            yield Case(
                subject=(Subject.GROUP, one.group),
                since=one.invoke_time,
                fine=not mine
                or (one.member not in served and instance[0] in refused)
                or _who(mine[-1]) != _who(one)
                or _deposed(facts, one)
                or _doubled(facts, mine[-1])
                or any(
                    _who(each) == _who(one) and one.invoke_time <= each.invoke_time <= _end(one)
                    for each in again
                ),
                expected=f"member {one.member} to stay the one of its instance, as no other process has it",
                seen=f"broker {one.node} fenced it",
                operations=(mine[-1].op_id, one.op_id) if mine else (one.op_id,),
            )


def _who(one: Operation) -> tuple[int, int]:
    return one.process, one.session


def _deposed(facts: Facts, one: Operation) -> bool:
    """Whether the broker that answered may not have led the group's partition."""
    keys = [key for key in facts.states if key[0] == OFFSETS_TOPIC]
    key = OFFSETS_TOPIC, place_of(one.group or "", len(keys)) if keys else 0
    states = [state for state in facts.states.get(key, ()) if state.time <= one.invoke_time]
    return not states or states[-1].leader != one.node


def _doubled(facts: Facts, join: Operation) -> bool:
    """Whether its JoinGroup may have come twice, so that the second one took the place of the first."""
    begun: dict[int, int] = {}
    for _, event in facts.of(Name.FAULT_BEGAN, Name.FAULT_ENDED):
        fault = fault_detail(event).fault
        if event.cause == "duplication" and event.name is Name.FAULT_BEGAN:
            begun[fault] = event.time
        elif fault in begun and event.time < join.invoke_time:
            del begun[fault]  # it had ended
    return bool(facts.settings.network.duplicate_ppm) or any(at <= _end(join) for at in begun.values())


MEMBERS = frozenset({Kind.MEMBER})
ROWS = (
    Row(
        name="needless_refusal",
        form=Form.NEVER,
        subject=Subject.GROUP,
        cases=_refused,
        bound=lambda of: _hand_over(of) + of.consumer.request_timeout_ms * MILLISECOND,
    ),
    Row(
        name="slow_rebalance",
        form=Form.FOLLOW,
        subject=Subject.GROUP,
        cases=_late_joins,
        bound=bounds.rejoined,
    ),
    Row(
        name="needless_rebalance",
        form=Form.CAUSE,
        subject=Subject.GROUP,
        cases=_rebalances,
        bound=lambda of: (
            2 * (bounds.expelled(of) + bounds.settled(of))
            + (of.consumer.max_poll_interval_ms + JOIN_LAPSE_MS) * MILLISECOND
        ),
        causes=frozenset(Kind) - {Kind.LATENT},
    ),
    Row(
        name="needless_reprocessing",
        form=Form.NEVER,
        only_wrong=True,
        subject=Subject.GROUP,
        cases=_again,
        bound=_hand_over,
    ),
    Row(
        name="late_delivery",
        form=Form.FOLLOW,
        subject=Subject.GROUP,
        cases=_undelivered,
        bound=lambda of: _hand_over(of) + 2 * of.consumer.poll_timeout_ms * MILLISECOND,
    ),
    Row(
        name="missing_commit",
        form=Form.FOLLOW,
        subject=Subject.GROUP,
        cases=_uncommitted,
        bound=_commit_bound,
    ),
    Row(
        name="given_up_uncommitted",
        form=Form.NEVER,
        only_wrong=True,
        subject=Subject.GROUP,
        cases=_given_up,
        through=frozenset(Kind),
        where="our own consumers",
    ),
    Row(
        name="fenced_by_itself",
        form=Form.NEVER,
        subject=Subject.GROUP,
        cases=_fenced,
        through=frozenset(Kind) - {Kind.LATENT, Kind.START},  # an offsets topic that lost records forgets
        where="our own consumers",
    ),
)
