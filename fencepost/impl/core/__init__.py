"""What every core shares: its interface to the world, its context, procedures, files, names of partitions."""
