"""`fencepost check`: traces judged by worker processes."""
