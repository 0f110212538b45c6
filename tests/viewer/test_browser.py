"""The page in a real headless Chromium: what is drawn is what the trace says, at several moments; keys,
clicks and the address work; nothing is asked of a network.

One test runs wherever a browser is; all of them with FENCEPOST_BROWSER=all (`make measure
NAME=viewer-browser` does that). Without Playwright or Chromium they are skipped.
"""

import json

import pytest

from fencepost.checkers.judges import DEFAULT_CHECKS, judge
from fencepost.report.picture import figure_of
from fencepost.report.report_page import Example, Page
from fencepost.run.simulated.run import run
from fencepost.traces.events import Name
from fencepost.traces.operations import Function, Outcome
from fencepost.traces.plan_json import plan_from_json
from fencepost.viewer.page_file import write_page
from fencepost.viewer.sequential import sequential_of
from fencepost.viewer.view import Shown, view_of
from tests.viewer.browser import all_of_them, move_to, needs_chromium, opened, until

pytestmark = needs_chromium

READ_LOGS = """() => [...document.querySelectorAll('figure.active g.replica')].map((row) => ({
  broker: Number(row.dataset.broker), hw: row.dataset.hw, end: row.dataset.end, letter: row.dataset.letter, epoch: row.dataset.epoch,
  records: [...row.querySelectorAll('g.record:not(.ghost)')].map((one) => [Number(one.dataset.offset), Number(one.dataset.blockEpoch), one.dataset.value]),
}))"""
READ_KNOWN = """() => [...document.querySelectorAll('g.clientrow')].map((row) =>
  Object.fromEntries([...row.querySelectorAll('g.record')].map((one) => [one.dataset.offset, [one.dataset.value, one.classList.contains('wrong')]])))"""


def compare_logs(tab, told, partition, step):
    """Every record that is drawn against the trace; returns how many there were."""
    rows = tab.evaluate(READ_LOGS)
    logs, marks = told.logs(step), told.high_watermarks(step)
    drawn = 0
    for row in rows:
        log = logs.get((partition, row["broker"]), [])
        by_offset = {offset: (epoch, str(value) if epoch >= 0 else "?") for offset, epoch, value in log}
        for offset, epoch, value in row["records"]:
            assert by_offset.get(offset) == (epoch, value), (
                f"broker {row['broker']} at offset {offset}, step {step}"
            )
        drawn += len(row["records"])
        mark = marks.get((partition, row["broker"]))
        assert row.get("hw") == (None if mark is None else str(mark))
        if log:
            assert row["end"] == str(log[-1][0] + 1)
    return drawn


def partition_of(view):
    """The partition that a page opens with: that of the first finding, or the first of all."""
    name = view["partitions"][max(0, view["findings"][0]["partition"])]
    topic, _, number = name.rpartition("-")
    return topic, int(number)


def test_a_lost_record_is_drawn_as_the_trace_tells_it(chromium, written, naive):
    """KIP-101: logs, epochs and high watermarks at the moment that convicts and two others; a key and the
    address move there."""
    run, path = written("kip_101")
    told, view = naive(run.trace), view_of(run)
    partition, steps = partition_of(view), view["findings"][0]["steps"]
    with opened(chromium, path) as tab:
        assert compare_logs(tab, told, partition, steps[-1]) > 20
        for step in (steps[0], len(told.moments) - 1):
            move_to(tab, step)
            assert compare_logs(tab, told, partition, step) > 20
        tab.keyboard.press("[")
        assert tab.input_value("#slider") == str(steps[-1])
        until(tab, f"location.hash.includes('s={steps[-1]}')")
        address = tab.evaluate("location.hash")
    with opened(chromium, path, address) as tab:
        assert tab.input_value("#slider") == str(steps[-1])


