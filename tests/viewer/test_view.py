"""The data of a page say at every step what the trace says, whole or cut to a window, and they stay small."""

import random

import msgspec
import pytest
from attrs import evolve

from fencepost.traces.events import Name
from fencepost.traces.operations import Function, Outcome, Record
from fencepost.viewer import view as page_view
from fencepost.viewer.known.client_knowledge import HOWS, READ
from fencepost.viewer.replica_logs import BlockLog, Gone
from fencepost.viewer.tracks import windows
from fencepost.viewer.view import MOST_BYTES, Shown, view_of
from tests.checkers import lab

KINDS = ("kip_101", "fenced_controller", "no_progress", "group", "producer")


def values_of(run):
    """What values_as_run wrote."""
    return [int(one) for one in run[0]] if isinstance(run[0], list) else list(range(run[0], run[0] + run[1]))


def at(track, step):
    """The value of a track at a step."""
    if not track:
        return None
    before = [value for when, value in zip(track["steps"], track["values"], strict=True) if when <= step]
    return before[-1] if before else None


def logs_at(view, step):
    """(offset, epoch, value) of each record of each replica, as the page shows them."""
    found = {}
    for replica in view["replicas"]:
        blocks = replica["blocks"]
        records = []
        for index, base in enumerate(blocks["base"]):
            born, died = blocks["born"][index], blocks["died"][index]
            if born <= step and (died < 0 or step < died):
                epoch = blocks["epoch"][index]
                records += [
                    (base + place, epoch, value if epoch >= 0 else 0)
                    for place, value in enumerate(values_of(blocks["values"][index]))
                ]
        topic, _, number = view["partitions"][replica["partition"]].rpartition("-")
        found[(topic, int(number)), replica["broker"]] = sorted(records)
    return found


