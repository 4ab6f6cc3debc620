"""Bases on serial ports: the guard process that owns the port, the runtime's side of it, and emulated bases."""
