"""Small text files of a log directory: checkpoints, and the leader epochs with their recovery."""
