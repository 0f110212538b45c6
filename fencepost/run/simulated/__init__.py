"""One run of a plan: the simulated cluster, its workload and its record."""
