"""What commands share that work with real systems, and `fencepost kafka`."""
