"""Property-based correctness and consensus testing for Kafka-style replicated logs."""

__version__ = "0.1.0"
