"""The members of a run's consumer group: they poll, commit, seek, leave and join.

Owns the members and what was delivered to which of them. Must not know faults, or what is a bug.

An application restarts a member when its library reports a failure: its `open`, its `subscribe`, or
several polls in a row fail, or it reported trouble and then delivered nothing for RESTART_S. A member that
fails without a report is waited for, until DRAIN_S after the heal; then it counts as stuck.
"""

import time
from typing import Any

from attrs import define, field

from fencepost.torture.drawing import GROUP
from fencepost.torture.driver_process import Command, Driver
from fencepost.torture.patience import RESTART_S, Patience
from fencepost.torture.record_contents import place_of
from fencepost.torture.scenario import TOPICS, Scenario, Step

DRAIN_S = 20.0
"""Longest time without a new record while the group has not seen all: three session time-outs, two time-outs
of requests."""
TURN_S = 0.005
POLL_MS = 100
COMMIT_EVERY = 3
"""Polls between commits."""
COMMITS_AT_ONCE = 3
CROWD = 2
"""Members that join at once."""
CLOSE_MS = 5_000
COMMITTED_S = 40.0
FAILED_POLLS = 3
"""Failed polls in a row before a member is restarted."""
REST_S = 0.5
"""Time without polls when the application rests: more than a heartbeat, and time for what was fetched to get
old."""
POLLS_BETWEEN = 3
"""Polls between two changes of a subscription, or of a paused member."""
MOST_JOINS = 40
"""Most members that join in one run."""


