"""`fencepost torture` and `fencepost torture drivers`: foreign client libraries."""
