"""Log storage behind the file-system interface: batches, the log of one replica, leader epochs, checkpoints.

The batch format is a simple framed one for now; everything outside this folder deals in offsets, epochs and
opaque bytes, so that Kafka's own format can take its place without moving a wall.
"""
