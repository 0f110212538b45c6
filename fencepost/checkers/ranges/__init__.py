"""The log check of a history that is too large to be held at once: partial arrays by slot range, merged, then
a pass over the ranges' summaries.

`fold` turns some operations of a log into partial arrays, `decide` merges those of one range and sums it up,
and `verdict` passes over the summaries.
"""
