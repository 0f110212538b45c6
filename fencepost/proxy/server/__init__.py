"""The proxy in the real world: sockets, TLS, the clock and the files of the record."""
