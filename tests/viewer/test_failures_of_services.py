"""The pages of three services of the zoo that failed under chaos, in a browser: what convicts is seen in a wide
window and in a narrow one. With FENCEPOST_PICTURES=docs/images the pictures of the docs are written."""

import os
from pathlib import Path

from fencepost.campaign.failure import RunFailedError
from tests.services.running import ServiceRun, zoo_cluster
from tests.services.zoo import BY_NAME
from tests.viewer.browser import all_of_them, needs_chromium, opened

FAILURES = {
    "failed-lost": "commit_before_work",
    "failed-twice": "time_out_is_no_failure",
    "failed-order": "order_lost_in_pool",
}
"""Services, by their pictures."""
pytestmark = [*needs_chromium, all_of_them]
PICTURES = os.environ.get("FENCEPOST_PICTURES")
SEEDS = range(20)
"""Until one finds the mistake."""
WIDE, NARROW = {"width": 1400, "height": 860}, {"width": 400, "height": 1500}
SEEN = """(one) => [...document.querySelectorAll(one)].filter((each) => {
    const box = each.getBoundingClientRect();
    return box.width > 0 && box.left >= 0 && box.right <= innerWidth && box.top >= 0 && box.bottom <= innerHeight;
}).length"""
"""How many things of a selector are wholly in the window."""


def failure(name, folder):
    """What `assert_output` says of a service with its mistake, at the first seed of chaos that finds it; its page
    is in the folder."""
    service = BY_NAME[name]
    folder.mkdir()
    for seed in SEEDS:
        with zoo_cluster(seed) as kafka:
            run = ServiceRun(kafka=kafka, service=service, mistake=True, folder=folder)
            run.prepare()
            run.work_in_chaos(seed)
            promise = service.promise
            try:
                kafka.assert_output(
                    run.source, run.sink, service.rule, how=promise.how, order=promise.order, folder=folder
                )
            except RunFailedError as error:
                return error.verdict.findings[0]
    raise AssertionError(f"{name}: no seed of {SEEDS} found it")


def test_what_convicts_is_seen(request, tmp_path):
    """Rule: the title, what was seen and each operation that convicts are in both windows, and in the wide one
    a framed record; nothing is wider than the window."""
    found = {picture: failure(name, tmp_path / picture) for picture, name in FAILURES.items()}
    chromium = request.getfixturevalue("chromium")  # not before: see there
    for picture, finding in found.items():
        for size in (WIDE, NARROW):
            with opened(chromium, tmp_path / picture / "trace.html") as tab:
                tab.set_viewport_size(size)
                tab.wait_for_timeout(300)
                assert tab.inner_text("h1") == "Failed: assert_output"
                assert finding.seen[:40] in tab.inner_text("#head")
                assert tab.evaluate(SEEN, "h1") == 1
                assert tab.evaluate(SEEN, "#head ol[aria-label='What convicts'] button") == len(
                    finding.operations
                )
                assert size is NARROW or tab.evaluate(SEEN, "svg.logs rect.disputed") > 0
                assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
                if PICTURES and size is WIDE:
                    tab.screenshot(path=Path(PICTURES) / f"{picture}.png")
