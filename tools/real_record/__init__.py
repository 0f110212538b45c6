"""The record of campaigns against real systems: `python -m tools.real_record`, `make measure NAME=real-
record`."""
