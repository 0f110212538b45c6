"""Messages with legal frames and odd fields, against brokers: nothing that comes from outside may halt
one."""
