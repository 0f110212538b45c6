"""Common parts of commands: output, tables, progress bars, options."""
