"""Protocols of other projects' policy servers: what is sent, and what the answer means. Pure functions, without I/O.

Which server has which convention is in ``docs/how-to/policy-servers.md``, with what each was run against.
"""
