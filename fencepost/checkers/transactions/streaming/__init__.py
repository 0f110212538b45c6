"""The streaming form of the checks of transactions: one trace, judged while it runs."""

from fencepost.checkers.transactions.streaming.window import CHECKS, TransactionWindow

__all__ = ["CHECKS", "TransactionWindow"]
