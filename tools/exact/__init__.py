"""Exactness by the hundred thousand: every decision procedure against a naive one, on seeded random small
histories. docs/results/exactness.md tells what came out; subjects.py says what is compared with what.
"""
