"""Waits for what an embedded cluster sees, in place of sleeping.

Owns the verbs that wait, and the sentence of one that waited in vain. Must not know where the cluster lives.
"""

import time
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from attrs import define

from fencepost.impl.coordinator.group_states import GroupPhase
from fencepost.traces.errors import EnvironmentError_, PlanError

WAIT_S = 60.0
"""Longest wait, of the wall clock, unless the caller says otherwise: half a minute, which is a time-out of
clients, and what that takes on a crowded machine."""
LOOK_S = 0.01
"""Between two looks."""


@define(eq=False)
class Waiting:
    """The waits of a cluster's handle."""

    @abstractmethod
    def _ask(self, verb: str, **arguments: Any) -> Any:
        """Carry out a verb of verbs.py."""

    def wait_for_hits(self, number: int, hits: int = 1, timeout_s: float = WAIT_S) -> int:
        """Wait until a fault of requests has hit so often. One with the verb `observe` hits nothing, and
        counts the requests that have come.

        Args:
            number: of the fault, as `request_fault` returned it.
            hits: at least 1.
            timeout_s: seconds of the wall clock.

        Returns:
            Its hits.

        Raises:
            PlanError: if no such fault is armed.
            EnvironmentError_: if the time is over.
        """

        def seen() -> int:
            rows = self._ask("request_faults")
            found = [int(row["hits"]) for row in rows if row["number"] == number]
            if not found:
                raise PlanError(
                    expected=f"one of the faults {[row['number'] for row in rows]}",
                    seen=str(number),
                    where="a wait for hits",
                )
            return found[0]

        return int(_wait(seen, lambda count: count >= hits, f"{hits} hits of fault {number}", timeout_s))

    def wait_for_request(
        self, request: str, times: int = 1, target: str = "", timeout_s: float = WAIT_S
    ) -> None:
        """Wait until requests of a kind have come, counted from now on.

        Args:
            request: Kafka's name of the request.
            times: how many.
            target: a topic or a partition; "": any.
            timeout_s: seconds of the wall clock.

        Raises:
            EnvironmentError_: if the time is over.
        """
        text = f"observe {request}{f' on {target}' if target else ''}"
        number = int(self._ask("request_fault", text=text))
        try:
            self.wait_for_hits(number, times, timeout_s)
        finally:
            self._ask("end_request_fault", number=number)

    def wait_for_group(self, group: str, members: int, timeout_s: float = WAIT_S) -> None:
        """Wait until a consumer group is stable with so many members.

        Args:
            group: its id.
            members: how many, exactly.
            timeout_s: seconds of the wall clock.

        Raises:
            EnvironmentError_: if the time is over.
        """
        wanted = {"phase": GroupPhase.STABLE.value, "members": members}
        expected = f"group {group} to be stable with {members} members"
        _wait(
            lambda: self._ask("group_state", group=group), lambda state: state == wanted, expected, timeout_s
        )

    def wait_for_committed(self, group: str, records: int, timeout_s: float = WAIT_S) -> int:
        """Wait until a consumer group has committed so many records: offsets, over all of its partitions.

        Args:
            group: its id.
            records: at least.
            timeout_s: seconds of the wall clock.

        Returns:
            How many it has committed.

        Raises:
            EnvironmentError_: if the time is over.
        """

        def seen() -> int:
            return sum(int(row["offset"]) for row in self._ask("committed", group=group))

        expected = f"{records} records committed by group {group}"
        return int(_wait(seen, lambda count: count >= records, expected, timeout_s))


def _wait(look: Callable[[], Any], reached: Callable[[Any], bool], expected: str, timeout_s: float) -> Any:
    deadline = time.monotonic() + timeout_s
    while not reached(seen := look()):
        if time.monotonic() > deadline:
            raise EnvironmentError_(
                expected=f"{expected} within {timeout_s:g} s",
                seen=str(seen),
                where="a wait on an embedded cluster",
            )
        time.sleep(LOOK_S)
    return seen
