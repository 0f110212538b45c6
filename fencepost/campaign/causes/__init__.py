"""Why a plan fails: the nearest plans that do not, and where the runs part."""
