"""TLS between a robot and a policy server, with authentication of the server by its certificate."""

import ssl
from pathlib import Path

from robot_runtime.errors import ConfigError


def server_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """The TLS context of a server with ``certificate``.

    Args:
        certificate: PEM, followed by the certificates that signed it.
        key: PEM, its private key, without a passphrase.

    Raises:
        ConfigError: a file cannot be read, is no PEM, or the two do not belong together.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    for file in (certificate, key):
        _check_file(file)
    try:
        # With a password at hand, OpenSSL does not ask the terminal for one.
        context.load_cert_chain(certificate, key, password="")
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(
            f"{certificate} and {key}: no certificate and its private key: {error}",
            "give both as PEM, the key without a passphrase",
        ) from error
    return context


def client_context(certificate: str | Path | None) -> ssl.SSLContext:
    """The TLS context of a client that trusts the system's certificates, or only those in a file (PEM).

    Raises:
        ConfigError: the file cannot be read, or has no certificates.
    """
    if certificate is None:
        return ssl.create_default_context()
    _check_file(Path(certificate))
    try:
        return ssl.create_default_context(cafile=str(certificate))
    except ssl.SSLError as error:
        raise ConfigError(
            f"{certificate}: has no certificates: {error}", "give the file that the server's --certificate names"
        ) from error


def _check_file(path: Path) -> None:
    try:
        path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}", "check the path and its permissions") from error
