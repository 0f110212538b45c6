"""Log storage on the file-system interface: batches, the log of one replica, leader epochs, checkpoints.

The formats are Kafka's. Code outside of this folder uses offsets, epochs and opaque bytes only.
"""
