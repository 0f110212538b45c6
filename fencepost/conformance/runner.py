"""Runs cases against a broker, several at a time, and cleans up.

Owns the order, the bounds and the end. Must not know what the right answer is (record.py).
"""

import asyncio
import contextlib
import secrets
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from attrs import define, field, frozen

from fencepost.conformance.case import Case, Facts
from fencepost.conformance.lab import (
    DELETE_GROUPS,
    DELETE_TOPICS,
    METADATA,
    Lab,
    NotSpokenError,
    RefusedError,
    Run,
)
from fencepost.traces.errors import EnvironmentError_, FencepostError
from fencepost.wire.client import Access, Address, Link
from fencepost.wire.frames import ProtocolError

AT_ONCE = 8
"""Cases under way: some only wait."""
CASE_S = 60.0
"""Longest time of one case. The slowest waits a few seconds, and a real broker on a busy machine creates
topics slowly."""
CLEAN_S = 120.0
PROBES, PROBE_PAUSE_S = 3, 0.5
"""Looks at a broker before it counts as one that does not answer, and seconds between them: a broker that
closes everything for a moment is none that died."""
RESTARTED_S = 60.0
"""Longest wait for a broker that was started again: Apache Kafka needs about ten seconds."""
Restart = Callable[[], Awaitable[None]]
"""Starts the broker again."""
DELETED_AT_ONCE, DELETE_MS = 50, 10_000
"""Topics of one request, and its time-out: below ANSWER_S of the lab."""


@frozen(kw_only=True)
class Result:
    """The result of a case."""

    case: Case
    # What the broker answered, as JSON; None if the case was skipped.
    facts: Facts = None
    # Why it could not be asked: a version that the broker does not advertise, too few brokers.
    skipped: str = ""
    # Which broker stopped answering during it, and which cases ran at the same time; empty if all answer.
    died: str = ""
    seconds: float = 0.0


async def run_cases(
    run: Run,
    cases: Sequence[Case],
    done: Callable[[Result], None] = lambda result: None,
    restart: Restart | None = None,
) -> list[Result]:
    """Run cases, and delete what they made.

    Args:
        run: what the cases share. Its `left` names the topics that could not be deleted.
        cases: the cases.
        done: called with each result as it comes.
        restart: starts the broker again after a case has ended it; None: a broker that stops answering stays
            away, and cases that no broker is left for are skipped.

    Returns:
        The results, in the order of the cases.

    Raises:
        EnvironmentError_: no broker answers.
    """
    await run.look()
    if not run.brokers:
        raise EnvironmentError_(
            expected="a broker that names itself in Metadata", seen="no broker", where="the bootstrap servers"
        )
    try:
        await _first_group(run)
        watched = _Watched(run=run, waiting=deque(cases), done=done, restart=restart)
        await watched.go()
        return [watched.results[case.name] for case in cases]
    finally:
        await _clean(run)


@define(eq=False, kw_only=True)
class _Watched:
    """Cases of which each is followed by a look at the brokers: a case may end a broker, and it is named.

    Eight cases are under way at once, so that each of them may have done it. With a way to restart the
    broker, each of these runs once more, alone.
    """

    run: Run
    waiting: deque[Case]
    done: Callable[[Result], None]
    restart: Restart | None
    results: dict[str, Result] = field(factory=dict)
    _under_way: dict[str, Case] = field(factory=dict)
    # Cases during which a broker stopped answering.
    _suspects: dict[str, Case] = field(factory=dict)
    # What stopped answering, as sentences name it; empty while all answer.
    _dead: str = ""

    async def go(self) -> None:
        """Run every case, or say why it was not run."""
        while self.waiting and self.run.brokers:
            await asyncio.gather(*(self._work() for _ in range(AT_ONCE)))
            if self._dead:
                await self._after_death()
        for case in self.waiting:
            self._keep(Result(case=case, skipped=f"no broker answers any more ({self._last_words()})"))

    def _last_words(self) -> str:
        return next((each.died for each in reversed(self.results.values()) if each.died), "")

    async def _work(self) -> None:
        while self.waiting and not self._dead:
            case = self.waiting.popleft()
            self._under_way[case.name] = case
            result = await run_case(self.run, case)
            dead = await silent_brokers(self.run)
            if dead and not self._dead:
                self._dead, self._suspects = _named(self.run, dead), dict(self._under_way)
            del self._under_way[case.name]
            if case.name not in self._suspects:
                self._keep(result)

    async def _after_death(self) -> None:
        suspects, dead = list(self._suspects.values()), self._dead
        self._suspects, self._dead = {}, ""
        if self.restart is None or not await self._restarted(self.restart):
            for broker in await silent_brokers(self.run):
                del self.run.brokers[broker]
            for case in suspects:
                self._keep(Result(case=case, died=_sentence(dead, case, suspects)))
            return
        for case in suspects:
            result = await run_case(self.run, case)
            if again := await silent_brokers(self.run):
                self._keep(Result(case=case, died=_sentence(_named(self.run, again), case, [case])))
                if not await self._restarted(self.restart):
                    rest = suspects[suspects.index(case) + 1 :]
                    self.waiting.extendleft(reversed(rest))
                    for broker in await silent_brokers(self.run):
                        del self.run.brokers[broker]
                    return
            else:
                self._keep(result)
        if not any(self.results[case.name].died for case in suspects):
            # together they end it, alone none of them does
            for case in suspects:
                self._keep(Result(case=case, died=f"{_sentence(dead, case, suspects)}; alone, none stops it"))

    async def _restarted(self, restart: Restart) -> bool:
        """Start the broker again, and wait until every broker answers."""
        loop = asyncio.get_running_loop()
        await restart()
        deadline = loop.time() + RESTARTED_S
        while loop.time() < deadline:
            with contextlib.suppress(EnvironmentError_):
                await self.run.look()
                if self.run.brokers and not await silent_brokers(self.run, attempts=1):
                    return True
            await asyncio.sleep(PROBE_PAUSE_S)
        return False

    def _keep(self, result: Result) -> None:
        first = result.case.name not in self.results
        self.results[result.case.name] = result
        if first:
            self.done(result)


