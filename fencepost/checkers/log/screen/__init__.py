"""The screen: compiled passes that say which logs need a closer look."""
