"""What a group's clients sent, as the brokers heard it: every commit, and every answer that may end a
membership.

Owns the listening. Must not know what is a bug. It wraps the hook of the faults of requests: what a fault
does to a request counts as what its client met. A client is known by its client id, which is the name that
its commands have.
"""

import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from attrs import define, evolve, field, frozen

from fencepost.wire.codec import RequestHeader
from fencepost.wire.hook import PASS, Hook, Verdict
from fencepost.wire.passing import error_name

OF_GROUPS = frozenset(
    {"FindCoordinator", "JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit", "OffsetFetch", "LeaveGroup"}
    | {"Metadata", "ListOffsets", "ApiVersions"}
)
"""Requests with which a member learns of its group, and of the topics that are shared out."""

NO_TROUBLE = frozenset({"NONE", "MEMBER_ID_REQUIRED"})
"""The second is a part of joining (KIP-394)."""


@frozen(kw_only=True)
class HeardCommit:
    """One OffsetCommit request."""

    # When a broker decoded it, monotonic, in nanoseconds.
    at_ns: int
    # When its answer without any error went out whole; None: it did not.
    answered_ns: int | None = None
    client: str
    group: str
    member: str
    generation: int
    # Its connection, and when the first request before it there was decoded; 0: it is the first.
    source: int
    since_ns: int
    # The next offset to read, by partition, named as `t-0`.
    offsets: Mapping[str, int]


@define(eq=False)
class Heard:
    """Of one run. Written in the thread of the brokers, read when they have ended."""

    commits: list[HeardCommit] = field(factory=list)
    # (when, client) of each request of OF_GROUPS that had an error, another answer, or none.
    troubles: list[tuple[int, str]] = field(factory=list)
    # (when, client) of each request that a fault of requests struck.
    struck: list[tuple[int, str]] = field(factory=list)
    # (when, client, partition, offset) of each part of a Fetch that was answered with OFFSET_OUT_OF_RANGE.
    out_of_range: list[tuple[int, str, str, int]] = field(factory=list)
    # The time of the brokers' record, in nanoseconds.
    now: Callable[[], int] = lambda: 0
    # (monotonic, of the record) of each request.
    clock: list[tuple[int, int]] = field(factory=list)
    # When the first request of each connection was decoded.
    _since: dict[int, int] = field(factory=dict)
    # Commits without an answer, by connection and correlation id: their places in the list.
    _open: dict[tuple[int, int], int] = field(factory=dict)

    def between(self, hook_of: Callable[[int], Hook | None]) -> Callable[[int], Hook]:
        """Hooks that listen, and do what these do.

        Args:
            hook_of: a broker's; None: it has none.
        """
        return lambda broker: Listening(self, hook_of(broker))

    def asked(self, source: int, header: RequestHeader, body: Any, verdict: Verdict) -> None:
        """A request, and what becomes of it. Parameters as of a hook, and its verdict."""
        name, now = type(body).__name__.removesuffix("Request"), time.monotonic_ns()
        self.clock.append((now, self.now()))
        if name == "OffsetCommit":
            generation = getattr(body, "generation_id_or_member_epoch", getattr(body, "generation_id", -1))
            self._open[source, header.correlation_id] = len(self.commits)
            self.commits.append(
                HeardCommit(
                    at_ns=now,
                    client=header.client_id or "",
                    group=body.group_id,
                    member=getattr(body, "member_id", ""),
                    generation=generation,
                    source=source,
                    since_ns=self._since.get(source, 0),
                    offsets={
                        f"{topic.name}-{one.partition_index}": one.committed_offset
                        for topic in body.topics
                        for one in topic.partitions
                    },
                )
            )
        self._since.setdefault(source, now)
        if verdict != PASS:
            self.struck.append((now, header.client_id or ""))
        if name in OF_GROUPS and verdict != PASS:
            self.troubles.append((now, header.client_id or ""))

    def answered(self, source: int, header: RequestHeader, body: Any, answer: Any, verdict: Verdict) -> None:
        """An answer, and what becomes of it. Parameters as of a hook, and its verdict."""
        name, now = type(body).__name__.removesuffix("Request"), time.monotonic_ns()
        clean = verdict == PASS and not any(_errors(answer))
        if verdict != PASS:
            self.struck.append((now, header.client_id or ""))
        if name == "Fetch":
            asked = {place: one.fetch_offset for place, one in _parts(body.topics, "partition")}
            self.out_of_range += [
                (now, header.client_id or "", place, asked.get(place, 0))
                for place, one in _parts(answer.responses, "partition_index")
                if error_name(one.error_code) == "OFFSET_OUT_OF_RANGE"
            ]
        place = self._open.pop((source, header.correlation_id), None)
        if place is not None and clean:
            self.commits[place] = evolve(self.commits[place], answered_ns=now)
        if name in OF_GROUPS and not clean:
            self.troubles.append((now, header.client_id or ""))


def time_of(at: int, clock: Sequence[tuple[int, int]]) -> int:
    """A monotonic moment by the clock of the brokers' record, which stands while a machine is busy.

    Args:
        at: nanoseconds.
        clock: pairs of the same moment, monotonic and of the record, ascending.
    """
    place = bisect_right(clock, (at, 1 << 62)) - 1
    if place < 0:
        return clock[0][1] if clock else 0
    known, time = clock[place]
    most = clock[place + 1][1] if place + 1 < len(clock) else time + at - known
    return min(time + at - known, most)


@frozen
class Listening:
    """A hook of one broker that says what it saw."""

    heard: Heard
    inner: Hook | None

    def on_request(self, source: int, header: RequestHeader, body: Any) -> Verdict:
        """As `Hook.on_request`.

        Args:
            source: the connection.
            header: of the request.
            body: the request, decoded.
        """
        verdict = PASS if self.inner is None else self.inner.on_request(source, header, body)
        self.heard.asked(source, header, body, verdict)
        return verdict

    def on_answer(self, source: int, header: RequestHeader, body: Any, answer: Any) -> Verdict:
        """As `Hook.on_answer`.

        Args:
            source: the connection.
            header: of the request.
            body: the request, decoded.
            answer: decoded, not sent yet.
        """
        verdict = PASS if self.inner is None else self.inner.on_answer(source, header, body, answer)
        self.heard.answered(source, header, body, answer, verdict)
        return verdict


def _parts(topics: Iterable[Any], number: str) -> Iterator[tuple[str, Any]]:
    for topic in topics:
        for one in topic.partitions:
            yield f"{getattr(topic, 'topic', '')}-{getattr(one, number)}", one


def _errors(answer: Any) -> list[bool]:
    """Whether there is an error, at each place of an answer where one could be."""
    code = getattr(answer, "error_code", None)
    found = [code is not None and error_name(code) not in NO_TROUBLE]
    for name in ("topics", "partitions", "groups", "coordinators"):
        for one in getattr(answer, name, None) or ():
            found += _errors(one)
    return found
