"""The judges. They read traces only, and never learn which system they judge."""
