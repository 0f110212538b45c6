"""Exactness by the hundred thousand: every decision procedure against a naive one, on seeded random small
histories.

`python -m tools.exact` (or `make exact`); docs/explanation/exactness.md tells what came out. A tool of the
repository, not part of the package.

    subjects.py   what is compared with what
    sweep.py      one stretch of seeds, in a process
    ledger.py     what was swept, kept as it comes; sums
"""
