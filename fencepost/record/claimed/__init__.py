"""Claims from outside: what the caller of a judge knows about a trace.

Owns the names that are imported from here. Must not know how a claim is used.
"""

from fencepost.record.claimed.outside_claims import (
    OutsideClaims,
    check_named,
    claimed,
    outside_claims,
    topics_of,
    under_claims,
)

__all__ = ["OutsideClaims", "check_named", "claimed", "outside_claims", "topics_of", "under_claims"]
