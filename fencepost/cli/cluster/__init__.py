"""`fencepost cluster`: clusters of processes, and the embedded one."""
