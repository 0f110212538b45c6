"""What answers have said so far: which brokers there are, earlier answers to give again, the last batch of
each partition.

Owns this memory and its bounds, and the two verbs that live on it: stale answers and records in other shapes.
Must not know schedules.
"""

import dataclasses
from typing import Any

from attrs import define, field

from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.proxy.faults.fault import RequestFault
from fencepost.proxy.faults.odd_records import RESHAPE, fetched, last_batch
from fencepost.proxy.faults.request import Asked, Carried
from fencepost.proxy.faults.verbs import VERBS
from fencepost.wire.error_answers import errors_in
from fencepost.wire.hook import Replace
from fencepost.wire.shapes import changed, rows_of, topics_of

MOST_QUESTIONS = 256
"""Different requests of which earlier answers are kept."""
MOST_ANSWERS = 8
"""Different answers to each: a cache of metadata lags by a few changes, not by more."""
MOST_BATCHES = 1_000
"""Partitions of which the last batch is kept."""


@define(eq=False)
class Seen:
    """The memory of one engine."""

    # Host and port of each broker that the last Metadata listed.
    brokers: dict[int, tuple[str, int]] = field(factory=dict)
    # Different answers to a request, the oldest first.
    _answers: dict[tuple[Any, ...], list[Any]] = field(factory=dict)
    _batches: dict[TopicPartition, bytes] = field(factory=dict)

    def look(self, asked: Asked, answer: Any) -> None:
        """Remember what this answer says."""
        if asked.api == "Metadata" and answer.brokers:
            self.brokers = {each.node_id: (each.host, each.port) for each in answer.brokers}
        if asked.api in VERBS["stale answer"].apis and not errors_in(answer):
            known = self._answers.setdefault(_question(asked), [])
            if answer in known:
                known.remove(answer)
            known.append(answer)
            del known[:-MOST_ANSWERS]
            while len(self._answers) > MOST_QUESTIONS:
                del self._answers[next(iter(self._answers))]

    def changed(self, fault: RequestFault, asked: Asked, answer: Any) -> Carried | None:
        """The answer that this fault gives instead; None if it has none for it."""
        if fault.verb == "stale answer":
            return self._stale(asked, answer)
        return self._reshaped(fault, asked, answer)

    def _stale(self, asked: Asked, answer: Any) -> Carried | None:
        earlier = [one for one in self._answers.get(_question(asked), ()) if one != answer]
        return Carried(verdict=Replace(earlier[-1])) if earlier else None

    def _reshaped(self, fault: RequestFault, asked: Asked, answer: Any) -> Carried | None:
        wanted = rows_of(asked.body)
        hit = set(asked.hit(fault.topic, fault.partition))

        def reshape(key: TopicPartition, row: Any) -> Any:
            if key not in hit or not row.records:
                return row
            found = fetched(bytes(row.records), wanted[key].fetch_offset, self._batches.get(key, b""))
            records = None if found is None else RESHAPE[fault.shape](found)
            return row if records is None else dataclasses.replace(row, records=records)

        other = changed(answer, reshape)
        return None if other == answer else Carried(verdict=Replace(other))

    def keep_batches(self, asked: Asked, answer: Any) -> None:
        """Remember the last batch of each partition of a fetch's answer."""
        if asked.api != "Fetch":
            return
        for key, row in rows_of(answer).items():
            kept = last_batch(bytes(row.records)) if row.records else b""
            if kept:
                self._batches.pop(key, None)
                self._batches[key] = kept
        while len(self._batches) > MOST_BATCHES:
            del self._batches[next(iter(self._batches))]


def _question(asked: Asked) -> tuple[Any, ...]:
    return (
        asked.header.api_key,
        asked.header.version,
        tuple(sorted(topics_of(asked.body))),
        getattr(asked.body, "key", None),
        getattr(asked.body, "key_type", None),
        getattr(asked.body, "coordinator_keys", None),
    )
