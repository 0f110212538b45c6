"""Hypothesis machines for users: a replicated log of theirs behind an adapter, a simulated cluster with rules
of their own, one log on a simulated disk.

Must not know who runs them, or how often: that is a test's, or a hunt's.
"""
