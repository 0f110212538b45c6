"""The screen: compiled passes that find the logs that need a closer look."""
