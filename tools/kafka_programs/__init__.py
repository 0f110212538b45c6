"""Programs of Apache Kafka, run against any brokers."""


class ProgramError(Exception):
    """A program did not end well, or with something else than it had to."""
