"""Random runs of an application, right and wrong: what its processes write, by a seed."""

import random
from typing import Any

Row = dict[str, Any]
TOPICS = ("t", "u")


def random_run(seed: int) -> list[list[Row]]:
    """The lines of each process of a run, in order; with few records, so that everything meets everything."""
    rng = random.Random(seed)
    partitions = rng.choice((1, 1, 2))
    logs = {
        (topic, partition): [] for topic in TOPICS[: rng.choice((1, 2))] for partition in range(partitions)
    }
    processes = [_producer(rng, f"p{number}", logs) for number in range(rng.choice((0, 1, 2)))]
    groups = ["g", "h"][: rng.choice((1, 1, 2))] if rng.random() < 0.9 else [""]
    faulty = rng.random() < 0.7
    for number in range(rng.choice((1, 2, 3, 4))):
        processes.append(_consumer(rng, f"c{number}", rng.choice(groups), logs, faulty=faulty))
    if rng.random() < 0.3:
        processes.append(_sink(rng, logs))
    return processes


def _hash(rng: random.Random, *, few: int) -> str:
    return f"{rng.randrange(few):016x}"


def _producer(rng: random.Random, name: str, logs: Any) -> list[Row]:
    rows: list[Row] = []
    for number in range(rng.randrange(12)):
        place = rng.choice(sorted(logs))
        row: Row = {"event": "sent", "process": name, "id": number, "topic": place[0]}
        if rng.random() < 0.8:
            row["key"] = f"{place[1]:08x}{rng.randrange(3):08x}" if rng.random() < 0.98 else "f" * 16
        row["value"] = _hash(rng, few=1 << 40)
        rows.append(row)
        if rng.random() < 0.1:
            continue
        if rng.random() < 0.1:
            rows.append({"event": "failed", "process": name, "id": number})
            continue
        offset = len(logs[place]) + (rng.random() < 0.05)
        if rng.random() < 0.02 and logs[place]:
            offset = logs[place][-1]["offset"]
        record = {"topic": place[0], "partition": place[1], "offset": offset}
        record |= {field: row[field] for field in ("key", "value") if field in row}
        logs[place].append(record)
        rows.append({"event": "acknowledged", "process": name, "id": number} | record)
    return rows


def _consumer(rng: random.Random, name: str, group: str, logs: Any, *, faulty: bool) -> list[Row]:
    rows: list[Row] = []
    reports = rng.random() < 0.7
    committed: dict[tuple[str, int], int] = {}

    def add(event: str, place: tuple[str, int], **more: Any) -> None:
        row = {"event": event, "process": name, "topic": place[0], "partition": place[1]} | more
        rows.append(row | ({"group": group} if group else {}))

    for _ in range(rng.choice((1, 1, 2, 3))):
        place = rng.choice(sorted(logs))
        position = rng.choice((0, 0, committed.get(place, 0), rng.randrange(4)))
        if reports:
            add("assigned", place, **({"offset": position} if rng.random() < 0.7 else {}))
        waiting: list[Row] = []
        for offset in range(position, position + rng.randrange(8)):
            record = next((one for one in logs[place] if one["offset"] == offset), None)
            shown = {"offset": offset}
            if record is not None and rng.random() < 0.5:
                shown |= {field: record[field] for field in ("key", "value") if field in record}
            if faulty and rng.random() < 0.03:
                shown["value"] = _hash(rng, few=1 << 40)
            if not (faulty and rng.random() < 0.08):
                add("received", place, **shown)
            waiting.append(shown)
            if faulty and rng.random() < 0.1:
                rng.shuffle(waiting)
            if faulty and rng.random() < 0.1:
                add("committed", place, offset=offset + 1)
            while waiting and rng.random() < 0.8:
                done = waiting.pop(0)
                if faulty and rng.random() < 0.08:
                    continue
                for _ in range(2 if faulty and rng.random() < 0.05 else 1):
                    flag = {"sink": False} if rng.random() < 0.1 else {}
                    add("processed", place, offset=done["offset"], **flag)
            if not waiting and rng.random() < 0.5:
                add("committed", place, offset=offset + 1)
                committed[place] = offset + 1
        if rng.random() < 0.4:
            add(rng.choice(("revoked", "lost")), place)
            if faulty and waiting and rng.random() < 0.3:
                add("processed", place, offset=waiting[0]["offset"])
    return rows


def _sink(rng: random.Random, logs: Any) -> list[Row]:
    rows = []
    for place in sorted(logs):
        for offset in range(8):
            for _ in range(rng.choice((0, 1, 1, 1, 1, 2))):
                rows.append(
                    {
                        "event": "sink",
                        "process": "db",
                        "topic": place[0],
                        "partition": place[1],
                        "offset": offset,
                    }
                )
    return rows
