"""How fast a page is drawn: 1,000 operations and 20,000 events in headless Chromium.

    python bench/viewer.py [--operations 1000] [--events 20000] [--steps 200] [--screenshots FOLDER]

Prints the size of the data, the time from the opening of the file to the first picture, and the time of a
step (all panels drawn and laid out), by the wall clock and as processor time of the page's thread, which a
crowded machine does not stretch. --screenshots writes the pictures of docs/how-to/viewer.md instead: wide,
narrow and dark. Needs Playwright and Chromium.
"""

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from fencepost.campaign.run.run import run
from fencepost.campaign.swarm.swarm import swarm
from fencepost.checkers.judges import DEFAULT_CHECKS, judge
from fencepost.checkers.verdict import Decision, Finding, Verdict
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Operation, Outcome, Record
from fencepost.traces.trace import Trace
from fencepost.viewer import Shown, view_of, write_page

OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
T0 = {"topic": "t", "partition": 0}
MS = 1_000_000

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
    """Five brokers and eight clients; appends are copied, reads read the last 40 records, the rest are
    control requests."""
    rows: list[Operation] = []
    told = [
        Event(
            time=0,
            name=Name.PARTITION_STATE,
            node=1,
            leader=1,
            leader_epoch=0,
            controller_epoch=1,
            isr=(1, 2, 3, 4, 5),
            **T0,
        ),
        *(
            Event(
                time=0,
                name=Name.BECAME_LEADER if node == 1 else Name.BECAME_FOLLOWER,
                node=node,
                leader=1,
                leader_epoch=0,
                offset=0,
                high_watermark=0,
                **T0,
            )
            for node in range(1, 6)
        ),
    ]
    offset = 0
    for number in range(operations):
        at = (number + 1) * 10 * MS
        common = {
            "op_id": number,
            "process": number % 8,
            "invoke_time": at,
            "completion_time": at + 25 * MS,
            "outcome": Outcome.OK,
            "node": 1,
            **T0,
        }
        if number % 2:
            start = max(0, offset - 40)
            records = tuple(
                Record(topic="t", partition=0, offset=place, value=place) for place in range(start, offset)
            )
            rows.append(
                Operation(function=Function.POLL, offset=start, end_offset=offset, records=records, **common)
            )  # type: ignore[arg-type]
            continue
        records = tuple(
            Record(topic="t", partition=0, offset=offset + index, value=number * 1000 + index)
            for index in range(3)
        )
        values = tuple(record.value for record in records)
        rows.append(Operation(function=Function.APPEND, acks=-1, offset=offset, records=records, **common))  # type: ignore[arg-type]
        for node in range(1, 6):
            cause = "leader" if node == 1 else "follower"
            told.append(
                Event(
                    time=at + node * 3 * MS,
                    name=Name.APPENDED,
                    node=node,
                    offset=offset,
                    values=values,
                    leader_epoch=0,
                    cause=cause,
                    **T0,
                )
            )
        offset += 3
        told.append(
            Event(
                time=at + 20 * MS,
                name=Name.HIGH_WATERMARK,
                node=1,
                high_watermark=offset,
                leader_epoch=0,
                cause="leader",
                **T0,
            )
        )
    span = told[-1].time
    missing = max(0, events - len(told))
    told += [
        Event(
            time=span * number // missing,
            name=Name.CONTROL_REQUEST_APPLIED,
            node=1 + number % 5,
            controller_epoch=1,
            cause="UpdateMetadataRequest",
        )
        for number in range(missing)
    ]
    told.sort(key=lambda event: event.time)
    return Trace(
        trace_id=1, plan="", seed=1, software_version="bench", operations=tuple(rows), events=tuple(told)
    )


def browser(driver):  # type: ignore[no-untyped-def]
    """Debian's Chromium, as root in a container."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        sys.exit("expected Chromium on the path, saw none (apt-get install chromium)")
    return driver.chromium.launch(executable_path=path, args=list(OPTIONS))


def busy_ms(session) -> float:  # type: ignore[no-untyped-def]
    """Processor time of the page's main thread so far."""
    metrics = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
    return 1000 * metrics["TaskDuration"]


