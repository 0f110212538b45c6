"""Who is to blame: what an application was told, joined with what passed on the wire.

Owns taps, their lines, and the join. Must not know Kafka's protocol.
"""
