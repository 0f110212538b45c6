"""`fencepost torture` and `fencepost drivers`: foreign client libraries."""
