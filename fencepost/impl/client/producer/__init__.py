"""The producer: batches, partitioners, sequence numbers, pipelined sending."""
