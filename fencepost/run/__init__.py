"""One engine: a plan against a system, in phases, recorded. Time and transport are parts of a system."""
