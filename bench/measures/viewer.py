"""How fast a page is drawn in headless Chromium, against a page with a tenth of it.

Two cases: from the opening of the file to the first picture, and a jump of the slider (all panels drawn and
laid out). Processor time is that of the page's main thread, which a crowded machine does not stretch.
--screenshots writes the pictures of docs/how-to/viewer.md instead: wide, narrow and dark. Needs Playwright
and Chromium.
"""

import argparse
import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from bench.costs import Cost
from bench.harness import Case
from fencepost.campaign.swarm.swarm import swarm
from fencepost.checkers.judges import DEFAULT_CHECKS, judge
from fencepost.checkers.verdict import Decision, Finding, Verdict
from fencepost.run.simulated.run import run
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Operation, Outcome, Record
from fencepost.traces.trace import Trace
from fencepost.viewer import Shown, write_page

TURNS = 5
BROKERS, READ = 5, 40
MS = 1_000_000
T0: dict[str, Any] = {"topic": "t", "partition": 0}
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
PICTURES = (("wide", 1400, "light"), ("dark", 1400, "dark"), ("narrow", 390, "light"))
STEPS = """async (count) => {
  const times = [], slider = document.querySelector('#slider'), last = Number(slider.max);
  for (let i = 0; i < count; i++) {
    slider.value = Math.floor((i * 7919) % last);
    const start = performance.now();
    slider.dispatchEvent(new Event('input', { bubbles: true }));
    document.body.getBoundingClientRect();  // layout is part of it
    times.push(performance.now() - start);
    if (i % 10 === 0) await new Promise(requestAnimationFrame);
  }
  return times;
}"""
FIRST = """() => {
  const [paint] = performance.getEntriesByName('first-contentful-paint');
  return paint ? paint.startTime : performance.now();
}"""


def large(operations: int, events: int) -> Trace:
    """Five brokers and eight clients; appends are copied, reads read the last records, the rest are control
    requests."""
    nodes = range(1, BROKERS + 1)
    state: dict[str, Any] = {**T0, "leader": 1, "leader_epoch": 0}
    seen = [Event(time=0, name=Name.PARTITION_STATE, node=1, controller_epoch=1, isr=tuple(nodes), **state)]
    for node in nodes:
        role = Name.BECAME_LEADER if node == 1 else Name.BECAME_FOLLOWER
        seen.append(Event(time=0, name=role, node=node, offset=0, high_watermark=0, **state))
    rows: list[Operation] = []
    offset = 0
    for number in range(operations):
        at, first = (number + 1) * 10 * MS, max(0, offset - READ) if number % 2 else offset
        end = offset if number % 2 else offset + 3
        values = range(first, end) if number % 2 else range(number * 1000, number * 1000 + 3)
        records = tuple(
            Record(topic="t", partition=0, offset=place, value=value)
            for place, value in enumerate(values, first)
        )
        common: dict[str, Any] = {
            **T0, "op_id": number, "process": number % 8, "invoke_time": at, "completion_time": at + 25 * MS,
            "outcome": Outcome.OK, "node": 1, "offset": first, "records": records,
        }  # fmt: skip
        if number % 2:
            rows.append(Operation(function=Function.POLL, end_offset=end, **common))
            continue
        rows.append(Operation(function=Function.APPEND, acks=-1, **common))
        told: dict[str, Any] = {**T0, "leader_epoch": 0}
        for node in nodes:
            copied = {**told, "offset": first, "cause": "leader" if node == 1 else "follower"}
            time = at + node * 3 * MS
            seen.append(Event(time=time, name=Name.APPENDED, node=node, values=tuple(values), **copied))
        mark = {**told, "high_watermark": end, "cause": "leader"}
        seen.append(Event(time=at + 20 * MS, name=Name.HIGH_WATERMARK, node=1, **mark))
        offset = end
    span, missing = seen[-1].time, max(0, events - len(seen))
    request: dict[str, Any] = {"controller_epoch": 1, "cause": "UpdateMetadataRequest"}
    seen += [
        Event(
            time=span * n // missing, name=Name.CONTROL_REQUEST_APPLIED, node=1 + n % BROKERS, **request
        )
        for n in range(missing)
    ]  # fmt: skip
    seen.sort(key=lambda event: event.time)
    return Trace(
        trace_id=1, plan="", seed=1, software_version="bench", operations=tuple(rows), events=tuple(seen)
    )