def some_steps(count, number=12):
    """Steps spread over a run, the first and the last among them."""
    return sorted({0, count - 1, *(count * part // number for part in range(number))})


def differs(view, naive, step):
    """The replicas of which the page shows another log than the trace has."""
    shown, told = logs_at(view, step), naive.logs(step)
    return [key for key in shown.keys() | told.keys() if shown.get(key, []) != told.get(key, [])]


@pytest.mark.parametrize("kind", KINDS)
def test_the_logs_are_those_of_the_trace_at_every_step(kind, shown, naive):
    """Blocks alive at a step hold the same offsets, epochs and values as a replay of the events up to it."""
    run = shown(kind)
    view, told = view_of(run), naive(run.trace)
    steps = some_steps(len(told.moments))
    assert any(logs_at(view, step) for step in steps)
    assert [step for step in steps if differs(view, told, step)] == []


def test_a_cut_that_is_forgotten_is_noticed(shown, naive, monkeypatch):
    """The comparison above fails where truncations do not reach the blocks."""
    monkeypatch.setattr(BlockLog, "cut", lambda self, step, end_offset, gone: None)
    run = shown("kip_101")
    view, told = view_of(run), naive(run.trace)
    assert any(differs(view, told, step) for step in some_steps(len(told.moments)))


@pytest.mark.parametrize("kind", KINDS)
def test_what_brokers_and_zookeeper_hold_is_what_the_trace_says(kind, shown, naive):
    """High watermarks, the controller, its epoch, and each partition's state are the last that an event
    named."""
    run = shown(kind)
    view, told = view_of(run), naive(run.trace)
    compared = 0
    for step in some_steps(len(told.moments)):
        marks = told.high_watermarks(step)
        for replica in view["replicas"]:
            topic, _, number = view["partitions"][replica["partition"]].rpartition("-")
            shown_mark = at(replica["facts"].get("high_watermark"), step)
            assert shown_mark == marks.get(((topic, int(number)), replica["broker"]))
            compared += shown_mark is not None
        zookeeper = view["facts"]["zk"]
        controller = told.last(step, Name.CONTROLLER_ZNODE)
        assert at(zookeeper.get("controller"), step) == (controller.leader if controller else None)
        for index, name in enumerate(view["partitions"]):
            topic, _, number = name.rpartition("-")
            state = told.last(step, Name.PARTITION_STATE, topic, int(number))
            shown_state = at(view["facts"].get(f"p{index}", {}).get("state"), step)
            expected = state and (state.leader, state.leader_epoch, list(state.isr))
            assert (
                shown_state and (shown_state["leader"], shown_state["leader_epoch"], shown_state["isr"])
            ) == expected
    assert compared > 20


def test_the_block_of_a_cut_is_split_where_it_was_cut():
    """A cut in the middle of a block leaves its lower part alive; the upper part dies at that step."""
    log = BlockLog()
    log.append(1, 0, 0, (10, 11, 12, 13))
    log.cut(5, 2, Gone.TRUNCATED)
    log.append(7, 2, 1, (20,))
    told = [(block.base, block.values, block.born, block.died, block.gone) for block in log.blocks]
    assert told == [
        (0, (10, 11), 1, None, Gone.NOT),
        (2, (12, 13), 1, 5, Gone.TRUNCATED),
        (2, (20,), 7, None, Gone.NOT),
    ]


def test_a_start_that_finds_less_shows_what_was_in_the_page_cache_only():
    """Records that are missing when a log is opened again are lost, those that no event named are unknown."""
    log = BlockLog()
    log.append(1, 0, 0, (10, 11))
    log.resize(3, 1, Gone.LOST)
    log.resize(6, 2, Gone.LOST)
    told = [(block.base, block.epoch, block.born, block.died, block.gone) for block in log.blocks]
    assert told == [(0, 0, 1, None, Gone.NOT), (1, 0, 1, 3, Gone.LOST), (1, -1, 6, None, Gone.NOT)]


def test_retention_and_a_new_start_of_the_log():
    """What the log start offset passes is gone; a log that starts over is empty and begins where it was
    told."""
    log = BlockLog()
    log.append(1, 0, 0, (10, 11, 12))
    log.begin_at(2, 2)
    assert [(block.base, block.died) for block in log.blocks] == [(0, 2), (2, None)]
    log.start_over(4, 9)
    assert (log.end_offset, log.log_start_offset, log.alive) == (9, 9, [])
    assert [(block.gone, block.died) for block in log.dead] == [(Gone.BELOW_START, 2), (Gone.STARTED_OVER, 4)]


@pytest.mark.parametrize("kind", ["kip_101", "group"])
def test_a_window_says_the_same_as_the_whole(kind, shown):
    """Cut to a window, every step still shows the same logs and facts, and the finding is inside."""
    run = shown(kind)
    whole = view_of(run)
    part = view_of(run, most_bytes=len(msgspec.json.encode(whole)) * 2 // 3)
    first, end, total = (part["window"][name] for name in ("first", "end", "total"))
    assert 0 < end - first < total == len(whole["moments"]["wait"])
    assert len(part["moments"]["wait"]) == end - first
    assert part["findings"][0]["steps"]
    for step in some_steps(end - first, 8):
        assert logs_at(part, step) == {
            key: log for key, log in logs_at(whole, first + step).items() if key in logs_at(part, step)
        }
        for subject, facts in whole["facts"].items():
            for name, track in facts.items():
                cut = part["facts"].get(subject, {}).get(name)
                assert at(cut, step) == at(track, first + step), f"{subject} {name} at {first + step}"
    assert sum(part["moments"]["wait"]) == sum(whole["moments"]["wait"][:end])
    assert whole["left_out"] == []
    (cut,) = part["left_out"]
    events = sum(1 for name in part["moments"]["name"] if name < len(Name))
    missing = len(run.trace.operations) - len(part["operations"]["id"])
    assert f"with {missing} operations and {len(run.trace.events) - events} events" in cut


def test_what_is_too_much_for_a_page_is_counted_in_one_place(shown, monkeypatch):
    """Rule: partitions, findings, claims and unread lines beyond their bounds are each named with a
    number."""
    run = shown("group")
    for name in ("MOST_PARTITIONS", "MOST_FINDINGS", "MOST_CLAIMS", "MOST_UNREAD"):
        monkeypatch.setattr(page_view, name, 1)
    claims = evolve(run.trace.claims, reasons=("a", "b", "c"))
    two = evolve(run.verdicts[0], findings=run.findings[:1] * 2)
    trace = evolve(run.trace, claims=claims)
    partitions = len(page_view.partitions_of(trace, ()))
    left_out = view_of(Shown(trace=trace, verdicts=(two,), unread=("line 3", "line 4")))["left_out"]
    assert partitions > 1 and left_out == [
        f"{partitions - 1} of {partitions} partitions",
        "1 of 2 findings",
        "2 of 3 reasons of claims",
        "line 3",
        "and 1 more that could not be read",
    ]


def test_windows_hold_the_finding_with_more_before_it_than_after():
    """Each window is smaller; what convicts stays inside as long as it fits, and the last of it always."""
    found = list(windows(100_000, [60_000, 61_000]))
    sizes = [window.end - window.first for window in found]
    assert sizes == sorted(sizes, reverse=True) and sizes[-1] == 200
    for window in found[1:]:
        assert window.holds(61_000)
        if window.end - window.first > 1001:
            assert window.holds(60_000)
            assert 60_000 - window.first >= window.end - 61_001 - 1


def large_trace(operations, events):
    """Appends and reads of four clients over three brokers, with as many events."""
    chance = random.Random(7)
    rows, told, offset = [], [], 0
    told.append(
        lab.event(
            0, Name.PARTITION_STATE, 1, leader=1, leader_epoch=0, controller_epoch=1, isr=(1, 2, 3), **lab.T0
        )
    )
    told += [
        lab.event(
            0,
            Name.BECAME_LEADER if node == 1 else Name.BECAME_FOLLOWER,
            node,
            leader=1,
            leader_epoch=0,
            offset=0,
            high_watermark=0,
            **lab.T0,
        )
        for node in (1, 2, 3)
    ]
    for number in range(operations):
        at_time = number * 10_000_000 + 1000
        values = tuple(number * 1000 + index for index in range(chance.randint(1, 3)))
        if number % 2:
            records = tuple(
                Record(topic="t", partition=0, offset=place, value=place)
                for place in range(max(0, offset - 40), offset)
            )
            rows.append(
                lab.operation(
                    *(number, Function.POLL, at_time, at_time + 5_000_000),
                    process=number % 4,
                    **lab.T0,
                    offset=max(0, offset - 40),
                    end_offset=offset,
                    node=1,
                    records=records,
                )
            )
            continue
        records = lab.records(*values, begin=offset)
        rows.append(
            lab.operation(
                *(number, Function.APPEND, at_time, at_time + 5_000_000),
                process=number % 4,
                acks=-1,
                **lab.T0,
                offset=offset,
                node=1,
                records=records,
            )
        )
        for node in (1, 2, 3):
            told.append(
                lab.event(
                    at_time + node * 1_000_000,
                    Name.APPENDED,
                    node,
                    leader_epoch=0,
                    offset=offset,
                    values=values,
                    cause="leader" if node == 1 else "follower",
                    **lab.T0,
                )
            )
        offset += len(values)
        told.append(
            lab.event(
                at_time + 4_000_000,
                Name.HIGH_WATERMARK,
                1,
                leader_epoch=0,
                high_watermark=offset,
                cause="leader",
                **lab.T0,
            )
        )
    end = told[-1].time
    while len(told) < events:
        told.append(
            lab.event(
                chance.randint(1, end),
                Name.CONTROL_REQUEST_APPLIED,
                chance.randint(1, 3),
                controller_epoch=1,
                cause="UpdateMetadataRequest",
            )
        )
    told.sort(key=lambda event: event.time)
    return rows, told


def test_a_run_of_a_thousand_operations_stays_below_two_megabytes(shown):
    """1,000 operations and 20,000 events are whole on a page, and their data are below 2 MB."""
    rows, told = large_trace(1_000, 20_000)
    trace = evolve(shown("kip_101").trace, operations=tuple(rows), events=tuple(told))
    view = view_of(Shown(trace=trace))
    assert len(msgspec.json.encode(view)) < MOST_BYTES
    assert view["window"] == {"first": 0, "end": 22_000, "total": 22_000}


def test_a_foreign_history_shows_what_clients_know(shown):
    """Acknowledged and read offsets are there from the answer on; a second value at an offset is marked."""
    view = view_of(shown("foreign"))
    known = view["clients"][0]["known"]
    rows = list(zip(*(known[name] for name in ("base", "values", "how", "rival")), strict=True))
    assert view["replicas"] == [] and view["facts"] == {} and view["messages"]["kind"] == []
    assert (2, [12, 1], 0, 0) in rows and (2, [99, 1], 0, 1) in rows
    read = {
        offset: value
        for base, run, how, _ in rows
        if HOWS[how] == READ
        for offset, value in enumerate(values_of(run), base)
    }
    assert read == {0: 10, 1: 11, 2: 99, 3: 13}
    assert view["findings"][0]["offset"] == 2 and view["findings"][0]["steps"]


def test_groups_show_what_was_committed_and_where_consumers_stand(shown):
    """Commits and positions are those of the last acknowledged operation at the end of the run."""
    run = shown("group")
    view = view_of(run)
    last = len(view["moments"]["wait"]) - 1
    commits = [o for o in run.trace.operations if o.function is Function.COMMIT and o.outcome is Outcome.OK]
    expected = {}
    for operation in sorted(commits, key=lambda one: one.completion_time):
        for spot in operation.positions:
            expected[operation.group, f"committed {spot.topic}-{spot.partition}"] = spot.offset
    facts = view["groups"]["facts"]
    assert expected
    assert {key: at(facts[key[0]][key[1]], last) for key in expected} == expected
    assert at(facts["g2"]["phase"], last)["state"]


def test_a_long_topic_has_one_name_on_the_page(shown):
    """Commits, positions and assignments of groups name a partition as the page's list of partitions does."""
    run = shown("group")
    long = "orders-of-everybody-and-of-everything-since-the-beginning"
    operations = tuple(
        evolve(
            one,
            topic=one.topic and long,
            positions=tuple(evolve(spot, topic=long) for spot in one.positions),
            records=tuple(evolve(record, topic=long) for record in one.records),
        )
        for one in run.trace.operations
    )
    view = view_of(Shown(trace=evolve(run.trace, operations=operations)))
    keys = {key for facts in view["groups"]["facts"].values() for key in facts}
    named = {key.split(" ", 1)[1] for key in keys if key.startswith(("committed ", "position "))}
    assert named and named <= set(view["partitions"])


def test_values_beyond_javascripts_integers_travel_as_texts(shown):
    """A value id above 2^53 - 1 is not rounded."""
    trace = shown("foreign").trace
    large = 2**63 - 1
    first = trace.operations[0]
    record = evolve(first.records[0], value=large)
    changed = evolve(trace, operations=(evolve(first, records=(record,)), *trace.operations[1:]))
    view = view_of(Shown(trace=changed))
    assert [[str(large)]] in view["clients"][0]["known"]["values"]
    assert view["operations"]["writes"][0] == [[str(large)]]