@define(eq=False)
class Group:
    """A running group."""

    scenario: Scenario
    driver: Driver
    # HOST:PORT,... of the brokers.
    bootstrap: str
    # Its name.
    name: str = GROUP
    # Most members that join in one run.
    most_joins: int = MOST_JOINS
    # Members that should be active.
    members: list[str] = field(factory=list, init=False)
    # Polls of each member, also of members that have left.
    polls: dict[str, list[Command]] = field(factory=dict, init=False)
    # Explicit commits, in order.
    commits: list[Command] = field(factory=list, init=False)
    # Members that were closed before the end.
    left: set[str] = field(factory=set, init=False)
    # Seeks, in order.
    seeks: list[Command] = field(factory=list, init=False)
    # Partition and offset of every delivered record.
    handed: set[tuple[str, int]] = field(factory=set, init=False)
    _highest: dict[str, int] = field(factory=dict, init=False)
    # Members so far, for fresh names.
    _joined: int = field(default=0, init=False)
    # `open` and `subscribe` of each member.
    _beginning: dict[str, tuple[Command, Command]] = field(factory=dict, init=False)
    # Polls of a member that were looked at.
    _read: dict[str, int] = field(factory=dict, init=False)
    # Polls of a member that failed one after another.
    _failed: dict[str, int] = field(factory=dict, init=False)
    # Until when the application does not poll.
    _resting: float = field(default=0.0, init=False)
    # Who was handed the last record of a partition.
    _owner: dict[str, str] = field(factory=dict, init=False)

    def join(self) -> Command:
        """A new member; answers its `open`."""
        name = f"{'c' if self.name == GROUP else self.name}{self.scenario.seed}-{self._joined}"
        self._joined += 1
        config = {
            "bootstrap": self.bootstrap,
            "group": self.name,
            **self.scenario.consumer,
            "client_id": name,
        }
        opening = self.driver.send("open", name, role="consumer", config=config)
        topics = TOPICS[: self.scenario.topics]
        if self.scenario.rewinds and "rewind" in self.driver.ready.commands:
            self.driver.send("rewind", name)
        subscribing = self.driver.send("subscribe", name, topics=topics)
        self.members.append(name)
        self._beginning[name] = opening, subscribing
        self.polls[name], self._read[name], self._failed[name] = [], 0, 0
        return opening

    def leave(self, name: str) -> None:
        """Close this member, also if an operation is in progress."""
        self.members.remove(name)
        self.left.add(name)
        self.driver.send("close", name, timeout_ms=CLOSE_MS)

    def close(self) -> list[Command]:
        """Close all members; answers the commands."""
        return [self.driver.send("close", name, timeout_ms=CLOSE_MS) for name in self.members]

    def step(self, step: Step) -> None:
        """What the application does now."""
        if not self.members:
            return
        match step.verb:
            case "leave":
                self.leave(self.members[0])
                self.join()
            case "restart":
                for name in list(self.members):
                    self.leave(name)
                    self.join()
            case "crowd":
                self._crowd()
            case "seek":
                self._seek()
            case "commits" if self.scenario.commit_mode != "auto":
                for name in self.members * COMMITS_AT_ONCE:
                    self._commit(name)
            case "resubscribe" if "resubscribe" in self.driver.ready.commands:
                self._resubscribe(self.members[0])
            case "pause" if "pause" in self.driver.ready.commands:
                self._pause(self.members[-1])
            case "resume" if "resume" in self.driver.ready.commands:
                self.driver.send("resume", self.members[-1])
            case "rest":
                self._resting = time.monotonic() + REST_S

    def _crowd(self) -> None:
        """Members that join in quick succession; as many leave before the group has settled."""
        if self._joined + CROWD < self.most_joins:
            for _ in range(CROWD):
                self.join()
            for name in self.members[:CROWD]:
                self.leave(name)

    def _resubscribe(self, name: str) -> None:
        topics = TOPICS[: self.scenario.topics]
        self.driver.send("resubscribe", name, topics=topics[:1])
        for _ in range(POLLS_BETWEEN):
            self._poll(name)
        self.driver.send("resubscribe", name, topics=topics)

    def _pause(self, name: str) -> None:
        self.driver.send("pause", name)
        for _ in range(POLLS_BETWEEN):
            self._poll(name)
        self.driver.send("resume", name)

    def _seek(self) -> None:
        """The owner of the partition with the most records goes back to its middle."""
        owned = [place for place in sorted(self._highest) if self._owner[place] in self.members]
        if not owned or "seek" not in self.driver.ready.commands:
            return
        place = max(owned, key=lambda one: self._highest[one])
        topic, _, partition = place.rpartition("-")
        self.seeks.append(
            self.driver.send(
                "seek",
                self._owner[place],
                topic=topic,
                partition=int(partition),
                offset=self._highest[place] // 2,
            )
        )

    def _commit(self, name: str) -> None:
        self.commits.append(self.driver.send("commit", name, mode=self.scenario.commit_mode, offsets=None))

    def turn(self) -> bool:
        """Start a poll for each member without one. Returns whether a new record came."""
        fresh = False
        for name in list(self.polls):
            fresh = self._look(name) or fresh
            if name not in self.members:
                continue
            if self._lost(name):
                self._anew(name)
            elif self._read[name] == len(self.polls[name]) and time.monotonic() >= self._resting:
                self._poll(name)
        return fresh

    def _poll(self, name: str) -> None:
        polls, scenario = self.polls[name], self.scenario
        if scenario.commit_mode != "auto" and len(polls) % COMMIT_EVERY == COMMIT_EVERY - 1:
            self._commit(name)
        polls.append(self.driver.send("poll", name, timeout_ms=POLL_MS, max_records=scenario.polled))

    def _look(self, name: str) -> bool:
        """Read the new answers of a member. Returns whether one has a new record."""
        fresh = False
        for poll in self.polls[name][self._read[name] :]:
            if poll.answer is None:
                break
            self._read[name] += 1
            self._failed[name] = 0 if poll.ok else self._failed[name] + 1
            for one in (poll.answer.get("records") or ()) if poll.ok else ():
                place = place_of(one), one["offset"]
                fresh = fresh or place not in self.handed
                self.handed.add(place)
                self._highest[place[0]] = max(place[1], self._highest.get(place[0], 0))
                self._owner[place[0]] = name
        return fresh

    def _lost(self, name: str) -> bool:
        """Whether the library said that this member is none."""
        unbegun = any(one.answer is not None and not one.ok for one in self._beginning[name])
        return unbegun or self._failed[name] >= FAILED_POLLS

    def _anew(self, name: str) -> None:
        self.leave(name)
        if self._joined < self.most_joins:
            self.join()

    def drain(self, wanted: set[tuple[str, int]]) -> bool:
        """Poll until the group has seen all; whether it has. If it gave up joining under faults, it begins
        again: the cluster is healed now."""
        if not self.scenario.members:
            return True
        if not self.members:
            self.most_joins += self._joined
            self.join()
        waiting, bearing = Patience(), Patience()
        while len(self.handed) < len(wanted) or wanted - self.handed:  # the second is slow, and seldom asked
            if self.turn():
                waiting, bearing = Patience(), Patience()
            if waiting.turn() > DRAIN_S or self.driver.failure:
                return False
            if bearing.turn() > RESTART_S:
                bearing = Patience()
                for name in self.driver.troubled.intersection(self.members):
                    self._anew(name)
            time.sleep(TURN_S)
        return True

    def _answered(self) -> None:
        """Wait for the answers to commits. Members go on polling: some libraries call back from there."""
        patience = Patience()
        while patience.turn() < COMMITTED_S and not self.driver.failure:
            if self.driver.wait([one for one in self.commits if one.client not in self.left], TURN_S):
                return
            self.turn()

    def committed(self, topics: tuple[str, ...]) -> dict[str, int]:
        """What is committed, by partition, after every member has committed once more."""
        committed: dict[str, int] = {}
        if self.scenario.commit_mode != "auto":
            for name in self.members:
                self._commit(name)
        if self.members and "committed" in self.driver.ready.commands:
            where: list[dict[str, Any]] = [
                {"topic": topic, "partition": number}
                for topic in topics
                for number in range(self.scenario.partitions)
            ]
            self._answered()
            asked = self.driver.send("committed", self.members[0], partitions=where)
            self.driver.wait([asked], COMMITTED_S)
            for row in (asked.answer or {}).get("offsets") or ():
                if row["offset"] >= 0:
                    committed[place_of(row)] = row["offset"]
        return committed
