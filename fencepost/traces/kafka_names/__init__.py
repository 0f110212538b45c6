"""Kafka's names of errors and APIs, and the names that clients give to its errors."""
