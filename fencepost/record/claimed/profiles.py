"""The profiles of the log check that a claim may name.

Owns their names. Must not know what each asks (docs/spec/log-check.md).
"""

from fencepost.traces.errors import FencepostError, unknown_name

PROFILES = ("default", "session", "strong", "content")
"""Real-time profiles of the log check (docs/spec/log-check.md). A trace's claims name one of them."""


def check_profile(profile: str | None) -> None:
    """Raises FencepostError if the profile is unknown. None is valid: it means each trace's own profile."""
    if profile is not None and profile not in PROFILES:
        raise FencepostError(
            expected=f"a profile out of {', '.join(PROFILES)}",
            seen=unknown_name(profile, PROFILES),
            where="the profile of the log check",
        )
