"""`fencepost torture` and `fencepost drivers`: client libraries of other people."""
