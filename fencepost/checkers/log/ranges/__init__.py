"""The log check of one huge history, by ranges of offsets."""
