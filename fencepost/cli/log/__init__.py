"""`fencepost log`: dump and audit of log directories."""
