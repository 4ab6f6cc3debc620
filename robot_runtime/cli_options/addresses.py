"""Addresses and tokens of the servers that commands start."""

import ipaddress
import socket

from robot_runtime.errors import ConfigError


def is_local(host: str) -> bool:
    """Whether an address can be reached from this machine only."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def reached_as(host: str) -> str:
    """The name by which clients reach a server: the computer's if it listens on all addresses, else the address."""
    return socket.gethostname() if host in ("0.0.0.0", "::", "") else host


def check_token(token: str, host: str) -> None:
    """Raise ``ConfigError`` for a token that cannot be part of a URL, or is too short for the host's network."""
    if not (token.isascii() and token.replace("-", "").replace("_", "").isalnum()):
        raise ConfigError("the token has characters that a URL cannot have", "use letters, digits, - and _")
    if len(token) < 16 and not is_local(host):
        raise ConfigError(
            f"a token of {len(token)} characters is too short to listen on {host!r}",
            "use 16 or more, or leave it out for a new one",
        )
