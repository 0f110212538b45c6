"""A real ZooKeeper: the session with kazoo, the wire format, and a private server."""
