"""Pure functions of other projects' policy servers: what is sent, and what is answered; docs/how-to/policy-servers.md."""
