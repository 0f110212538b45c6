"""The control port: faults, heal, state and verdict over HTTP and JSON on loopback, for tests in any
language."""