@all_of_them
@pytest.mark.parametrize("kind", ["fenced_controller", "no_progress", "group", "producer"])
def test_three_moments_of_other_bugs(chromium, written, naive, kind):
    """Each kind of run, at three moments: what is drawn is what the trace says."""
    run, path = written(kind)
    told = naive(run.trace)
    view = view_of(run)
    partition = partition_of(view)
    with opened(chromium, path) as tab:
        drawn = 0
        for step in (len(told.moments) // 3, view["findings"][0]["steps"][-1], len(told.moments) - 1):
            move_to(tab, step)
            drawn += compare_logs(tab, told, partition, step)
            state = told.last(step, Name.PARTITION_STATE, *partition)
            fact = tab.evaluate(
                "[...document.querySelectorAll('#zk-facts [data-fact=\"leader epoch\"] dd')].map((one) => "
                "one.textContent)[0]"
            )
            assert fact == (str(state.leader_epoch) if state else "–")
        assert drawn > 5


@all_of_them
def test_a_group_shows_its_commits(chromium, written):
    """◆ of each partition is the last commit that was acknowledged up to the moment."""
    run, path = written("group")
    view = view_of(run)
    step = view["findings"][0]["steps"][-1]
    now = sum(view["moments"]["wait"][: step + 1]) + min(
        [event.time for event in run.trace.events] + [one.invoke_time for one in run.trace.operations]
    )
    expected = {}
    for one in sorted(run.trace.operations, key=lambda one: one.completion_time or 0):
        if one.function is Function.COMMIT and one.outcome is Outcome.OK and one.completion_time <= now:
            expected |= {f"{spot.topic}-{spot.partition}": spot.offset for spot in one.positions}
    with opened(chromium, path) as tab:
        drawn = tab.evaluate(
            "[...document.querySelectorAll('[data-committed]')].map((one) => [one.dataset.partition, "
            "Number(one.dataset.committed)])"
        )
        assert expected and dict(drawn) == expected


@all_of_them
def test_a_foreign_history_shows_its_clients_logs(chromium, written):
    """What was acknowledged and read up to a moment; the offset with two values is marked."""
    _, path = written("foreign")
    with opened(chromium, path) as tab:
        move_to(tab, 3)
        assert tab.evaluate(READ_KNOWN) == [{"0": ["10", False], "1": ["11", False]}]
        move_to(tab, 8)
        whole = {"0": ["10", False], "1": ["11", False], "2": ["12", False], "3": ["13", False]}
        assert tab.evaluate(READ_KNOWN) == [whole]
        tab.keyboard.press("End")
        acknowledged, read = tab.evaluate(READ_KNOWN)
        assert acknowledged == {"0": ["10", False], "1": ["11", False], "2": ["99", True], "3": ["13", False]}
        assert {offset: value for offset, (value, _) in read.items()} == {
            "0": "10",
            "1": "11",
            "2": "99",
            "3": "13",
        }


@all_of_them
def test_a_click_selects_a_thing_everywhere(chromium, written):
    """A record marks its operation's bar and its events; an event moves to its moment; Esc chooses nothing;
    the address keeps the choice."""
    _, path = written("kip_101")
    with opened(chromium, path) as tab:
        tab.locator("figure.active g.replica[data-broker='1'] g.record[data-offset='39']").first.click()
        assert "offset 39" in tab.inner_text("#details")
        assert tab.locator(".selectedrange").count() >= 1
        tab.locator("#details button", has_text="operation 35").first.click()
        assert "Operation 35" in tab.inner_text("#details")
        tab.locator("#details button.small").first.click()
        until(tab, "location.hash.includes('sel=o35')")
        assert tab.locator("g.bar.chosen[data-operation='35']").count() == 1
        assert tab.locator("#events .row.chosen").count() >= 1
        tab.keyboard.press("Escape")
        assert tab.locator("g.bar.chosen").count() == 0


@all_of_them
def test_filters_and_keys(chromium, written):
    """Kinds and brokers leave events out; steps, turning points, play and help are keys; the log's panel has
    keys of its own."""
    run, path = written("kip_101")
    with opened(chromium, path) as tab:
        total = len(run.trace.events) + sum(
            1 + (one.completion_time is not None) for one in run.trace.operations
        )
        for kind in ("operations", "logs", "high watermark"):
            tab.locator("#events button.chip", has_text=kind).first.click()
        told = tab.inner_text("#events .panelhead .dim")
        assert told.endswith(f"of {total}") and int(told.split()[0]) < total // 2
        names = tab.evaluate(
            "[...new Set([...document.querySelectorAll('#events .row')].map((one) => "
            "one.className.match(/name-([a-z_]+)/)[1]))]"
        )
        assert not set(names) & {"invoke", "answer", "appended", "truncated", "high_watermark"}
        before = int(tab.input_value("#slider"))
        tab.keyboard.press("ArrowRight")
        assert int(tab.input_value("#slider")) == before + 1
        tab.keyboard.press(",")
        tab.keyboard.press("Shift+ArrowLeft")
        assert int(tab.input_value("#slider")) < before - 8
        tab.keyboard.press("Home")
        tab.evaluate("document.activeElement.blur()")  # on a button the space bar presses it
        tab.keyboard.press(" ")
        until(tab, "Number(document.querySelector('#slider').value) >= 2")
        tab.keyboard.press(" ")
        tab.keyboard.press("?")
        assert "moment" in tab.inner_text("dialog")
        tab.keyboard.press("Escape")
        until(tab, "document.querySelectorAll('dialog').length === 0")  # its event comes after the key
        tab.keyboard.press("]")
        tab.focus("#logs .pictures")
        tab.keyboard.press("ArrowRight")
        first = tab.inner_text("#details h3")
        tab.keyboard.press("ArrowRight")
        assert "offset" in first and tab.inner_text("#details h3") != first
        tab.focus("#spacetime .picture")
        tab.keyboard.press("ArrowDown")
        assert "Operation" in tab.inner_text("#details h3")
        told = set()
        tab.keyboard.press("]")
        for _ in range(60):  # messages and faults, which have no rows in a table
            tab.keyboard.press("Shift+ArrowDown")
            told.add(tab.inner_text("#details h3").split(":")[0])
            assert tab.locator("#spacetime .arrow.chosen, #spacetime .fault.chosen").count() >= 1
        assert "Fault" in told and len(told) > 2
        tab.locator("#events button.chip", has_text="operations").first.focus()
        tab.keyboard.press("Enter")
        assert tab.evaluate("document.activeElement.textContent") == "operations"


@all_of_them
def test_two_runs_at_the_same_moment(chromium, shown, naive, tmp_path):
    """Side by side, each figure shows its own trace at the open one's time."""
    broken, other = shown("kip_101"), shown("fenced_controller")
    path = tmp_path / "two.html"
    write_page(
        path,
        [
            Shown(trace=broken.trace, verdicts=broken.verdicts, name="broken"),
            Shown(trace=other.trace, verdicts=other.verdicts, name="other"),
        ],
    )
    told = naive(other.trace)
    with opened(chromium, path) as tab:
        step = int(tab.input_value("#slider"))
        now = sum(view_of(broken)["moments"]["wait"][: step + 1])
        first = told.moments[0].time
        there = max(index for index, moment in enumerate(told.moments) if moment.time - first <= now)
        assert tab.get_attribute("figure[data-view='1'] svg.logs", "data-step") == str(there)
        tab.keyboard.press("v")
        assert tab.input_value("#slider") == str(there)
        assert "Fenced controller" in tab.inner_text("h1")


@all_of_them
def test_the_order_of_a_register(chromium, tmp_path, request):
    """The picture of a history that no order explains: points in order, states, and the operation that fits
    nowhere."""
    from fencepost.checkers.linearizability import judge_trace
    from fencepost.checkers.models import model_named
    from fencepost.traces.importers import import_file

    model = model_named("register")
    trace = import_file(request.config.rootpath / "tests/checkers/linearizability/histories/stale-read.edn")
    verdict = judge_trace(trace, model)
    path = tmp_path / "order.html"
    write_page(
        path,
        [Shown(trace=trace, verdicts=(verdict,), sequential=sequential_of(trace, model, verdict.findings))],
    )
    with opened(chromium, path) as tab:
        assert tab.evaluate(
            "[...document.querySelectorAll('#sequential .point')].map((one) => one.dataset.order)"
        ) == ["1", "2", "3"]
        assert tab.inner_text("#sequential tr.culprit td:nth-child(2)") == "read() -> 1"
        tab.click("#order-back")
        assert "After 2: state 2" in tab.inner_text("#sequential .said")
        moments = tab.evaluate(
            "[...document.querySelectorAll('#events .row .time')].map((one) => one.textContent)"
        )
        assert moments == [f"{time} ns" for time in range(8)]


@all_of_them
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 390])
def test_nothing_is_wider_than_the_window_and_texts_have_contrast(chromium, written, scheme, width):
    """The page never scrolls sideways, and the texts of head, panels and tables have a contrast of at least
    4.5 to 1 (WCAG AA)."""
    for kind in ("kip_101", "group", "producer", "foreign", "transactions"):
        _, path = written(kind)
        with opened(chromium, path, color_scheme=scheme) as tab:
            tab.set_viewport_size({"width": width, "height": 800})
            tab.wait_for_timeout(200)
            assert (
                tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
                <= 0
            ), kind
            ratios = json.loads(tab.evaluate(CONTRASTS))
            assert len(ratios) > 20
            assert [one for one in ratios if one[0] < 4.5] == [], kind


