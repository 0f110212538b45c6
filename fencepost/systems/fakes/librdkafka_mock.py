"""librdkafka's mock cluster as a system: brokers inside a client, made for tests of clients.

Owns the process and what a Python client of librdkafka can do to it, which is nothing: its faults are in the
C library only. So no fault is drawn, and a campaign says whether a history of such a cluster can be judged at
all.
"""

import asyncio
import sys
from importlib.util import find_spec

from attrs import define

from fencepost.systems.one_process import OneProcess
from fencepost.systems.system import Inside
from fencepost.traces.errors import EnvironmentError_

PROGRAM = """\
import sys
from confluent_kafka import Producer
client = Producer({"test.mock.num.brokers": int(sys.argv[1])})
brokers = client.list_topics(timeout=30).brokers
print(*(f"{one.id}={one.host}:{one.port}" for one in brokers.values()), flush=True)
sys.stdin.read()
"""
"""Of a process of its own: the mock ends with its client."""


@define(eq=False, kw_only=True, repr=False)
class LibrdkafkaMock(OneProcess):
    """systems.system.System over the mock cluster of librdkafka."""

    def __repr__(self) -> str:
        return f"<librdkafka's mock cluster of {self.size} brokers>"

    def command(self) -> list[str]:
        """Python with the client. Raises EnvironmentError_ where it is not installed."""
        if find_spec("confluent_kafka") is None:
            raise EnvironmentError_(
                expected="confluent-kafka, which has the mock cluster",
                seen="that it is not installed",
                where=repr(self),
                hint="pip install confluent-kafka",
            )
        return [sys.executable, "-c", PROGRAM, str(self.size)]

    def healthy(self) -> bool:
        """Whether every broker answers and knows the others; the mock names a controller that is none of
        them."""
        from fencepost.wire.client import Access, look_around

        async def all_know() -> bool:
            for address in self.addresses.values():
                try:
                    _, seen = await look_around((address,), Access())
                except EnvironmentError_:
                    return False
                if seen.live_brokers != self.brokers or any(one.leader < 0 for one in seen.partitions):
                    return False
            return True

        return asyncio.run(all_know())

    def inside(self) -> Inside:
        """What it consists of."""
        return Inside(
            software="librdkafka's mock cluster", real_processes=False, real_files=False, can=frozenset()
        )
