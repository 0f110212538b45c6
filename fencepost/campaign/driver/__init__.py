"""A campaign from its first seed to its last: the driver, its ledger, and steering toward what was not
reached."""
