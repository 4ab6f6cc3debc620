"""Parts that drivers of serial devices share: port, reader thread, framing, and emulation of a device on a pty."""
