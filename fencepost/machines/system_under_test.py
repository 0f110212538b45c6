"""The interface to a replicated log of yours: what the machine asks of it (replicated_log.py has the
machine).

Owns the protocol and what its answers mean. Must not know Hypothesis, or any system.

    class Mine(SystemUnderTest):
        nodes = (1, 2, 3)
        faults = ("stop", "cut")

        def append(self, value): ...        # -> the offset, or RefusedError, or UnclearError
        def read(self, offset, most): ...   # -> Batch
        def end_offset(self): ...
        def begin_fault(self, kind, node): ...
        def end_fault(self, kind, node): ...

Calls come one at a time, from one thread. A system of processes and sockets waits inside of the calls; one in
memory has `pass_time` to let its background work (fetches, elections) go on.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

from attrs import field, frozen
from attrs.validators import deep_iterable, ge, instance_of

INTEGERS = deep_iterable(instance_of(int), instance_of(tuple))


class RefusedError(Exception):
    """The operation did not happen and never will: the answer proves it. A record of an append that was
    refused must never be read."""


class UnclearError(Exception):
    """The operation may have happened, may happen later, or never: a time-out, a lost connection."""


@frozen(kw_only=True)
class ReadResult:
    """What a read returned. values: of the records from the offset that was asked for on, without gaps, () at
    the end. end_offset: one above the last record that readers may see now (Kafka's high watermark), as this
    answer claims it."""

    values: tuple[int, ...] = field(converter=tuple, validator=INTEGERS)
    end_offset: int = field(validator=[instance_of(int), ge(0)])


class SystemUnderTest(ABC):
    """A replicated log of 64-bit values with offsets from 0. nodes: what faults can hit. faults: the kinds
    that `begin_fault` knows; the machine breaks nothing where there are none. Any exception but RefusedError
    and UnclearError fails the example."""

    nodes: ClassVar[Sequence[int]] = (1, 2, 3)
    faults: ClassVar[Sequence[str]] = ()

    @abstractmethod
    def append(self, value: int) -> int:
        """Append one record and answer its offset once it is committed. Raises RefusedError, UnclearError."""

    @abstractmethod
    def read(self, offset: int, most: int) -> ReadResult:
        """At most so many records from this offset on. Raises RefusedError or UnclearError if nobody
        answers."""

    @abstractmethod
    def end_offset(self) -> int:
        """One above the last record that readers may see. Raises RefusedError or UnclearError if nobody
        answers."""

    def begin_fault(self, kind: str, node: int) -> None:
        """Break something. The machine begins no fault that is under way already.

        Args:
            kind: one of `faults`.
            node: which node.
        """
        raise NotImplementedError(f"{type(self).__name__} lists the fault {kind} and does not begin it")

    def end_fault(self, kind: str, node: int) -> None:
        """Mend it again (start the process, heal the link). Nothing that was acknowledged may be gone.

        Args:
            kind: one of `faults`.
            node: which node.
        """
        raise NotImplementedError(f"{type(self).__name__} lists the fault {kind} and does not end it")

    def pass_time(self) -> None:
        """One round of whatever goes on in the background. Called by a rule, and between the attempts of a
        system that recovers."""
        return

    def replica_logs(self) -> Mapping[int, Sequence[int]]:
        """The log of each node, whole, if they can be looked at: compared in the end, when nothing is broken
        any more and time has passed."""
        return {}

    def describe(self) -> str:
        """The state in words, for a failure."""
        return ""

    def close(self) -> None:
        """The example is over: release processes, files, ports."""
        return
