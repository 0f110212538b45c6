"""What passed, as operations and events of a trace. No clock, no file: times come with what is seen, lines go
to a sink."""
