"""Transactions in a real headless Chromium: lanes, records and the last stable offset are those of the
trace."""

import pytest
from attrs import evolve

from fencepost.traces.events import Name
from fencepost.traces.operations import Function, Outcome
from fencepost.viewer.page_file import write_page
from fencepost.viewer.view import Shown, view_of
from tests.checkers import lab
from tests.viewer.browser import all_of_them, move_to, needs_chromium, opened

pytestmark = needs_chromium

READ_TRANSACTIONS = """() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const fates = (selector) => Object.fromEntries(all(selector).filter((one) => one.dataset.fate).map((one) => [one.dataset.transaction, one.dataset.fate]));
  const logs = document.querySelector('figure.active svg.logs');
  const first = all("figure.active g.replica[data-broker='1'] g.record");
  return {
    records: Object.fromEntries(all('figure.active g.replica g.record:not(.ghost)').map((one) =>
      [`${one.closest('g.replica').dataset.broker}:${one.dataset.value}`, one.dataset.fate || ''])),
    lanes: fates('#transactions g.txn'),
    table: fates('#transactions tbody tr'),
    stable: logs.dataset.stable,
    line: all('figure.active .stableoffset line').map((one) => Number(one.getAttribute('x1'))),
    blocks: Object.fromEntries(first.map((one) => [one.dataset.offset, Number(one.querySelector('rect').getAttribute('x'))])),
    said: logs.getAttribute('aria-label'),
  };
}"""


def fates_at(trace, time):
    """(fate of each transaction that began, by op id; fate of each of its values) as the rows of the trace
    say it."""
    fates, values = {}, {}
    for row in trace.operations:
        if row.function is not Function.TXN or row.invoke_time > time:
            continue
        over = row.completion_time is not None and row.completion_time <= time
        fate = {Outcome.OK: "committed", Outcome.FAIL: "aborted"}[row.outcome] if over else "open"
        fates[str(row.op_id)] = fate
        for part in trace.operations:
            ends = row.completion_time or 1 << 60
            own = part.function is Function.APPEND and part.process == row.process
            if own and row.invoke_time <= part.invoke_time and part.completion_time <= ends:
                values |= {str(record.value): fate for record in part.records}
    return fates, values


def test_transactions_are_drawn_as_the_trace_tells_them(chromium, written):
    """Lanes, table, the marks of records in each replica's log and the line of the last stable offset, at
    three moments; a transaction that is chosen marks its records; the words say the same."""
    run, path = written("transactions")
    view = view_of(run)
    times = [sum(view["moments"]["wait"][: step + 1]) for step in range(len(view["moments"]["wait"]))]
    with opened(chromium, path) as tab:
        for time, stable, offsets in ((52, None, "3, 4, 5"), (75, "3", "5"), (130, "5", "5")):
            step = max(number for number, at in enumerate(times) if at <= time)
            move_to(tab, step)
            drawn, (fates, values) = tab.evaluate(READ_TRANSACTIONS), fates_at(run.trace, times[step])
            assert drawn["lanes"] == drawn["table"] == fates
            expected = {f"{broker}:{value}": fate for broker in (1, 2) for value, fate in values.items()}
            assert {key: fate for key, fate in drawn["records"].items() if fate} == {
                key: fate for key, fate in expected.items() if key in drawn["records"]
            }
            assert set(drawn["records"]) >= {"1:10", "1:20", "1:30"}
            assert drawn.get("stable") == stable
            if stable is not None:  # the line stands where the block of that offset begins
                assert drawn["line"][0] == pytest.approx(drawn["blocks"][stable] - 1.5)
                assert f"Last stable offset shown to a client: {stable}." in drawn["said"]
            assert f"Of open transactions: offsets {offsets}." in drawn["said"]
        assert "Of aborted transactions: offsets 3, 4." in drawn["said"]
        tab.locator("#transactions tbody tr[data-transaction='3'] th button").focus()
        tab.keyboard.press("Enter")
        assert "aborted; aborts" in tab.inner_text("#details")
        assert tab.locator("#spacetime g.bar.transaction.ends-aborted.chosen").count() == 1
        assert tab.locator(".selectedrange").count() >= 1
        tab.set_viewport_size({"width": 390, "height": 800})
        assert (
            tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
        )


@all_of_them
def test_a_value_that_stands_in_two_partitions_has_a_writer_in_each(chromium, shown, tmp_path):
    """Values of a foreign history may be unique in their partition only: a record names the operation that
    sent it there."""
    trace = shown("foreign").trace
    first = trace.operations[0]
    other = evolve(
        first,
        op_id=50,
        process=7,
        partition=1,
        invoke_time=200,
        completion_time=205,
        records=tuple(evolve(record, partition=1) for record in first.records),
    )
    appended = [
        lab.event(
            at,
            Name.APPENDED,
            1,
            topic="orders",
            partition=partition,
            offset=0,
            values=(10,),
            leader_epoch=0,
            cause="leader",
        )
        for at, partition in ((3, 0), (202, 1))
    ]
    path = tmp_path / "two.html"
    write_page(
        path, [Shown(trace=evolve(trace, operations=(*trace.operations, other), events=tuple(appended)))]
    )
    with opened(chromium, path) as tab:
        tab.keyboard.press("End")
        for partition, operation in ((0, 0), (1, 50)):
            tab.locator("#logs .tabs button").nth(partition).click()
            tab.locator("figure.active g.replica g.record[data-offset='0']").first.click()
            assert f"operation {operation}" in tab.inner_text("#details table")
