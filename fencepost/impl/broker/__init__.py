"""The broker core and the parts that it is assembled from."""
