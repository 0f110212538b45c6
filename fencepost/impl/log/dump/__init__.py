"""The files of a log directory, decoded for a reader."""
