"""Pure functions of other projects' policy servers: requests and answers, as docs/how-to/policy-servers.md has them."""