CONTRASTS = """() => {
  const parse = (text) => { const found = text.match(/[\\d.]+/g).map(Number); return found.length < 4 ? [...found, 1] : found; };
  const part = (c) => { const v = c / 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
  const light = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  const ground = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const colour = parse(getComputedStyle(one).backgroundColor);
      if (colour[3] > 0.99) return colour;
    }
    return [255, 255, 255, 1];
  };
  const texts = 'h1, h2, h3, p, dt, dd, th, td, button, summary, figcaption, .row:not(.future) span';
  const found = [];
  for (const element of document.querySelectorAll(texts)) {
    if (!element.textContent.trim() || !element.getClientRects().length) continue;
    const a = light(parse(getComputedStyle(element).color)), b = light(ground(element));
    found.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), element.className, element.textContent.slice(0, 30)]);
  }
  return JSON.stringify(found);
}"""


@all_of_them
def test_figures_are_drawn_as_they_are_described(chromium, shown, tmp_path):
    """A page of results: every bar of the figure is drawn, in a page that asks for nothing and says
    nothing."""
    run = shown("kip_101")
    finding = next(one for verdict in run.verdicts for one in verdict.findings)
    figure = figure_of(run.trace, finding)
    example = Example(heading="x", facts=(), proof=(), figures=(figure,))
    path = tmp_path / "index.html"
    path.write_text(Page(title="t", lead="l", good=False, examples=(example,)).html(), encoding="utf-8")
    for scheme, width in (("light", 1400), ("dark", 420)):
        with opened(chromium, path, color_scheme=scheme) as tab:
            tab.set_viewport_size({"width": width, "height": 900})
            until(tab, "() => document.querySelectorAll('.barlayer .point').length > 0")
            drawn = tab.evaluate("() => document.querySelectorAll('.barlayer .point path').length")
            assert drawn == sum(len(one["x"]) for one in figure.data if one["type"] == "bar")
            lanes = tab.evaluate(
                "() => [...document.querySelectorAll('.ytick text')].map((one) => one.textContent)"
            )
            assert lanes == figure.layout["yaxis"]["ticktext"]
            inside = tab.evaluate(
                "() => [...document.querySelectorAll('.bartext-inside')].filter((one) => "
                "one.textContent).map((one) => getComputedStyle(one).fill)"
            )
            assert inside and set(inside) == {"rgb(27, 18, 0)"}  # dark on a fault's orange: 8 to 1


