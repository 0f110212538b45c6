"""What does not go on although brokers serve it: at a partition whose leader is well while another is not.

Owns the anomaly `held_up`. Must not know how a run was made. Who was served by a leader is served by it
again. Times are those of the brokers' record, which stand while a machine is busy.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from attrs import frozen

from fencepost.checkers.liveness.serving import Serving
from fencepost.record.facts import place_of as partition_of
from fencepost.torture.at_brokers.heard import time_of
from fencepost.torture.drawing import GROUP
from fencepost.torture.driver_process import Command
from fencepost.torture.judging.delivery_judges import moves_of
from fencepost.torture.judging.finding import Finding, acknowledged, topic_of
from fencepost.torture.judging.outcome import NEVER
from fencepost.torture.judging.outcome import Outcome as Run
from fencepost.torture.record_contents import place_of
from fencepost.torture.scenario import DELETES, TOPICS
from fencepost.traces.kafka_names.internal_topics import OFFSETS_TOPIC

SPARE_NS = 1_000_000_000
"""Time beyond a library's own time-outs: back-offs, batches, a new connection. Those of a producer: of the
delivery, of a request that waits for the broker that is away, and of the next one that is asked of it."""
TIMED_OUT = 7
"""The code of REQUEST_TIMED_OUT, which some libraries give for their own time-outs, too."""
PAUSES = ("pause", "resume")
"""Steps after which a member may get nothing."""


@frozen(kw_only=True)
class Wait:
    """One client at one partition, in nanoseconds of the brokers' record."""

    client: str
    # When it was served.
    done: Sequence[int]
    # Since when something was there for it, and until when that mattered.
    owed: Sequence[tuple[int, int]]


def progress(run: Run) -> Iterator[Finding]:
    """Appends and deliveries that stand still for longer than the library's own time-outs.

    Args:
        run: what the application saw, and when each partition served its clients.
    """
    scenario = run.scenario
    if not run.serving or run.trouble or scenario.transactional or scenario.copier or scenario.idle_ms:
        return  # brokers that close connections teach clients to wait before the next one

    def time(at: int) -> int:
        return time_of(at, run.clock)

    struck: dict[str, list[int]] = defaultdict(list)
    for at, client in run.struck:
        struck[client].append(time(at))
    request, delivery = (_ns(scenario.producer, f"{name}_timeout_ms") for name in ("request", "delivery"))
    every = [(place, one, delivery + 2 * request) for place, one in _appends(run, time) if delivery]
    fetch = _ns(scenario.consumer, "request_timeout_ms")
    every += [(place, one, fetch) for place, one in _reads(run, time) if fetch]
    for place, wait, patience in every:
        for stretch in run.serving.get(place, ()):
            for begin, end in _idle(wait, stretch, struck[wait.client]):
                if end - begin > patience + SPARE_NS:
                    yield Finding(
                        anomaly="held_up",
                        expected=f"{wait.client} to go on at {place}, which broker {stretch.leader} serves "
                        f"as before, within {(patience + SPARE_NS) // 1_000_000} ms",
                        seen=f"nothing for {(end - begin) // 1_000_000} ms",
                    )
                    return


def _ns(settings: Any, name: str) -> int:
    return int(settings.get(name, 0)) * 1_000_000


def _idle(wait: Wait, stretch: Serving, struck: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Spans within a stretch in which the client waits. It was served before by this leader, and since a
    fault of requests struck it last: what failed may have taught it to wait before the next attempt."""
    inside = [at for at in wait.done if stretch.begin < at < stretch.end]
    for after, before in pairwise((stretch.begin, *inside, stretch.end)):
        there = [
            (max(since, after), min(until, before))
            for since, until in wait.owed
            if since < before and until > after
        ]
        if there:
            end = max(until for _, until in there)
            well = max((at for at in struck if at <= end), default=0)
            served = min((at for at in wait.done if at >= max(stretch.since, well)), default=NEVER)
            yield max(served, min(since for since, _ in there)), end


def _appends(run: Run, time: Callable[[int], int]) -> Iterator[tuple[str, Wait]]:
    """Each producer at each partition. An error that says more than that time is over is an answer, too."""
    sent: dict[tuple[str, str], list[Command]] = defaultdict(list)
    for one in run.appends:
        if one.client not in run.closed and one.fields["topic"] not in run.renewed:
            sent[one.client, place_of(one.fields)].append(one)
    for (client, place), appends in sent.items():
        spans = [(time(one.sent_ns), time(one.answered_ns or NEVER), _is_done(one)) for one in appends]
        yield (
            place,
            Wait(
                client=client,
                done=sorted(end for _, end, done in spans if done),
                owed=[(since, end) for since, end, _ in spans],
            ),
        )


def _is_done(append: Command) -> bool:
    if append.ok or append.answer is None:
        return append.ok
    error = append.answer.get("error")
    code = error.get("code") if isinstance(error, dict) else None
    fatal = isinstance(error, dict) and error.get("fatal")
    return (
        append.answer["event"] == "refused" or bool(fatal) or (code or 0) not in (*range(-200, 1), TIMED_OUT)
    )


def _reads(run: Run, time: Callable[[int], int]) -> Iterator[tuple[str, Wait]]:
    """Each member at each partition, as long as its coordinator serves and nothing takes its partitions: it
    is owed what was acknowledged."""
    scenario = run.scenario
    if scenario.logs or any(step.verb in PAUSES for step in scenario.steps):
        return
    written: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for one in run.appends:
        place, offset = acknowledged(one)
        if one.ok and offset >= 0 and one.fields["topic"] not in run.renewed:
            written[place].append((time(one.answered_ns or NEVER), offset))
    deleted = {f"{TOPICS[0]}-{one.target}" for one in scenario.broker_faults if one.verb == DELETES}
    for client, polls in run.polls.items():
        got: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for poll in polls:
            for record in (poll.answer or {}).get("records") or ():
                got[place_of(record)].append((time(poll.answered_ns or NEVER), record["offset"]))
        for begin, end in _members(run, client, time):
            for place, read in got.items():
                inside = [(at, offset) for at, offset in read if begin < at < end]
                if not inside or place in deleted:
                    continue
                first, when = inside[0][1], {offset: at for at, offset in reversed(inside)}
                owed = [
                    (max(at, begin), min(when.get(offset, end), end))
                    for at, offset in written[place]
                    if offset >= first and at < end
                ]
                yield place, Wait(client=client, done=[at for at, _ in inside], owed=owed)


def _members(run: Run, client: str, time: Callable[[int], int]) -> Iterator[tuple[int, int]]:
    """Stretches in which the group's coordinator serves and nothing happens to the membership of a client."""
    coordinators = [place for place in run.serving if topic_of(place) == OFFSETS_TOPIC]
    moves = [*moves_of(run, client), *(at for at, who in run.troubles if who == client)]
    moves += [one.sent_ns for one in run.asking if one.client == client]
    breaks = sorted(map(time, moves))
    mine = f"{OFFSETS_TOPIC}-{partition_of(GROUP, max(1, len(coordinators)))}"
    for stretch in run.serving.get(mine, ()):
        inside = [at for at in breaks if stretch.begin < at < stretch.end]
        yield from pairwise((stretch.begin, *inside, stretch.end))
