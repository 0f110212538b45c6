"""Runs cases against a broker, several at a time, and cleans up.

Owns the order, the bounds and the end. Must not know what the right answer is (record.py).
"""

import asyncio
import contextlib
import secrets
from collections.abc import Callable, Sequence

from attrs import frozen

from fencepost.conformance.case import Case, Facts
from fencepost.conformance.lab import DELETE_GROUPS, DELETE_TOPICS, Lab, NotSpokenError, RefusedError, Run
from fencepost.traces.errors import EnvironmentError_
from fencepost.wire.client import Access, Address
from fencepost.wire.frames import ProtocolError

AT_ONCE = 8
"""Cases under way: some only wait."""
CASE_S = 60.0
"""Longest time of one case. The slowest waits a few seconds, and a real broker on a busy machine creates
topics slowly."""
CLEAN_S = 120.0
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
    seconds: float = 0.0


async def run_cases(
    run: Run, cases: Sequence[Case], done: Callable[[Result], None] = lambda result: None
) -> list[Result]:
    """The results, in the order of the cases. done: called with each result as it comes. Raises
    EnvironmentError_ if no broker answers."""
    await run.look()
    if not run.brokers:
        raise EnvironmentError_(
            expected="a broker that names itself in Metadata", seen="no broker", where="the bootstrap servers"
        )
    room = asyncio.Semaphore(AT_ONCE)

    async def one(case: Case) -> Result:
        async with room:
            result = await run_case(run, case)
            done(result)
            return result

    try:
        await _first_group(run)
        return list(await asyncio.gather(*(one(case) for case in cases)))
    finally:
        await _clean(run)


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
    except (AssertionError, LookupError, TypeError, ValueError) as error:
        # the answer has not the shape that its API has: what it is said to be
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
    """Delete every topic and group that was made. What is left is left: the cases have been asked."""
    lab = Lab(run)
    try:
        async with asyncio.timeout(CLEAN_S):
            names, link = sorted(run.topics), await lab.controller()
            for start in range(0, len(names), DELETED_AT_ONCE):
                some = names[start : start + DELETED_AT_ONCE]
                await lab.ask(link, DELETE_TOPICS, topic_names=some, timeout=DELETE_MS)
            links = [await lab.link(broker) for broker in run.brokers]
            for link in links if run.groups else []:
                await lab.ask(link, DELETE_GROUPS, groups_names=sorted(run.groups))
    except (OSError, TimeoutError, ProtocolError, NotSpokenError):
        return
    finally:
        await lab.close()


def new_run(bootstrap: tuple[Address, ...], access: Access) -> Run:
    """A run with unused names. bootstrap: the broker's addresses; access: how to log in."""
    return Run(bootstrap=bootstrap, access=access, name=f"fencepost-{secrets.token_hex(4)}")
