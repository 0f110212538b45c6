"""Consumer groups: joins, commits and what was committed, as rows.

Owns the mapping. Must not know connections. A join lasts from the JoinGroup request to the SyncGroup answer,
so that the moment in which the coordinator moved to the generation lies within it.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

from attrs import define, field

from fencepost.proxy.exchange import Exchange
from fencepost.proxy.record.appends import error_code
from fencepost.proxy.record.lines import Lines
from fencepost.traces.kafka_names.outcomes import outcome_of_attempt
from fencepost.traces.parts import BEFORE
from fencepost.wire.passing import assigned_partitions, error_name

JOIN_GROUP, SYNC_GROUP, OFFSET_COMMIT, OFFSET_FETCH = 11, 14, 8, 9
MOST_MEMBERS = 100_000
"""Members under way, and partitions with a committed offset that are remembered for the view."""
NameOf = Callable[[Any], str]


@define(eq=False)
class Groups:
    """committed: the last committed offset of (group, topic, partition), for the lag. began: when the record
    began, nanoseconds."""

    lines: Lines
    committed: dict[tuple[str, str, int], int]
    began: int = 0
    # (group, member id) -> when it asked to join, the generation, and what it is called in rows.
    _joined: "OrderedDict[tuple[str, str], tuple[int, int, str]]" = field(factory=OrderedDict)
    # Where a commit is known of: what was committed before the proxy is one row.
    _known: "OrderedDict[tuple[str, str, int], None]" = field(factory=OrderedDict)

    def answered(
        self, key: int, exchange: Exchange, body: Any, time: int, process: int, node: int, name_of: NameOf
    ) -> str:
        """An answer of a coordinator.

        Args:
            key: of the API.
            exchange: the request.
            body: the answer, decoded.
            time: nanoseconds.
            process: of the client.
            node: the broker.
            name_of: the name of a topic of the request.

        Returns:
            Its error; "" for none.
        """
        if key == JOIN_GROUP:
            return self._join(exchange, body)
        if key == SYNC_GROUP:
            return self._sync(exchange, body, time, process, node)
        if key == OFFSET_COMMIT:
            return self._committed(exchange, body, time, process, node, name_of)
        if key == OFFSET_FETCH:
            return self._read_back(exchange, body, time, process, node, name_of)
        error = error_name(body.error_code)
        return "" if error == "NONE" else error

    def _join(self, exchange: Exchange, body: Any) -> str:
        error = error_name(body.error_code)
        if error != "NONE":
            return error
        request = exchange.body
        name = getattr(request, "group_instance_id", None) or body.member_id
        self._joined[request.group_id, body.member_id] = (exchange.time, body.generation_id, name)
        if len(self._joined) > MOST_MEMBERS:
            self._joined.popitem(last=False)
        return ""

    def _sync(self, exchange: Exchange, body: Any, time: int, process: int, node: int) -> str:
        error = error_name(body.error_code)
        request = exchange.body
        joined = self._joined.pop((request.group_id, request.member_id), None)
        if error != "NONE" or joined is None or joined[1] != request.generation_id:
            return "" if error == "NONE" else error
        positions = [
            {"topic": topic, "partition": partition, "offset": -1}
            for topic, partitions in assigned_partitions(body.assignment)
            for partition in partitions
        ]
        self.lines.operation(
            {
                "op_id": self.lines.number(),
                "process": process,
                "function": "join",
                "invoke_time": joined[0],
                "outcome": "ok",
                "completion_time": time,
                "group": request.group_id,
                "member": joined[2],
                "generation": request.generation_id,
                "node": node,
                "positions": positions,
            }
        )
        return ""

    # ---- commits

    def _committed(
        self, exchange: Exchange, body: Any, time: int, process: int, node: int, name_of: NameOf
    ) -> str:
        errors = {
            (name_of(topic), one.partition_index): error_name(one.error_code)
            for topic in body.topics
            for one in topic.partitions
        }
        by_error: dict[str, list[tuple[str, int, int]]] = {}
        for place in _offsets(exchange.body, name_of):
            by_error.setdefault(errors.get(place[:2], "UNKNOWN_SERVER_ERROR"), []).append(place)
        for error, places in sorted(by_error.items()):
            self._commit(exchange, places, time, error, process, node)
        return next((error for error in by_error if error != "NONE"), "")

    def lost_commit(self, exchange: Exchange, process: int, node: int, name_of: NameOf) -> None:
        """The outcome of a commit stays unknown.

        Args:
            exchange: the request.
            process: of the client.
            node: the broker.
            name_of: the name of a topic of the request.
        """
        self._commit(exchange, list(_offsets(exchange.body, name_of)), None, "", process, node)

    def _commit(
        self,
        exchange: Exchange,
        places: list[tuple[str, int, int]],
        time: int | None,
        error: str,
        process: int,
        node: int,
    ) -> None:
        request = exchange.body
        code = error_code(error) if error else None
        outcome = "unknown" if code is None else outcome_of_attempt(code, appended=False).value
        generation = getattr(request, "generation_id_or_member_epoch", getattr(request, "generation_id", -1))
        row: dict[str, Any] = {
            "op_id": self.lines.number(),
            "process": process,
            "function": "commit",
            "invoke_time": exchange.time,
            "outcome": outcome,
            "group": request.group_id,
            "node": node,
        }
        if time is not None and outcome != "unknown":
            row["completion_time"] = time
        if code is not None and error != "NONE":
            row["error"] = code.value
        if generation >= 0:
            row["generation"] = generation
            row["member"] = getattr(request, "group_instance_id", None) or request.member_id
        row |= _places(places)
        for place in places:
            self._is_new(request.group_id, place)
        if outcome == "ok" and len(self.committed) < MOST_MEMBERS:
            self.committed.update({(request.group_id, *place[:2]): place[2] for place in places})
        self.lines.operation(row)

    def _is_new(self, group: str, place: tuple[str, int, int]) -> bool:
        """Whether no commit of this group was known of there."""
        known = (group, *place[:2])
        if known in self._known:
            return False
        self._known[known] = None
        if len(self._known) > MOST_MEMBERS:
            self._known.popitem(last=False)
        return True

    def _before_the_proxy(self, group: str, place: tuple[str, int, int]) -> None:
        """A commit that nobody saw being sent: of unknown outcome, by nobody, at a time before the record."""
        self.lines.operation(
            {
                "op_id": self.lines.number(),
                "process": 0,
                "function": "commit",
                "invoke_time": self.began,
                "outcome": "unknown",
                "group": group,
                "argument": BEFORE,
                **_places([place]),
            }
        )

    def _read_back(
        self, exchange: Exchange, body: Any, time: int, process: int, node: int, name_of: NameOf
    ) -> str:
        groups = getattr(body, "groups", None)
        if groups is None:
            return self._read_back_group(exchange, exchange.body.group_id, body, time, process, node, name_of)
        worst = ""
        for group in groups:
            worst = (
                self._read_back_group(exchange, group.group_id, group, time, process, node, name_of) or worst
            )
        return worst

    def _read_back_group(
        self, exchange: Exchange, group: str, body: Any, time: int, process: int, node: int, name_of: NameOf
    ) -> str:
        error = error_name(body.error_code) if hasattr(body, "error_code") else "NONE"
        places = [
            (name_of(topic), one.partition_index, one.committed_offset)
            for topic in body.topics
            for one in topic.partitions
            if error_name(one.error_code) == "NONE"
        ]
        if error != "NONE" or not places:
            return "" if error == "NONE" else error
        for place in places:
            if place[2] >= 0 and self._is_new(group, place):
                self._before_the_proxy(group, place)
        self.lines.operation(
            {
                "op_id": self.lines.number(),
                "process": process,
                "function": "fetch_committed",
                "invoke_time": exchange.time,
                "outcome": "ok",
                "completion_time": time,
                "group": group,
                "node": node,
                "positions": _places(places, several=True)["positions"],
            }
        )
        return ""


def _offsets(request: Any, name_of: NameOf) -> Iterable[tuple[str, int, int]]:
    for topic in request.topics:
        for one in topic.partitions:
            yield name_of(topic), one.partition_index, one.committed_offset


def _places(places: list[tuple[str, int, int]], *, several: bool = False) -> dict[str, Any]:
    if len(places) == 1 and not several:
        topic, partition, offset = places[0]
        return {"topic": topic, "partition": partition, "offset": offset}
    return {
        "positions": [
            {"topic": topic, "partition": partition, "offset": offset} for topic, partition, offset in places
        ]
    }
