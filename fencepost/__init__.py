"""Property-based correctness and consensus testing for Kafka-style replicated logs."""

from fencepost.moved import lead_to_new_paths

__version__ = "0.2.0"

lead_to_new_paths()