def page(path: Path, operations: int, events: int) -> int:
    """A page of a large trace with one finding. Returns its bytes."""
    half = operations // 2
    seen: dict[str, Any] = {**T0, "expected": "", "seen": "", "operations": (half,), "offset": half}
    finding = Finding(anomaly="lost_write", check="log", **seen)
    verdict = Verdict(decision=Decision.ILLEGAL, check="log", findings=(finding,))
    return write_page(path, [Shown(trace=large(operations, events), verdicts=(verdict,))])


@contextmanager
def browser() -> Iterator[Any]:
    """The system's Chromium, as root in a container. Raises SystemExit if there is none."""
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if path is None:
        raise SystemExit(f"expected one of {', '.join(CHROMIUM)} on the path, saw none; install Chromium")
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=path, args=list(OPTIONS))
        try:
            yield chromium
        finally:
            chromium.close()


def opened(tab: Any, path: Path) -> None:
    """The page is there, and drawn."""
    tab.goto(path.absolute().as_uri())
    tab.wait_for_selector("html[data-ready=true]", state="attached")
    tab.wait_for_timeout(300)


def drawn(chromium: Any, path: Path, size: int, steps: int) -> Cost:
    """Open a page in a new tab. steps: 0 measures until the first picture, otherwise only so many jumps."""
    tab = chromium.new_page(viewport={"width": 1400, "height": 900})
    session = tab.context.new_cdp_session(tab)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def busy_s() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return next(float(one["value"]) for one in metrics if one["name"] == "TaskDuration")

    try:
        opened(tab, path)
        if not steps:
            return Cost(wall_s=tab.evaluate(FIRST) / 1000, cpu_s=busy_s(), more={"bytes": size})
        before, times = busy_s(), sorted(tab.evaluate(STEPS, steps))
        spent = busy_s() - before
        more = {
            "median ms": statistics.median(times),
            "99 of 100 within ms": times[max(0, int(len(times) * 0.99) - 1)],
            "slowest ms": times[-1],
        }
        return Cost(wall_s=sum(times) / 1000, cpu_s=spent, more=more)
    finally:
        tab.close()


def screenshots(folder: Path) -> None:
    """The pictures of docs/how-to/viewer.md."""
    folder.mkdir(parents=True, exist_ok=True)
    trace, path = run(swarm(23, "default", ("KIP-101",))), folder / "page.html"
    replay = "fencepost replay --seed 23 --bug KIP-101"
    write_page(path, [Shown(trace=trace, verdicts=judge(trace, DEFAULT_CHECKS), replay=replay)])
    with browser() as chromium:
        for name, width, scheme in PICTURES:
            size = {"width": width, "height": 1500}
            tab = chromium.new_context(viewport=size, color_scheme=scheme).new_page()
            opened(tab, path)
            tab.screenshot(path=folder / f"viewer-{name}.png")
    path.unlink()


def arguments(parser: argparse.ArgumentParser) -> None:
    """Of this measure."""
    parser.add_argument("--operations", type=int, default=1_000, help="[quick: 100]")
    parser.add_argument("--events", type=int, default=20_000, help="[quick: 2000]")
    parser.add_argument("--steps", type=int, default=200, help="jumps of the slider [quick: 20]")
    parser.add_argument("--screenshots", type=Path, metavar="FOLDER", help="take pictures instead")


def instead(asked: argparse.Namespace) -> bool:
    """Whether pictures were taken, and nothing is measured."""
    if asked.screenshots:
        screenshots(asked.screenshots)
    return bool(asked.screenshots)


def measure(asked: argparse.Namespace) -> Iterator[Case]:
    """The first picture, and steps."""
    less = 10 if asked.quick else 1
    operations, events, steps = asked.operations // less, asked.events // less, asked.steps // less
    with tempfile.TemporaryDirectory(prefix="fencepost-bench-") as folder, browser() as chromium:
        pages: dict[str, tuple[Path, int]] = {}
        for part in (1, 10):
            path = Path(folder) / f"{part}.html"
            size = page(path, operations // part, events // part)
            pages[f"{operations // part:,} operations, {events // part:,} events"] = path, size

        def sides(count: int) -> dict[str, Callable[[], Cost]]:
            return {name: partial(drawn, chromium, path, size, count) for name, (path, size) in pages.items()}

        yield Case(name="first picture", sides=sides(0), unit="picture", warm=False)
        yield Case(name="a step", sides=sides(steps), per=steps, unit="step", warm=False)
