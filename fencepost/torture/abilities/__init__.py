"""What a client library can do, tried out against a cluster."""
