"""What members committed, and what was taken from them, against what they were handed and what brokers heard.

Owns the anomalies of commits and of partitions taken without a reason. Must not know how a run was made.
Every commit on the wire is judged, not only what is committed in the end.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from fencepost.torture.drawing import GROUP
from fencepost.torture.judging.finding import Finding, delivered, topic_of
from fencepost.torture.judging.outcome import Outcome as Run
from fencepost.torture.record_contents import place_of
from fencepost.torture.scenario import COMPACTS

SESSION_MS = 6_000
"""Time-out of sessions where a scenario has none of its own: the shortest default of a library."""
AROUND_NS = 1_000_000_000
"""A reason may be so much older than the partitions that a member was given last: a library may say what it
gets before what it loses, of one rebalance."""


def commits(run: Run) -> Iterator[Finding]:
    """Compare what is committed with what was delivered and with acknowledged commits.

    Args:
        run: what the application saw, and what brokers heard.
    """
    yield from _beyond(run)
    yield from _unanswered(run)
    if run.scenario.rewinds:
        return  # who seeks back in its listener may commit less
    sought = {seek.client for seek in run.seeks}
    yield from _lower(run, sought)
    if sought:
        return
    acknowledged: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for commit in run.commits:
        if commit.answered_ns is None or commit.answered_ns >= run.committed_ns:
            continue
        if commit.ok and (commit.answer or {}).get("reported", True):
            for row in (commit.answer or {}).get("offsets") or ():
                if row["topic"] in run.renewed:
                    continue
                acknowledged[place_of(row)].append((commit.answered_ns, row["offset"]))
    for one in run.heard:
        if one.group == GROUP and one.answered_ns is not None:
            for place, offset in one.offsets.items():
                if topic_of(place) not in run.renewed and one.answered_ns < run.committed_ns:
                    acknowledged[place].append((one.answered_ns, offset))
    for place, rows in acknowledged.items():
        most = max(offset for _, offset in rows)
        if place in run.committed and run.committed[place] < most:
            yield Finding(
                anomaly="committed_back",
                expected=f"at least {most} committed of {place}, as was acknowledged",
                seen=f"{run.committed[place]}",
            )
    yield from _below(run, acknowledged)


def _beyond(run: Run) -> Iterator[Finding]:
    """Commits of what no poll had handed out. A poll that had begun may have handed out its records before
    its answer was read."""
    said: list[tuple[int | None, str, int, str]] = [
        (one.at_ns, place, offset, f"by {one.client}")
        for one in run.heard
        if one.group == GROUP
        for place, offset in one.offsets.items()
    ]
    said += [(None, place, offset, "in the end") for place, offset in run.committed.items()]
    for at, place, offset, who in said:
        if topic_of(place) in run.renewed:
            continue
        entries = run.log.get(place, ())
        highest = delivered(run, at)[1].get(place, -1)
        after = max(highest + 1, entries[0].offset if entries else 0)
        if run.scenario.transactional or run.scenario.logs == COMPACTS:  # holes are passed over
            after = max([after, *(one.offset + 1 for one in entries if not run.visible(one))])
            unread = any(run.visible(one) and after <= one.offset < offset for one in entries)
        else:
            unread = offset > after
        if unread:
            yield Finding(
                anomaly="committed_beyond",
                expected=f"at most {highest + 1} committed of {place}",
                seen=f"{offset}, {who}",
            )
            return


def _lower(run: Run, sought: set[str]) -> Iterator[Finding]:
    """Commits of one member below what it had committed in the same generation, with an answer.

    A broker that rests decodes late what was sent to it long ago: of two connections the second one must have
    spoken first after that answer."""
    before: dict[tuple[str, str, int, str], list[tuple[int, int, int]]] = defaultdict(list)
    for one in run.heard:
        for place, offset in one.offsets.items():
            if one.group != GROUP or one.generation < 0 or one.client in sought:
                continue
            key = (one.client, one.member, one.generation, place)
            first = run.log[place][0].offset if run.log.get(place) else 0  # what is deleted is not read again
            known = [
                most
                for answered, most, source in before[key]
                if answered < (one.at_ns if source == one.source else one.since_ns) and most >= first
            ]
            if max(known, default=offset) > offset and topic_of(place) not in run.renewed:
                yield Finding(
                    anomaly="committed_back",
                    expected=f"no commit of {one.client} below {max(known)} of {place} in generation "
                    f"{one.generation}, which was acknowledged",
                    seen=f"{offset}",
                )
                return
            if one.answered_ns is not None:
                before[key].append((one.answered_ns, offset, one.source))


def _unanswered(run: Run) -> Iterator[Finding]:
    open_ = [one for one in run.commits if one.answer is None and one.client not in run.left]
    if open_ and not run.trouble and run.drained:
        yield Finding(
            anomaly="stuck_commit",
            expected="every commit answered after the heal",
            seen=f"{len(open_)} of {len(run.commits)} without an answer, the first of {open_[0].client}",
        )


def _below(run: Run, acknowledged: Mapping[str, list[tuple[int, int]]]) -> Iterator[Finding]:
    """Members that were given a partition after a commit, and read below it."""
    for client, polls in run.polls.items():
        given: dict[str, list[int]] = defaultdict(list)
        for event in run.events:
            if event.fields.get("client") == client and event.fields["event"] == "assigned":
                for row in event.fields.get("partitions") or ():
                    given[place_of(row)].append(event.at_ns)
        for poll in polls:
            for record in (poll.answer or {}).get("records") or ():
                place = place_of(record)
                since = max((at for at in given[place] if at <= poll.sent_ns), default=None)
                if since is None:
                    continue
                floor = max((offset for at, offset in acknowledged.get(place, ()) if at <= since), default=0)
                if record["offset"] < floor:
                    yield Finding(
                        anomaly="below_committed",
                        expected=f"offsets from {floor} of {place}, committed before {client} was given it",
                        seen=f"offset {record['offset']}, delivered to {client}",
                    )


def revocations(run: Run) -> Iterator[Finding]:
    """Partitions that were revoked, or reported as lost, without any reason.

    A reason is a fact that the library does not decide: an error of a request of its group or of metadata, a
    connection or a broker that was broken, something that its application did. A session that may have timed
    out in the library, on a machine that is busy, is a reason, too.
    """
    scenario = run.scenario
    if scenario.broker_faults or scenario.chaos or scenario.idle_ms or scenario.narrow:
        return
    session_ns = int(scenario.consumer.get("session_timeout_ms", SESSION_MS)) * 1_000_000
    reasons: dict[str, list[int]] = defaultdict(list)
    for at, client in run.troubles:
        reasons[client].append(at)
    for command in run.asking:
        reasons[command.client].append(command.sent_ns)
    given: dict[str, int] = {}
    for event in run.events:
        client, kind = event.fields.get("client", ""), event.fields["event"]
        if kind == "assigned" and event.fields.get("partitions") and client in run.polls:
            given[client] = event.at_ns
        if kind not in ("revoked", "lost") or not event.fields.get("partitions") or client not in given:
            continue
        since = given[client]
        quiet = event.at_ns - since < session_ns
        if quiet and not any(since - AROUND_NS <= at <= event.at_ns for at in reasons[client]):
            yield Finding(
                anomaly="revoked_without_reason",
                expected=f"{client} keeps what it was given: no error, no fault and no wish since",
                seen=f"{kind}: {', '.join(place_of(one) for one in event.fields['partitions'][:4])}",
            )
            return
