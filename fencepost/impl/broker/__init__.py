"""The broker core and its parts."""
