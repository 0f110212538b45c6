"""The cases, a module for each subject. Importing a module registers its cases."""

from fencepost.conformance.case import Case, registered
from fencepost.conformance.cases import (
    admin,
    commits,
    configs,
    epochs,
    fetch,
    frames,
    groups,
    metadata,
    offsets,
    produce,
    records,
    sequences,
    topics,
    transactions,
    versions,
)

MODULES = (
    admin,
    commits,
    configs,
    epochs,
    fetch,
    frames,
    groups,
    metadata,
    offsets,
    produce,
    records,
    sequences,
    topics,
    transactions,
    versions,
)
"""Importing them has registered their cases."""


def all_cases() -> tuple[Case, ...]:
    """Every case, by name."""
    assert MODULES, "nothing is registered"
    return registered()
