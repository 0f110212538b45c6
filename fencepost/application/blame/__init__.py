"""Who is to blame: what was reported to an application, joined with what passed on the wire.

Owns taps, their lines, and the join. Must not know Kafka's protocol.
"""
