"""The cases, a module for each subject. Importing a module registers its cases."""

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
    versions,
)

__all__ = [
    "admin",
    "commits",
    "configs",
    "epochs",
    "fetch",
    "frames",
    "groups",
    "metadata",
    "offsets",
    "produce",
    "records",
    "sequences",
    "topics",
    "versions",
]