SHRUNK = json.loads(
    r"""{
  "version": 1,
  "seed": 20,
  "safety_ms": 13600,
  "cluster": {"bugs": ["KIP-101"]},
  "operations": [
    {"op_id": 35, "process": 0, "at_ms": 0, "function": "append"}
  ],
  "faults": [
    {"fault_id": 5, "kind": "crash", "at_ms": 5, "duration_ms": 0, "target": "leader of t-0"},
    {"fault_id": 7, "kind": "slow_link", "at_ms": 5, "duration_ms": 15000, "target": "broker 2", "parameter": 800000},
    {"fault_id": 1, "kind": "slow_zookeeper", "at_ms": 8600, "duration_ms": 4000, "target": "leader of t-0", "parameter": 1300000},
    {"fault_id": 2, "kind": "slow_zookeeper", "at_ms": 8600, "duration_ms": 4000, "target": "leader of t-0", "parameter": 800000}
  ]
}"""
)
"""KIP-101 at seed 23, as `fencepost shrink` leaves it."""


@all_of_them
def test_a_shrunk_plan_is_shown_at_the_matching_moment(chromium, shown, tmp_path):
    """Next to the whole plan, the shrunk one is at its own convicting moment when the whole one is at its
    own, and each shows its own disputed offset, whatever their times and offsets."""
    whole, plan = shown("kip_101"), plan_from_json(json.dumps(SHRUNK))
    trace = run(plan)
    small = Shown(trace=trace, verdicts=tuple(judge(trace, DEFAULT_CHECKS)), name="shrunk")
    path = tmp_path / "both.html"
    write_page(path, [whole, small])
    last = [view_of(one)["findings"][0]["steps"][-1] for one in (whole, small)]
    offsets = [view_of(one)["findings"][0]["offset"] for one in (whole, small)]
    assert offsets[0] != offsets[1]
    with opened(chromium, path) as tab:
        tab.keyboard.press("End")
        tab.keyboard.press("[")
        text = tab.inner_text("#logs")
        assert "at the matching moment" in text
        marks = tab.evaluate(
            "() => [...document.querySelectorAll('figure.view')].map((one) => "
            "one.querySelector('text.convictmark').textContent)"
        )
        assert marks == [f"◆ {offset}" for offset in offsets]
        moments = tab.evaluate("() => document.querySelector('#bar').innerText")
        assert f"moment {last[0] + 1} of" in moments
        tab.keyboard.press("v")
        assert f"moment {last[1] + 1} of" in tab.evaluate("() => document.querySelector('#bar').innerText")
