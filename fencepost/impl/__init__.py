"""The reference implementation of a ZooKeeper-era Kafka cluster, sans-IO.

A broker is a function of state, input and now: `broker.step(input, now) -> effects`. Nothing here knows a
clock, a thread, a socket, an environment variable or global randomness, and nothing here knows that it may be
simulated.
"""
