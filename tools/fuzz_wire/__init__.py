"""A coverage-guided fuzzer of Kafka's protocol: hostile bytes against a connection in front of a real broker
core."""
