"""Campaigns: seeds become plans, plans become runs, runs become traces.

Owns the workload, the faults and their budget, the phases of a run, the claims that follow from recorded
facts, and the planted bugs.
"""
