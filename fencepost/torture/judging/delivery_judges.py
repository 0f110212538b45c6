"""What consumers were handed, and where they began, against the log.

Owns the anomalies of deliveries. Must not know how a run was made.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping

from fencepost.torture.judging.finding import Allowed, Finding, acknowledged, delivered, topic_of
from fencepost.torture.judging.outcome import Outcome as Run
from fencepost.torture.record_contents import differs, place_of


def moves_of(run: Run, client: str) -> list[int]:
    """When a client was given or lost partitions, or sought: monotonic nanoseconds.

    Args:
        run: what the application saw.
        client: its name.
    """
    kinds = ("assigned", "revoked", "lost")
    events = [one for one in run.events if one.fields.get("client") == client]
    moves = [one.at_ns for one in events if one.fields["event"] in kinds]
    for seek in run.seeks:
        if seek.client == client:
            moves += [seek.sent_ns, *([] if seek.answered_ns is None else [seek.answered_ns])]
    return moves


def resets_of(run: Run, client: str) -> Mapping[str, list[int]]:
    """When brokers answered a client's Fetch with OFFSET_OUT_OF_RANGE, by partition, at an offset that is in
    the log or was: a broker was behind, or the log's start has moved. Each explains one way back.

    Args:
        run: what the application saw, and the log.
        client: its name.
    """
    found = defaultdict[str, list[int]](list)
    for at, who, place, offset in run.out_of_range:
        if who == client and run.log.get(place) and offset <= run.log[place][-1].offset + 1:
            found[place].append(at)
    return found


def deliveries(run: Run, allowed: Allowed) -> Iterator[Finding]:
    """Each delivered record, against the log and what this client was handed before.

    Args:
        run: what the application saw, and the log.
        allowed: places that brokers may have taken back.
    """
    log = {(place, entry.offset): entry for place, entries in run.log.items() for entry in entries}
    shows = any(event.fields["event"] == "assigned" for event in run.events)
    visible = defaultdict(list)
    for place, entries in run.log.items():
        visible[place] = [entry.offset for entry in entries if run.visible(entry)]
    for client, polls in (*run.polls.items(), *run.read.items()):
        moves, resets = moves_of(run, client), resets_of(run, client)
        last: dict[str, tuple[int, int]] = {}
        for poll in polls:
            assert poll.answer is not None and poll.answered_ns is not None
            for record in poll.answer.get("records") or ():
                place, offset = place_of(record), record["offset"]
                if (place, offset) in allowed:
                    last.pop(place, None)
                    continue
                entry = log.get((place, offset))
                wrong = "nothing in the log" if entry is None else differs(entry, record)
                if entry is not None and not run.visible(entry):
                    yield Finding(
                        anomaly="aborted_delivered",
                        expected=f"only committed records of {place}, read_committed",
                        seen=f"offset {offset}, {entry.outcome}, delivered to {client}",
                    )
                if wrong:
                    yield Finding(
                        anomaly="wrong_delivery",
                        expected=f"what is stored at {place}/{offset}",
                        seen=f"{wrong}, delivered to {client}",
                    )
                before = last.get(place, (-1, 0))
                back = offset <= before[0] and any(at <= poll.answered_ns for at in resets[place])
                if back:
                    resets[place].pop(0)
                moved = back or any(before[1] <= move <= poll.answered_ns for move in moves)
                stays = shows and not moved
                if stays and before[0] >= 0:
                    offsets = visible[place]
                    left_out = offsets[bisect_right(offsets, before[0]) : bisect_left(offsets, offset)]
                    if left_out and not all((place, one) in allowed for one in left_out):
                        yield Finding(
                            anomaly="gap",
                            expected=f"offset {left_out[0]} of {place} after {before[0]}, no rebalance seen",
                            seen=f"offset {offset}, delivered to {client}",
                        )
                if stays and offset <= before[0]:
                    yield Finding(
                        anomaly="delivered_twice",
                        expected=f"offsets above {before[0]} of {place}, no rebalance was seen",
                        seen=f"offset {offset}, delivered to {client}",
                    )
                last[place] = (max(offset, before[0]) if stays else offset, poll.sent_ns)


def of_group(run: Run, allowed: Allowed) -> Iterator[Finding]:
    """What the group got, of all that it should.

    Args:
        run: what the application saw, and the log.
        allowed: places that brokers may have taken back.
    """
    if not run.scenario.members:
        return
    if run.scenario.consumer.get("offset_reset") != "earliest":
        return  # a member that begins at the end, as by most libraries' default, owes nothing before it
    handed, highest = delivered(run)
    log = [
        (place, entry.offset) for place, entries in run.log.items() for entry in entries if run.visible(entry)
    ]
    ends = {place: (place, offset) for place, offset in log if topic_of(place) in run.renewed}
    missing = sorted(
        where
        for where in log
        if where not in handed and (where not in allowed or ends.get(where[0]) == where)
    )
    skipped = [where for where in missing if where[1] < highest.get(where[0], -1) and where not in allowed]
    if skipped:
        yield Finding(
            anomaly="skipped",
            expected=f"every record up to {highest[skipped[0][0]]} of {skipped[0][0]} delivered",
            seen=f"{len(skipped)} that no member got, the first at {skipped[0][0]}/{skipped[0][1]}",
        )
    elif missing and not run.drained and not run.trouble and not run.waits_to_join:
        yield Finding(
            anomaly="stuck_consumer",
            expected="every record delivered after the heal",
            seen=f"{len(missing)} that no member got, the first at {missing[0][0]}/{missing[0][1]}",
        )


def starts(run: Run, allowed: Allowed) -> Iterator[Finding]:
    """Where a reader without committed offsets begins, by its offset reset.

    Args:
        run: what the application saw, and the log.
        allowed: places that brokers may have taken back.
    """
    reset, first = run.scenario.reader, dict[tuple[str, str], int]()
    for client, polls in run.read.items():
        for poll in polls:
            for record in (poll.answer or {}).get("records") or ():
                first.setdefault((client, place_of(record)), record["offset"])
    for (client, place), offset in sorted(first.items()):
        expected = ""
        if topic_of(place) in run.renewed:
            continue
        if reset == "none":
            expected = "no record, as its group has committed nothing and there is no reset"
        elif reset == "earliest":
            before = [
                one.offset for one in run.log.get(place, ()) if one.offset < offset and run.visible(one)
            ]
            left_out = [one for one in before if (place, one) not in allowed]
            expected = f"offset {left_out[0]} first" if left_out else ""
        elif not run.scenario.transactional:  # an open transaction holds the end of the log back
            end = _acknowledged_before(run, place, run.opened.get(client, 0))
            expected = f"offsets above {end}, acknowledged before it was opened" if offset <= end else ""
        if expected:
            yield Finding(
                anomaly="wrong_start",
                expected=f"{expected}, by {client} of {place}, offset reset {reset}",
                seen=f"offset {offset}",
            )
            return
    waits = not run.read_all and not run.waits_to_join
    if reset == "earliest" and waits and not run.trouble and run.drained:
        yield Finding(
            anomaly="stuck_consumer",
            expected="every record delivered after the heal to a reader that begins at the start",
            seen=f"{len(first)} partitions begun",
        )


def _acknowledged_before(run: Run, place: str, at: int) -> int:
    """The highest offset of a partition that was acknowledged before a moment; -1: none."""
    before = (one for one in run.appends if one.ok and one.answered_ns is not None and one.answered_ns < at)
    return max((offset for where, offset in map(acknowledged, before) if where == place), default=-1)
