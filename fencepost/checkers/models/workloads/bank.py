"""Transfers between accounts: whatever order they happen in, each read of all accounts has the same total."""

from collections.abc import Iterator
from typing import Any, ClassVar

from attrs import define

from fencepost.checkers.models.base import decoded, shown
from fencepost.checkers.models.workloads.base import MOST, Workload, happened, wrong_value
from fencepost.checkers.verdict import Finding
from fencepost.traces.operations import Operation
from fencepost.traces.trace import Trace


@define
class Bank(Workload):
    """Jepsen's bank."""

    name: ClassVar[str] = "bank"
    says: ClassVar[str] = "each read of all accounts has the same total, as snapshots of serial transfers do"
    functions: ClassVar[dict[str, str]] = {
        "transfer": "moves an amount from one account to another",
        "read": "returns the balances by account",
    }

    # Of all accounts; None: that of the first read.
    total: int | None = None
    # Whether an account may be overdrawn.
    negative: bool = True

    def findings(self, trace: Trace) -> Iterator[Finding]:
        """Reads with another total, with other accounts, or overdrawn."""
        total, first, accounts, count = self.total, None, None, 0
        reads = (one for one in trace.operations if one.function == "read" and happened(one))
        for read in sorted(reads, key=lambda one: one.invoke_time):
            balances = _balances(read)
            if first is None:
                first, accounts = read, balances.keys()
                total = sum(balances.values()) if total is None else total
            summed = sum(balances.values())
            wrong = ""
            if summed != total:
                wrong = f"they sum to {summed}"
            elif balances.keys() != accounts:
                other = min(balances.keys() ^ accounts) if accounts is not None else ""
                wrong = f"account {other} is there in one read and not in another"
            elif not self.negative and min(balances.values(), default=0) < 0:
                wrong = f"an account has {min(balances.values())}"
            if wrong and count < MOST:
                count += 1
                expected = f"balances that sum to {total}"
                expected += "" if self.negative else ", none below 0"
                yield self.found("total_changed", expected, wrong, read, first)


def _balances(read: Operation) -> dict[str, int]:
    value: Any = None if read.result is None else decoded(read, "result")
    if not isinstance(value, dict):
        raise wrong_value(read, "balances by account", value)
    for account, balance in value.items():
        if not isinstance(balance, int) or isinstance(balance, bool):
            raise wrong_value(read, f"a whole number as balance of account {shown(account)}", balance)
    return value
