"""`fencepost model`: the explorer on the shipped models, and what commands share about models."""
