"""What an application saw, against the log: the rules, their words, and what libraries promise."""
