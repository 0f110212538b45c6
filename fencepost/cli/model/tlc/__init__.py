"""`fencepost model tlc`: TLC on specifications, and recorded runs replayed by TLC."""
