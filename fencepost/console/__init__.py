"""What commands share: output, tables, progress bars, options."""
