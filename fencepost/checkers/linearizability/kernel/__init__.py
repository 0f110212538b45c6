"""The compiled part of the general search: its arrays (`arrays`), the steps without a choice (`settle`), the
memory of configurations (`memory`), and the loops (`search`)."""
