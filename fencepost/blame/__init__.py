"""Which side is to blame: what an application saw, joined with the recorded traffic.

Owns taps, their lines, and the join. Must not know Kafka's protocol.
"""
