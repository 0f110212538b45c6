"""The checks. They read traces only, and do not know which system recorded them."""
