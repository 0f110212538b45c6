"""What each group would skip or repeat if it went on at the target.

Owns the translation of an offset by the record that it points at. Must not know how records were paired.
"""

from attrs import frozen

from fencepost.audit.topics.topic_store import TopicStore

NOWHERE = -1
EVERYTHING = 1 << 62


@frozen
class Move:
    """Records that a group would not read at either side, and that it would read at both."""

    skips: int
    repeats: int


@frozen(kw_only=True)
class GroupOffset:
    """Of one group and partition."""

    group: str
    partition: int
    # What is committed at the source.
    source: int
    # The copy of the record there, or of the next one that has a copy; after the last copy if there is none.
    translated: int
    # What is committed at the target; NOWHERE for nothing.
    target: int
    # The end of the target's log now.
    target_end: int
    # If it goes on from what is committed there; None for nothing.
    goes_on: Move | None
    # If it begins there with auto.offset.reset earliest, or latest.
    earliest: Move
    latest: Move

    @property
    def is_beyond_end(self) -> bool:
        """Whether what is committed at the target is no offset of its log: the group would be reset."""
        return self.target > self.target_end


def group_offset(
    store: TopicStore, group: str, partition: int, source: int, target: int, target_end: int
) -> GroupOffset:
    """What a group would do in one partition.

    Args:
        store: compared.
        group: its id.
        partition: the same number at both sides.
        source: committed there.
        target: committed there, or NOWHERE.
        target_end: the log's end there.
    """
    (translated,) = store.database.execute(
        "select coalesce((select target_offset from pair where partition = ?1 and source_offset >= ?2 "
        "order by source limit 1), (select max(target_offset) + 1 from pair where partition = ?1), ?3)",
        (partition, source, target_end),
    ).fetchone()
    return GroupOffset(
        group=group,
        partition=partition,
        source=source,
        translated=translated,
        target=target,
        target_end=target_end,
        goes_on=None if target == NOWHERE else _move(store, partition, source, target),
        earliest=_move(store, partition, source, 0),
        latest=_move(store, partition, source, EVERYTHING),
    )


def _move(store: TopicStore, partition: int, source: int, target: int) -> Move:
    row = store.database.execute(
        "select coalesce(sum(source_offset >= ?2 and target_offset < ?3), 0), "
        "coalesce(sum(source_offset < ?2 and target_offset >= ?3), 0) from pair where partition = ?1",
        (partition, source, target),
    ).fetchone()
    return Move(*row)
