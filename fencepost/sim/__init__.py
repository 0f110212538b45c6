"""The simulated world: one file per thing that can fail.

Owns virtual time, randomness, network, disks, ZooKeeper and the hosts that run sans-IO cores on them. Uses
the interfaces of impl/ and knows nothing about the cores. Mirrors impl/runtime: a core that runs here runs
there.

A run is a function of its seed and of the calls made on `world.World`. All times are integer nanoseconds of
virtual time.
"""
