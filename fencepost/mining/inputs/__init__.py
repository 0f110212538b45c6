"""What mining reads: traces in all files that a person names, and how they are split."""
