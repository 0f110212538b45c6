"""docs/reference/liveness.md has the rows that the code has."""

from fencepost.campaign.swarm.swarm import swarm
from fencepost.run.simulated.run import run
from tools.liveness_rows import LIVE_AT, ROWS_AT, counted, live_table, rows_table


def test_the_tables_are_the_codes() -> None:
    """Rule: `python -m tools.liveness_rows` writes them; a row that differs is seen."""
    assert ROWS_AT.read() == rows_table() and "- controller: `no_controller`" in rows_table()
    assert LIVE_AT.read() == live_table() and "| `hanging_transaction` |" in live_table()


def test_the_report_counts_each_row() -> None:
    """Rule: how often each row was judged, excused, and found something."""
    said = counted([run(swarm(1, "default"))])
    assert said.startswith("1 traces") and "| `slow_election` |" in said
