"""The cases, a module for each subject. Importing a module registers its cases."""

from fencepost.conformance.case import Case, registered
from fencepost.conformance.cases import (
    admin_cases,
    commit_cases,
    config_cases,
    epoch_cases,
    fetch_cases,
    frame_cases,
    group_cases,
    metadata_cases,
    offset_cases,
    produce_cases,
    record_cases,
    sequence_cases,
    topic_cases,
    transaction_cases,
    version_cases,
)

MODULES = (
    admin_cases,
    commit_cases,
    config_cases,
    epoch_cases,
    fetch_cases,
    frame_cases,
    group_cases,
    metadata_cases,
    offset_cases,
    produce_cases,
    record_cases,
    sequence_cases,
    topic_cases,
    transaction_cases,
    version_cases,
)
"""Importing them has registered their cases."""


def all_cases() -> tuple[Case, ...]:
    """Every case, by name."""
    assert MODULES, "nothing is registered"
    return registered()
