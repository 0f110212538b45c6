"""`python -m tools.triage`: does mining put findings of one planted bug into one group, and does it say what
the bug needs?"""
