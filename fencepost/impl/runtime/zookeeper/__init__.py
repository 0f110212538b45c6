"""A real ZooKeeper: the session through kazoo, its wire format, and a server of our own."""
