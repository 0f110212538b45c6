"""Client libraries of other people under faults: their drivers, what they did, and what the judges say of
it."""
