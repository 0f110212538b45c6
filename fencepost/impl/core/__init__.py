"""Common parts of all cores: the interface to the world, the context, procedures, files, names of
partitions."""
