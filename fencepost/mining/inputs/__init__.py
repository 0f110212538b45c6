"""What mining reads: traces in whatever files a person names, and how they are split."""
