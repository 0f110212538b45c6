"""The kinds of fault at the level of requests, for systems whose clients come in over the network."""

LATE_REQUESTS = "late_requests"
"""Connections are held back for a while, where the simulator's network holds back single messages."""
BROKEN_REQUEST = "broken_request"
"""Single requests; its target is its text (docs/reference/request-faults.md)."""