def _named(run: Run, brokers: Sequence[int]) -> str:
    return ", ".join("{}:{}".format(*run.brokers[each]) for each in brokers)


def _sentence(dead: str, case: Case, suspects: Sequence[Case]) -> str:
    others = ", ".join(each.name for each in suspects if each is not case)
    during = f"this case or one of those at the same time: {others}" if others else "this case"
    return f"{dead} stopped answering during {during}"


async def silent_brokers(run: Run, attempts: int = PROBES) -> list[int]:
    """The brokers that do not answer ApiVersions. run: has their addresses; attempts: before one counts as
    silent, each of which may take as long as a connection."""

    async def silent(broker: int) -> bool:
        for attempt in range(attempts):
            if attempt:
                await asyncio.sleep(PROBE_PAUSE_S)
            link = Link(run.brokers[broker], run.access)
            try:
                await link.open()
            except (OSError, ProtocolError):
                continue
            finally:
                await link.close()
            return False
        return True

    brokers = sorted(run.brokers)
    found = await asyncio.gather(*(silent(broker) for broker in brokers))
    return [broker for broker, is_silent in zip(brokers, found, strict=True) if is_silent]


async def _first_group(run: Run) -> None:
    """Create the topic of committed offsets before the cases, so that none of them waits for it: it is
    created when the first group is asked for."""
    lab = Lab(run)
    try:
        with contextlib.suppress(OSError, TimeoutError, ProtocolError, NotSpokenError):
            await lab.group()
    finally:
        await lab.close()


async def run_case(run: Run, case: Case) -> Result:
    """Run one case. run: what its cases share."""
    lab, loop = Lab(run), asyncio.get_running_loop()
    begun = loop.time()
    facts: Facts = None
    skipped = ""
    try:
        async with asyncio.timeout(CASE_S):
            facts = _json(await case.ask(lab))
    except NotSpokenError as error:
        skipped = str(error)
    except RefusedError as error:
        facts = f"refused: {error}"
    except TimeoutError:
        facts = "no answer"
    except ProtocolError as error:
        facts = f"unreadable: {error}"
    except OSError:
        facts = "closed"
    except Exception as error:  # a case reads bytes of a broker that may answer anything, and must end alone
        facts = f"an answer of another shape: {type(error).__name__}: {error}"
    finally:
        await lab.close()
    return Result(case=case, facts=facts, skipped=skipped, seconds=loop.time() - begun)


def _json(value: Facts) -> Facts:
    """The same as JSON has it: no tuples."""
    if isinstance(value, dict):
        return {str(name): _json(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_json(each) for each in value]
    return value


async def _clean(run: Run) -> None:
    """Delete every topic and group that was made, and remember the topics that stay. No error here hides what
    the cases have found."""
    with contextlib.suppress(Exception):
        async with asyncio.timeout(CLEAN_S):
            await _delete_topics(run)
            await _delete_groups(run)
    with contextlib.suppress(Exception):
        async with asyncio.timeout(CLEAN_S):
            run.left = await _topics_left(run)


async def _delete_topics(run: Run) -> None:
    """Some at once, and those of a request that fails alone: one name may be more than the broker bears."""
    names = sorted(run.topics)
    for start in range(0, len(names), DELETED_AT_ONCE):
        some = names[start : start + DELETED_AT_ONCE]
        if not await _deleted(run, DELETE_TOPICS, topic_names=some, timeout=DELETE_MS):
            for name in some:
                await _deleted(run, DELETE_TOPICS, topic_names=[name], timeout=DELETE_MS)


async def _delete_groups(run: Run) -> None:
    for broker in sorted(run.brokers) if run.groups else []:
        await _deleted(run, DELETE_GROUPS, broker, groups_names=sorted(run.groups))


async def _deleted(run: Run, key: int, broker: int | None = None, /, **values: Any) -> bool:
    """Ask once, on a connection of its own; whether there was an answer. broker: None for the controller."""
    lab = Lab(run)
    try:
        link = await lab.controller() if broker is None else await lab.link(broker)
        await lab.ask(link, key, **values)
    except (FencepostError, NotSpokenError, OSError, ProtocolError):
        return False
    finally:
        await lab.close()
    return True


async def _topics_left(run: Run) -> list[str]:
    """Those of this run that the brokers still name."""
    lab = Lab(run)
    try:
        answer = await lab.ask(await lab.link(), METADATA, topics=None)
    finally:
        await lab.close()
    return sorted(each["name"] for each in answer["topics"] if str(each["name"]).startswith(run.name))


def new_run(bootstrap: tuple[Address, ...], access: Access) -> Run:
    """A run with unused names. bootstrap: the broker's addresses; access: how to log in."""
    return Run(bootstrap=bootstrap, access=access, name=f"fencepost-{secrets.token_hex(4)}")
