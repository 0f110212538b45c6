"""A real headless Chromium for tests: a page from disk, opened, moved and watched for noise."""

import os
import shutil
from contextlib import contextmanager

import pytest

playwright = pytest.importorskip(
    "playwright.sync_api", reason="the viewer's browser tests need Playwright (pip install playwright)"
)
CHROMIUM = (
    os.environ.get("FENCEPOST_CHROMIUM")
    or shutil.which("chromium")
    or shutil.which("chromium-browser")
    or shutil.which("google-chrome")
)
EVERYTHING = os.environ.get("FENCEPOST_BROWSER") == "all"
needs_chromium = [
    pytest.mark.skipif(
        CHROMIUM is None, reason="the viewer's browser tests need Chromium (apt-get install chromium)"
    )
]
all_of_them = pytest.mark.skipif(
    not EVERYTHING, reason="the viewer's longer browser tests run with FENCEPOST_BROWSER=all"
)
OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
"""A browser that starts as root in a container, and talks to nobody."""


def until(tab, expression, tries=100, noise=()):
    """Wait until an expression is true. Asked from outside: the page's policy forbids what Playwright's own
    wait does."""
    for _ in range(tries):
        if tab.evaluate(expression):
            return
        assert list(noise) == []
        tab.wait_for_timeout(50)
    raise AssertionError(f"never came: {expression}")


@contextmanager
def opened(chromium, path, address="", **options):
    """A page from disk. Ends with an assertion: no message on the console, no error, no request but for the
    file itself."""
    context = chromium.new_context(viewport={"width": 1400, "height": 900}, **options)
    tab, noise, requests = context.new_page(), [], []
    tab.on("console", lambda message: noise.append(message.text))
    tab.on("pageerror", lambda error: noise.append(str(error)))
    tab.on("request", lambda request: requests.append(request.url.split("#")[0]))
    try:
        tab.goto(f"file://{path}{address}")
        until(tab, "document.documentElement.dataset.ready === 'true'", noise=noise)
        yield tab
        assert noise == []
        assert set(requests) == {f"file://{path}"}
    finally:
        context.close()


def move_to(tab, step):
    """Move the slider, as a person's hand would."""
    tab.evaluate(
        "(step) => { const slider = document.querySelector('#slider'); slider.value = step; "
        "slider.dispatchEvent(new Event('input', { bubbles: true })); }",
        step,
    )
