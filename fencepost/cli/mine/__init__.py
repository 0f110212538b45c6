"""`mine`, and what is below it: `convert`, `explain` and `package`."""
