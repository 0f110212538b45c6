"""Questions to real brokers: one that nobody has named yet is one that does not answer."""

import asyncio

from fencepost.run.real.broker_questions import Asking
from fencepost.systems.embedded import Embedded
from fencepost.traces.plan import TopicOptions


def test_a_broker_whose_address_nobody_named_is_passed_over():
    """A controller that the machine left without time had fenced it when the run asked who is there; the run
    goes on, and learns the address from whoever names it."""
    with Embedded() as system:
        host, _, port = system.bootstrap_servers().split(",")[2].rpartition(":")

        async def ask():
            asking = Asking({3: (host, int(port))})
            unknown = await asking.view(1, "t"), await asking.quorum_leader(2)
            await asking.create("t", TopicOptions(name="t"), system.brokers)
            later = await asking.view(1, "t")
            await asking.close()
            return unknown, later

        unknown, later = asyncio.run(ask())
    assert unknown == (None, None)
    assert later is not None and later.live == (1, 2, 3) and len(later.partitions) == 1


def test_two_questions_at_once_share_a_connection():
    """The observer looks while the run asks, too. Each opened a connection, and the first one was forgotten
    with the task that reads from it: "Task was destroyed but it is pending"."""

    async def readers():
        return [task for task in asyncio.all_tasks() if "Link._read" in repr(task.get_coro())]

    with Embedded() as system:
        host, _, port = system.bootstrap_servers().split(",")[0].rpartition(":")

        async def story():
            asking = Asking({1: (host, int(port))})
            views = await asyncio.gather(*(asking.view(1, "t") for _ in range(5)))
            during = len(await readers())
            await asking.close()
            await asyncio.sleep(0)
            return views, during, len(await readers())

        views, during, after = asyncio.run(story())
    assert all(view is not None and view.live == (1, 2, 3) for view in views)
    assert (during, after) == (1, 0)
