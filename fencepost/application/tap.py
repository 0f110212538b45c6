"""A tap for Python: wrap the client's object, and continue to use it; the file gets a line for each event.

    from fencepost.application.tap import Tap

    tap = Tap("out/app.events")
    producer = tap.producer(confluent_kafka.Producer({...}))
    settings = {"group.id": "g", "on_commit": tap.on_commit("c1"), ...}
    consumer = tap.consumer(confluent_kafka.Consumer(settings), name="c1", group="g")
    ...
    tap.processed(message)        # nothing is left to do for it: the one line that no client can write

Owns which wrapper fits a client. Must not know what it writes (tapped_clients.py, tap_file.py).
"""

import itertools
import os
from typing import Any

from attrs import define, field

from fencepost.application.event_lines import VERSION
from fencepost.application.tap_file import TapFile
from fencepost.application.tapped_clients import WRAPPERS


@define(eq=False)
class Tap(TapFile):
    """A file of events, and the wrappers of the clients whose events it gets."""

    _names: "itertools.count[int]" = field(factory=lambda: itertools.count(1), init=False)

    def producer(self, client: Any, name: str = "") -> Any:
        """The client, tapped: confluent_kafka.Producer, kafka.KafkaProducer or aiokafka.AIOKafkaProducer.

        Args:
            client: whatever it offers is there, unchanged.
            name: of the process in the lines; its number in this program by default.
        """
        return self._wrapped(client, name or f"p{os.getpid()}-{next(self._names)}", "")

    def consumer(self, client: Any, name: str = "", group: str = "") -> Any:
        """The client, tapped: confluent_kafka.Consumer, kafka.KafkaConsumer or aiokafka.AIOKafkaConsumer.

        Args:
            client: whatever it offers is there, unchanged.
            name: of the process in the lines; its number in this program by default.
            group: its group.id; only confluent_kafka does not say it by itself.
        """
        return self._wrapped(client, name or f"c{os.getpid()}-{next(self._names)}", group)

    def _wrapped(self, client: Any, process: str, group: str) -> Any:
        for kind in type(client).__mro__:
            if kind.__name__ in WRAPPERS:
                wrapper = WRAPPERS[kind.__name__](self, client, process)
                self.write("started", process, version=VERSION, group=group or wrapper.group())
                wrapper.begin()
                return wrapper
        raise TypeError(f"expected one of {', '.join(sorted(WRAPPERS))}, saw {type(client).__name__}")
