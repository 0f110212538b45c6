"""The page of a test that failed, in a browser."""

from attrs import evolve

from fencepost.viewer.page_file import write_page
from tests.viewer.browser import needs_chromium, opened
from tests.viewer.test_failed_test import shown

pytestmark = needs_chromium


def test_the_page_opens_at_what_convicts(chromium, tmp_path):
    """Rule: in a browser the page opens with the assertion's name, at the convicting moment, in the convicting
    partition; it frames both copies, shows their text, and lists the strike."""
    path = tmp_path / "page.html"
    write_page(path, [shown()])
    with opened(chromium, path) as tab:
        assert tab.inner_text("h1") == "Failed: assert_output"
        assert "op 3" in tab.inner_text("#bar")
        assert tab.evaluate(
            "document.querySelector('#logs [role=tab][aria-selected=true]').textContent"
        ).startswith("invoices-0")
        framed = "[...document.querySelectorAll('svg.logs rect.disputed')].map((one) => Number(one.dataset.offset))"
        assert sorted(tab.evaluate(framed)) == [0, 1]
        assert tab.evaluate(
            "[...document.querySelectorAll('#logs text.value')].every((one) => one.textContent.startsWith('invoice'))"
        )
        assert "lose_answer" in tab.inner_text("#head .strikes")
        assert "shop" in tab.inner_text("#head .proof")
        tab.screenshot(path=str(tmp_path / "page.png"))


def test_a_page_of_a_test_that_failed_by_itself(chromium, tmp_path):
    """Rule: its title is no "Nothing found"."""
    path = tmp_path / "page.html"
    write_page(path, [evolve(shown(), verdicts=(), failure="AssertionError: 3 invoices, not 2")])
    with opened(chromium, path) as tab:
        assert tab.inner_text("h1") == "The test failed"
        assert "3 invoices, not 2" in tab.inner_text("#head") and "lose_answer" in tab.inner_text("#head")
        assert "op 4" in tab.inner_text("#bar")
