"""Keys and signatures (Ed25519) of a ledger's lines, and files for their owner's eyes only."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from robot_runtime.campaign.ledger import Sign
from robot_runtime.errors import ConfigError, writing


def write_secret(path: Path, text: str) -> None:
    """Write a new file for its owner's eyes only. Raises ``RecordingError``, also if it is there already."""
    with writing(path, "give another file"):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)


def create_key(path: Path) -> str:
    """Write a new private key, for its owner's eyes only, and return the public one as 64 hexadecimal digits.

    Raises:
        ConfigError: the library is not installed.
        RecordingError: the file cannot be written, or is there already.
    """
    key = _ed25519().Ed25519PrivateKey.generate()
    write_secret(path, key.private_bytes_raw().hex() + "\n")
    return str(key.public_key().public_bytes_raw().hex())


def signer(path: Path, public: str) -> Sign:
    """The signing function of a private key.

    Args:
        path: path of the key.
        public: key that the plan names.

    Raises:
        ConfigError: the file is not a key, or another than the plan's.
    """
    library = _ed25519()
    try:
        key = library.Ed25519PrivateKey.from_private_bytes(bytes.fromhex(path.read_text(encoding="ascii").strip()))
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{path}: not a private key: {error}", "make one with `robot-runtime campaign key`"
        ) from error
    if key.public_key().public_bytes_raw().hex() != public:
        raise ConfigError(f"{path}: is not the key of the plan's signer", "give that key, or name this one in the plan")
    return lambda data: str(key.sign(data).hex())


def is_signed(data: bytes, signature: str, public: str) -> bool:
    """Whether a signature over ``data`` is of the owner of a public key. Raises ``ConfigError`` without the library."""
    from cryptography.exceptions import InvalidSignature

    try:
        _ed25519().Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(bytes.fromhex(signature), data)
    except (InvalidSignature, ValueError):
        return False
    return True


def _ed25519() -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise ConfigError(
            "signatures need the package cryptography; it is not installed", "pip install 'robot-runtime[signature]'"
        ) from error
    return ed25519
