"""The last thing between a command and the wheels: the Guard, and its calling protocol, written once."""
