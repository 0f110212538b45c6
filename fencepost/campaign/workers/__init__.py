"""Worker processes of a campaign: their pool, their tasks and their results."""
