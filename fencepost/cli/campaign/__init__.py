"""`fencepost campaign`, and what `replay` and `shrink` share with it for real systems."""
