"""The compiled part of the general search: its arrays (`arrays`), what happens by itself (`settle`), what was
seen (`memory`), and the loops (`search`)."""
