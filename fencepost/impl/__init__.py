"""The reference implementation of a ZooKeeper-era Kafka cluster, sans-IO.

A broker is a function of state, input and now: `broker.step(input, now) -> effects`. Nothing here uses a
clock, a thread, a socket, an environment variable or global randomness, and no part can detect that it is
simulated.
"""
