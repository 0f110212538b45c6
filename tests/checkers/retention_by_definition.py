"""The rules of retention by their definition: the state of every log is computed from the beginning for each
event, and asked at each event's time. Slow, without any state of its own."""

from fencepost.traces.events import Event, Name

SLOW_CHECKS_NS = 5_000_000_000
"""Two checks of a second each, and the slack."""
CLOCKS = ("clock_drift", "clock_jump")


def held(events: tuple[Event, ...], node: int, topic: str, retention: int) -> tuple[bool, int]:
    """What a broker's log holds after these events of one partition: whether everything is committed and
    there is something, and when it must be gone (without slack)."""
    last: dict[int, int] = {}
    batches: list[tuple[int, int]] = []
    start = mark = since = well = 0
    for event in events:
        mine = event.node == node and event.topic == topic
        if event.name is Name.APPENDED and event.topic == topic and event.cause == "leader":
            last |= dict.fromkeys(event.values, event.time)
        if event.name is Name.APPENDED and mine:
            age = max((last.get(value, event.time) for value in event.values), default=event.time)
            batches = [one for one in batches if one[0] <= event.offset]
            batches.append((event.offset + len(event.values), age))
            since = event.time
        elif event.name is Name.TRUNCATED and mine:
            batches = [one for one in batches if one[0] <= event.offset]
            mark, since = min(mark, event.offset), event.time
        elif event.name is Name.HIGH_WATERMARK and mine and mark != event.high_watermark:
            mark, since = event.high_watermark, event.time
        elif event.name is Name.LOG_START and mine:
            batches = [one for one in batches if one[0] > event.log_start_offset]
            start, since = event.log_start_offset, event.time
        elif event.name is Name.LOG_RECOVERED and mine:
            batches = [one for one in batches if one[0] <= event.offset]
            start, mark, since = event.log_start_offset, event.high_watermark, event.time
        elif event.name is Name.MARK and event.cause == "replica_deleted" and mine:
            batches, start, mark, since = [], 0, 0, 0
        elif event.node == node and event.name in (
            *(Name.FAULT_BEGAN, Name.FAULT_ENDED),
            *(Name.BROKER_STARTED, Name.BROKER_STATE),
        ):
            well = event.time
    if not batches:
        return False, 0
    youngest = max(age for _, age in batches) + retention
    end = batches[-1][0]
    return mark >= end > start, max(youngest, since, well)


def disturbed(events: tuple[Event, ...], node: int) -> bool:
    """Whether a fault of the broker lasts, it is down, or any clock was wrong."""
    active: set[str] = set()
    down = False
    for event in events:
        if event.name is Name.FAULT_BEGAN and event.cause in CLOCKS:
            return True
        if event.node == node and event.name is Name.FAULT_BEGAN:
            active.add(event.detail)
        elif event.node == node and event.name is Name.FAULT_ENDED:
            active.discard(event.detail)
        elif event.node == node and event.name is Name.BROKER_STARTED:
            down = False
        elif event.node == node and event.name is Name.BROKER_STATE:
            down = down or event.cause == "NotRunning"
    return bool(active) or down


def is_late(events: tuple[Event, ...], topic: str, retention: int) -> bool:
    """Whether at the time of any event a log held what should have been gone."""
    nodes = {event.node for event in events if event.topic == topic}
    for place, event in enumerate(events):
        before = events[:place]
        if any(one.name in (Name.TOPIC_CONFIGURED, Name.TOPIC_DELETION) for one in before):
            return False
        for node in nodes:
            whole, due = held(before, node, topic, retention)
            if whole and event.time > due + SLOW_CHECKS_NS and not disturbed(before, node):
                return True
    return False


def is_early(events: tuple[Event, ...], topic: str, retention: int, kept_by_clients: int) -> bool:
    """Whether retention ever took a record of which a leader's append is known, and that can be younger than
    that by no reckoning."""
    for place, event in enumerate(events):
        before = events[:place]
        if event.name is not Name.LOG_START or event.cause != "retention" or event.topic != topic:
            continue
        if any(one.name in (Name.TOPIC_CONFIGURED, Name.TOPIC_DELETION) for one in before):
            return False
        if any(one.name is Name.FAULT_BEGAN and one.cause in CLOCKS for one in before):
            return False
        ages = [
            age
            for end, age in _known_ages(before, event.node, kept_by_clients)
            if end <= event.log_start_offset
        ]
        if ages and event.time - max(ages) + kept_by_clients < retention:
            return True
    return False


def _known_ages(events: tuple[Event, ...], node: int, kept_by_clients: int) -> list[tuple[int, int]]:
    """The end and the age of each batch in a broker's log of which every value was first appended by a
    leader that was not disturbed, and that no compaction reached."""
    found: list[tuple[int, int]] = []
    for place, event in enumerate(events):
        if event.name is not Name.APPENDED or event.node != node:
            continue
        firsts = [next(one for one in events if value in one.values) for value in event.values]
        end = event.offset + len(event.values)
        known = all(
            first.cause == "leader" and _calm(events[: events.index(first)], first, kept_by_clients)
            for first in firsts
        )
        if known and not any(_takes(one, event, end) for one in events[place + 1 :] if one.node == node):
            found.append((end, max(first.time for first in firsts)))
    return found


def _calm(before: tuple[Event, ...], appended: Event, kept_by_clients: int) -> bool:
    """Whether the leader was not disturbed for as long as a client keeps a record."""
    return not disturbed(before, appended.node) and not any(
        one.node == appended.node
        and one.name in (Name.FAULT_BEGAN, Name.FAULT_ENDED, Name.BROKER_STARTED, Name.BROKER_STATE)
        and appended.time - one.time < kept_by_clients
        for one in before
    )


def _takes(event: Event, appended: Event, end: int) -> bool:
    """Whether an event takes a batch out of a log, or leaves nobody knows what of it."""
    cut = event.name in (Name.TRUNCATED, Name.LOG_RECOVERED, Name.APPENDED) and event.offset < end
    gone = event.name is Name.LOG_START and end <= event.log_start_offset
    cleaned = event.name is Name.COMPACTED and end <= event.offset
    return cut or gone or cleaned or (event.name is Name.MARK and event.cause == "replica_deleted")