def measure(arguments: argparse.Namespace, folder: Path) -> None:
    """The figures."""
    from playwright.sync_api import sync_playwright

    trace = large(arguments.operations, arguments.events)
    finding = Finding(
        anomaly="lost_write",
        check="log",
        expected="",
        seen="",
        operations=(arguments.operations // 2,),
        offset=arguments.operations // 2,
        **T0,
    )  # type: ignore[arg-type]
    shown = Shown(
        trace=trace, verdicts=(Verdict(decision=Decision.ILLEGAL, check="log", findings=(finding,)),)
    )
    start = time.perf_counter()
    view = view_of(shown)
    made = time.perf_counter() - start
    path = folder / "large.html"
    size = write_page(path, [shown])
    window = view["window"]
    print(
        f"{len(trace.operations):,} operations, {len(trace.events):,} events; on the page "
        f"{window['end'] - window['first']:,} of {window['total']:,} moments"
    )
    print(f"data {len(msgspec.json.encode(view)):,} bytes, file {size:,} bytes, made in {made:.2f} s")
    with sync_playwright() as driver:
        chromium = browser(driver)
        firsts, first_busy, step_busy = [], [], []
        for _ in range(5):
            tab = chromium.new_page(viewport={"width": 1400, "height": 900})
            session = tab.context.new_cdp_session(tab)
            session.send("Performance.enable", {"timeDomain": "threadTicks"})
            tab.goto(f"file://{path}")
            tab.wait_for_selector("html[data-ready=true]", state="attached")
            tab.wait_for_timeout(300)
            firsts.append(tab.evaluate(FIRST))
            first_busy.append(busy_ms(session))
            times = sorted(tab.evaluate(STEPS, arguments.steps))
            step_busy.append((busy_ms(session) - first_busy[-1]) / arguments.steps)
            tab.close()
        print(
            f"first picture after {statistics.median(firsts):.0f} ms (median of 5; the slowest"
            f" {max(firsts):.0f} ms), {statistics.median(first_busy):.0f} ms of processor time"
        )
        most = times[int(len(times) * 0.99) - 1]
        print(
            f"a step in {statistics.median(times):.1f} ms (median of {len(times)} jumps; 99 of 100 within "
            f"{most:.1f} ms,"
            f" the slowest {times[-1]:.1f} ms), {statistics.median(step_busy):.1f} ms of processor time"
        )
        chromium.close()


def screenshots(folder: Path) -> None:
    """The pictures of docs/how-to/viewer.md."""
    from playwright.sync_api import sync_playwright

    folder.mkdir(parents=True, exist_ok=True)
    trace = run(swarm(20, "default", ("KIP-101",)))
    page = folder.resolve() / "page.html"
    write_page(
        page,
        [
            Shown(
                trace=trace,
                verdicts=judge(trace, DEFAULT_CHECKS),
                replay="fencepost replay --seed 20 --bug KIP-101",
            )
        ],
    )
    with sync_playwright() as driver:
        chromium = browser(driver)
        for name, width, height, scheme in (
            ("wide", 1400, 1500, "light"),
            ("dark", 1400, 1500, "dark"),
            ("narrow", 390, 1500, "light"),
        ):
            context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
            tab = context.new_page()
            tab.goto(f"file://{page}")
            tab.wait_for_selector("html[data-ready=true]", state="attached")
            tab.wait_for_timeout(300)
            tab.screenshot(path=folder / f"viewer-{name}.png")
        chromium.close()
    page.unlink()


def main() -> None:
    """Measure, or take pictures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--operations", type=int, default=1_000)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--screenshots", type=Path)
    arguments = parser.parse_args()
    if arguments.screenshots is not None:
        screenshots(arguments.screenshots)
        return
    with tempfile.TemporaryDirectory() as folder:
        measure(arguments, Path(folder))


if __name__ == "__main__":
    main()
