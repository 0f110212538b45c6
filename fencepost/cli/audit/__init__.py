"""`fencepost audit`: replicas in directories, and topics of two clusters, compared."""
