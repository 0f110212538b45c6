"""Mutation scores: small faults are put into a checker's rules, one at a time, and its tests must notice.

`python -m tools.mutation CHECKER` (or `make mutation`); docs/explanation/exactness.md tells what came out. A
tool of the repository, not part of the package.

    faults.py    which faults a source can be given; finder.py walks it, fault.py is one of them
    checkers.py  which sources and which tests are whose
    bench.py     a worker process: a copy of the tree, one forked pytest per fault
    plugin.py    what runs inside that pytest: which tests reach which line; the chosen ones, quick ones first
    ledger.py    results as they come, resumed; the score; the survivors and their reasons
"""
