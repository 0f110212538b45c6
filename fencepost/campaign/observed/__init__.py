"""What a run observes of its cluster from recorded events, and the claims that follow from it."""
