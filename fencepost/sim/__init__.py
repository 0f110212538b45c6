"""The simulated world: one file per thing that can fail.

Owns virtual time, randomness, network, disks, ZooKeeper and the hosts that run sans-IO cores on them. Knows
the seams of impl/ and nothing of what a core does with them. Mirrors impl/runtime: what runs here runs there.

A run is a function of its seed and of the calls made on `world.World`; all times are integer nanoseconds of
virtual time.
"""
