"""What a run knows from its events alone: what disturbed whom, since when each subject has been calm, and the
numbers from which bounds follow. Must not know judges, or how anything was recorded."""
